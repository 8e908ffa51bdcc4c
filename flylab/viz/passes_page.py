"""The page of a pipeline: every shown stage in a pane of its own, all lines, lit together by their Python line."""

from __future__ import annotations

from html import escape

from flylab.viz.code import spans
from flylab.viz.palette import ink_on
from flylab.viz.passes import ADDED, REMOVED, Pane, Row, colours, panes
from flylab.viz.scene import Scene

BLOCK = 50  # lines


def body(scene: Scene) -> str:
    """The list of passes with what each changed, then the panes."""
    stages = panes(scene)
    tint = colours(scene)
    uid = scene.digest
    passes = "".join(_pass(pane, uid) for pane in stages)
    return "\n".join([
        "<p>Point at a line to light what came from the same Python line; click to keep it and to scroll the other "
        "panes there; Escape lets go. Colour and number are those of the Python line; + marks a line that the stage "
        "before did not have.</p>",
        f'<ul class="passes" aria-label="Passes">{passes}</ul>',
        '<p><label><input type="checkbox" id="removed"> show removed lines</label></p>',
        '<div class="panes" tabindex="0" role="region" aria-label="Stages">',
        *(_pane(pane, tint, uid) for pane in stages if pane.order),
        "</div>",
    ])


def _change(pane: Pane) -> str:
    added = f' <span class="added">+{pane.added}</span>' if pane.added else ""
    return added + (f' <span class="removed">\N{MINUS SIGN}{pane.removed}</span>' if pane.removed else "")


def _pass(pane: Pane, uid: str) -> str:
    """An entry of the list: a box that shows or hides the pane; a pass that changed nothing has none."""
    name = escape(pane.name)
    if not pane.order:
        return f'<li class="same">{name}: no change</li>'
    box = f'<input type="checkbox" checked data-pane="p{uid}-{pane.order}">'
    return f"<li><label>{box} {pane.order} {name}</label>{_change(pane)}</li>"


def _pane(pane: Pane, tint: dict[int, str], uid: str) -> str:
    name = f"p{uid}-{pane.order}"
    head = (f'<h2 id="h{name}">{pane.order} <b>{escape(pane.name)}</b>'
            f'<span class="muted">{pane.size}</span>{_change(pane)}</h2>')
    lines = "".join(_block(pane.rows[k : k + BLOCK], pane.language, tint) for k in range(0, len(pane.rows), BLOCK))
    return (f'<div class="pane" id="{name}">{head}'
            f'<div class="code" tabindex="0" role="region" aria-labelledby="h{name}">{lines}</div></div>')


def _block(rows: tuple[Row, ...], language: str, tint: dict[int, str]) -> str:
    """Lines that the browser lays out only when they come near: the page of a long kernel stays quick."""
    count = sum(row.mark != REMOVED for row in rows)
    return f'<div class="b" style="--n:{count}">' + "".join(_line(row, language, tint) for row in rows) + "</div>"


def _line(row: Row, language: str, tint: dict[int, str]) -> str:
    key = f' data-k="line-{row.source}"' if row.source else ""
    colour = tint.get(row.source)
    style = f' style="background:{colour};color:{ink_on(colour)};border-color:{colour}"' if colour else ""
    number = f"<u{style}>{row.source or ''}</u>"
    if row.mark == REMOVED:
        return f'<div class="l gone"{key}><i>\N{MINUS SIGN}</i>{number}<s>{escape(row.text)}</s></div>\n'
    mark = '<i class="added">+</i>' if row.mark == ADDED else "<i></i>"
    parts = [(escape(text, quote=False), role) for text, role in spans(row.text, language)]
    words = "".join(text if role == "ink" else f'<span class="{role}">{text}</span>' for text, role in parts)
    return f'<div class="l"{key}>{mark}{number}<span>{words}</span></div>\n'
