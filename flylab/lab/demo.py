"""Run the tour without a notebook: `python -m flylab.lab.demo --out out/demo.html`.

Each cell is executed in a fresh kernel; one line is printed a step, and all outputs go into one HTML page that needs no
network.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import Any

from flylab.errors import FlylabError

TOUR = Path(__file__).resolve().parents[2] / "notebooks" / "00_tour.ipynb"

STYLE = """
:root { color-scheme: light dark; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.55 system-ui, sans-serif; color: #1c2430;
       background: #fff; overflow-wrap: break-word; }
pre { overflow-x: auto; padding: .7rem .9rem; border-radius: 6px; font: 13px/1.45 ui-monospace, monospace;
      background: #f4f6f8; }
.highlight pre { border-left: 3px solid #0072b2; margin-top: 0; }
code { font-family: ui-monospace, monospace; font-size: .92em; }
table { border-collapse: collapse; margin: 1rem 0; } td, th { padding: .3rem .8rem; border-bottom: 1px solid #d5dbe1;
      text-align: left; }
svg, img { max-width: 100%; height: auto; }
.prompt, .anchor-link { display: none; }
.code_cell .input .prompt { display: block; margin-top: 1.2rem; font: 12px/1.6 ui-monospace, monospace;
                            color: #57606a; }
@media (max-width: 50rem) {
  .output_svg { overflow-x: auto; } svg, img { max-width: none; }
  table { display: block; overflow-x: auto; font-size: .85rem; } td, th { padding: .3rem .4rem; }
}
@media (prefers-color-scheme: dark) {
  body { color: #e4e9ee; background: #14181d; } pre { background: #1d232a; color: #e4e9ee; } a { color: #56b4e9; }
  td, th { border-color: #38424d; } .code_cell .input .prompt { color: #9aa5b1; }
}
"""
# Colours of code whose words can be read (4.5 to 1) on the grounds above.
CODE = {"not all and (prefers-color-scheme: dark)": "xcode", "(prefers-color-scheme: dark)": "github-dark"}


def steps(notebook: Any) -> dict[int, str]:
    """The step that each code cell belongs to: the last heading above it."""
    found, title = {}, "start"
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            found[index] = title
        elif headings := re.findall(r"^#+ (.+)$", cell.source, re.M):
            title = headings[-1]
    return found


class Progress:
    """Prints one line for each step when it is done: the cells of a step are timed together."""

    def __init__(self, titles: dict[int, str]):
        self.titles = titles
        self.number = 0
        self.begin = time.perf_counter()

    def cell_done(self, cell: Any, cell_index: int, execute_reply: Any) -> None:
        """What nbclient calls after each code cell."""
        later = [title for index, title in self.titles.items() if index > cell_index]
        if later[:1] == [self.titles[cell_index]]:
            return
        now = time.perf_counter()
        self.number += 1
        print(f"{self.number:3}. {self.titles[cell_index]:40} {now - self.begin:6.2f} s", flush=True)
        self.begin = now


def execute(notebook: Any, timeout: int = 600) -> float:
    """Run every cell in place, printing a line for each step; the seconds it took.

    Raises `FlylabError` with the text of the cell that failed.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    begin = time.perf_counter()
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        on_cell_executed=Progress(steps(notebook)).cell_done,
    )
    try:
        client.execute()
    except CellExecutionError as error:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        raise FlylabError(f"the tour stopped:\n{plain}", hint="run make test to see what is broken") from None
    return time.perf_counter() - begin


def page(notebook: Any, title: str) -> str:
    """The executed notebook as one HTML page without references to other files or hosts."""
    from nbconvert import HTMLExporter
    from pygments.formatters import HtmlFormatter

    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    # What scrolls sideways on a narrow screen can be reached and scrolled from the keyboard.
    body = re.sub(r'<(pre|table|div class="output_svg[^"]*")(?=[ >])', r'<\1 tabindex="0"', body)
    colours = ""
    for theme, style in CODE.items():
        rules = HtmlFormatter(style=style).get_token_style_defs(".highlight")
        colours += f"@media {theme} {{\n" + "\n".join(rules) + "\n}\n"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}{colours}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    import nbformat

    parser = argparse.ArgumentParser(description="Run the tour and write it as one HTML page.")
    parser.add_argument("--out", type=Path, default=Path("out/demo.html"), help="the page to write")
    out = parser.parse_args(arguments).out
    notebook = nbformat.read(TOUR, as_version=4)
    seconds = execute(notebook)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(notebook, "flylab: the tour"), encoding="utf-8")
    print(f"the tour ran in {seconds:.1f} s; it is in {out} ({out.stat().st_size // 1024} KB)")


if __name__ == "__main__":
    main()
