"""What a view shows, as plain data: facets (tables of typed columns) and the relations between their rows.

A `Scene` knows nothing of pixels. Every renderer (SVG, PNG, text, HTML page, and the live widgets) draws the same one,
and JavaScript needs no knowledge of layouts: which cells light up together is written in the relations.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flylab.errors import FlylabError
from flylab.locks import cached_property

VERSION = 1
TITLE = 200  # characters of a title, at most
# What ends a line in some renderer, or is no character at all there.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
Column = np.ndarray | tuple[str, ...]


def printable(text: str) -> str:
    """A line of text for every renderer: line breaks and what XML and UTF-8 cannot hold become U+FFFD.

    >>> printable("a < b" + chr(27))
    'a < b\ufffd'
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def _column(values: Iterable[Any]) -> Column:
    """Integers of 32 bits as int32, other numbers as float64, texts as a tuple of strings."""
    values = list(values)
    if values and all(isinstance(v, str) for v in values):
        return tuple(map(printable, values)) if _UNPRINTABLE.search("".join(values)) else tuple(values)
    if any(isinstance(v, str) for v in values):
        raise FlylabError("a column of a scene holds numbers or strings, not both")
    whole = all(isinstance(v, (int, np.integer)) and -(2**31) <= v < 2**31 for v in values)
    array = np.array(values, dtype=np.int32 if whole else np.float64)
    array.setflags(write=False)
    return array


def _plain(column: Column) -> list[Any]:
    return list(column) if isinstance(column, tuple) else column.tolist()


@dataclass(frozen=True, eq=False)
class Facet:
    """A table of one kind of thing: elements, threads, source lines. Columns are int32, float64 or text.

    >>> Facet("thread", {"number": [0, 1], "name": ["T0", "T1"]}).size
    2
    """

    name: str
    columns: Mapping[str, Any]

    def __post_init__(self) -> None:
        columns = {key: _column(values) for key, values in self.columns.items()}
        if len({len(c) for c in columns.values()}) != 1:
            sizes = {key: len(c) for key, c in columns.items()}
            raise FlylabError(f"the columns of facet {self.name!r} differ in length: {sizes}")
        object.__setattr__(self, "columns", columns)

    def __getitem__(self, column: str) -> Column:
        return self.columns[column]

    def ints(self, column: str) -> list[int]:
        """A column of integers as Python ints.

        >>> Facet("thread", {"number": [0, 1]}).ints("number")
        [0, 1]
        """
        return [int(v) for v in self.columns[column]]

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, eq=False)
class Relation:
    """Which rows of facet `source` belong to which rows of facet `target`, readable in both directions.

    `pairs` is (n, 2): a row of `source`, a row of `target`. `time` is the program counter at which the pair holds, one
    for each pair, for what changes while a kernel runs (registers); None for what always holds.
    """

    source: str
    target: str
    pairs: Any
    time: Any = None

    def __post_init__(self) -> None:
        pairs = np.array(self.pairs, dtype=np.int32).reshape(-1, 2)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        time = None if self.time is None else np.array(self.time, dtype=np.int32)[order]
        object.__setattr__(self, "pairs", pairs[order])
        object.__setattr__(self, "time", time)

    def forward(self, row: int) -> list[int]:
        """The rows of `target` that belong to `row` of `source`.

        >>> Relation("thread", "element", [(0, 3), (0, 5), (1, 5)]).forward(0)
        [3, 5]
        """
        return self.pairs[self.pairs[:, 0] == row, 1].tolist()

    def backward(self, row: int) -> list[int]:
        """The rows of `source` that belong to `row` of `target`.

        >>> Relation("thread", "element", [(0, 3), (0, 5), (1, 5)]).backward(5)
        [0, 1]
        """
        return self.pairs[self.pairs[:, 1] == row, 0].tolist()


