"""Run the notebooks and keep their outputs: `python .ci/notebooks.py [00_tour ...]`, or `make notebooks`.

What changes from run to run without meaning (times of execution, widget state) is taken out; README's picture is taken
from the tour.
"""

import json
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
README_PICTURE = NOTEBOOKS / "pictures" / "pipeline.svg"
ADDRESS = re.compile(r"\b0x[0-9a-f]{9,12}\b")  # a mask of lanes has 16 digits
SHOWN_BY = "viz.pipeline(vector_add)"


def run(path):
    """Execute a notebook from top to bottom in a fresh kernel, and write it back with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", coalesce_streams=True).execute()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                         "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            if "text" in output:
                output["text"] = ADDRESS.sub("0x7f0000000000", output["text"])
    nbformat.write(notebook, path)


def picture(path, source):
    """The SVG that a cell with this source shows."""
    for cell in json.loads(path.read_text())["cells"]:
        if source in "".join(cell["source"]):
            for output in cell["outputs"]:
                if "image/svg+xml" in output.get("data", {}):
                    return "".join(output["data"]["image/svg+xml"])
    sys.exit(f"no cell of {path.name} shows a picture of {source}")


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(p.stem for p in NOTEBOOKS.glob("*.ipynb"))
    for name in names:
        run(NOTEBOOKS / f"{name}.ipynb")
        print(f"{name}: outputs written")
    README_PICTURE.write_text(picture(NOTEBOOKS / "00_tour.ipynb", SHOWN_BY))
