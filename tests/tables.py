"""Cases of tests in ``.tsv`` files, a line for each case, cells separated by tabs.

Empty lines and lines that begin with ``#`` are comments; the first one names the columns. Cells are
texts as they are written, without escapes; what is no text is a literal of Python, or a text that a
test converts.
"""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path
from typing import Any


def read_table(test_file: str, name: str) -> list[list[str]]:
    """The cells of each line of the file ``name`` beside a test module, ``__file__``.

    Raises ValueError with the line where it has more or fewer cells than the first one.
    """
    text = Path(test_file).parent.joinpath(name).read_text(encoding="utf-8")
    found = {
        number: line.split("\t")
        for number, line in enumerate(text.split("\n"), start=1)
        if line and not line.startswith("#")
    }
    cells = len(next(iter(found.values())))
    for number, line in found.items():
        if len(line) != cells:
            raise ValueError(f"{name}:{number}: {len(line)} cells, not {cells}")
    return list(found.values())


def read_cases(test_file: str, name: str, *literals: int) -> list[list[Any]]:
    """As ``read_table``; cells of the columns ``literals``, counted from 0, are Python's literals."""
    return [
        [literal_eval(cell) if place in literals else cell for place, cell in enumerate(row)]
        for row in read_table(test_file, name)
    ]


def read_lines(test_file: str, name: str) -> list[str]:
    """The cells of a table of one column."""
    return [line for (line,) in read_table(test_file, name)]