@dataclass(frozen=True, eq=False)
class Scene:
    """One picture's content: what kind it is, its words, its facets and relations.

    >>> scene = Scene("tv", "a", "b", (Facet("thread", {"n": [0]}), Facet("element", {"n": [0, 1]})),
    ...               (Relation("thread", "element", [(0, 0), (0, 1)]),))
    >>> scene.focus("element", 1)
    {'thread': [0]}
    >>> Scene.from_json(scene.to_json()).digest == scene.digest
    True
    """

    kind: str
    title: str
    summary: str
    facets: tuple[Facet, ...]
    relations: tuple[Relation, ...] = ()
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("title", "summary"):
            object.__setattr__(self, name, printable(getattr(self, name)))
        sizes = {facet.name: facet.size for facet in self.facets}
        for relation in self.relations:
            for name, rows in ((relation.source, relation.pairs[:, 0]), (relation.target, relation.pairs[:, 1])):
                if name not in sizes:
                    raise FlylabError(f"a relation names the facet {name!r}, which the scene does not have")
                if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < sizes[name]:
                    raise FlylabError(f"a relation names a row outside facet {name!r} of {sizes[name]} rows")

    def facet(self, name: str) -> Facet:
        """The facet called `name`; a scene that lacks it is refused by name."""
        for facet in self.facets:
            if facet.name == name:
                return facet
        raise FlylabError(f"the scene of kind {self.kind!r} has no facet {name!r}",
                          hint="it has " + ", ".join(f.name for f in self.facets))

    def focus(self, facet: str, row: int) -> dict[str, list[int]]:
        """What lights up with one row of a facet: for each related facet its rows, in rising order."""
        lit: dict[str, set[int]] = {}
        for relation in self.relations:
            if relation.source == facet:
                lit.setdefault(relation.target, set()).update(relation.forward(row))
            if relation.target == facet:
                lit.setdefault(relation.source, set()).update(relation.backward(row))
        return {name: sorted(rows) for name, rows in sorted(lit.items())}

    def to_json(self) -> dict[str, Any]:
        """The scene as JSON-able dictionaries, lists, numbers and strings, with its version."""
        return {
            "version": VERSION, "kind": self.kind, "title": self.title, "summary": self.summary,
            "notes": list(self.notes), "options": dict(self.options),
            "facets": {f.name: {key: _plain(c) for key, c in f.columns.items()} for f in self.facets},
            "relations": [{"source": r.source, "target": r.target, "pairs": r.pairs.tolist(),
                           "time": None if r.time is None else r.time.tolist()} for r in self.relations],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scene:
        """The scene of `to_json`; one of another version is refused."""
        if data.get("version") != VERSION:
            raise FlylabError(f"this scene has version {data.get('version')!r}, and this flylab reads {VERSION}",
                              hint="draw the object again with this flylab")
        facets = tuple(Facet(name, columns) for name, columns in data["facets"].items())
        relations = tuple(Relation(r["source"], r["target"], r["pairs"], r["time"]) for r in data["relations"])
        return cls(data["kind"], data["title"], data["summary"], facets, relations, tuple(data["notes"]),
                   data["options"])

    @cached_property
    def digest(self) -> str:
        """Eight hex digits of the content's hash: what is named by it is stable between runs."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def heading(title: Any, default: str) -> str:
    """The title of a view: the given one, or `default` where none is given, cut where it is very long.

    :raises FlylabError: for what is no string.

    >>> heading(None, "8:1"), heading("rows", "8:1")
    ('8:1', 'rows')
    """
    if title is not None and not isinstance(title, str):
        raise FlylabError(f"title={title!r} is not a string", hint='title="rows of the tile"')
    words = " ".join((title or default).split("\n"))
    return words if len(words) <= TITLE else words[: TITLE - 1] + "…"


def rows_of(facet: Facet, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of a facet as tuples of the named columns.

    >>> rows_of(Facet("t", {"a": [1, 2], "b": ["x", "y"]}), ["a", "b"])
    [(1, 'x'), (2, 'y')]
    """
    return list(zip(*(_plain(facet[name]) for name in names), strict=True))
