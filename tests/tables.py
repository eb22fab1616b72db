"""Cases of tests in ``.tsv`` files, a line for each case, cells separated by tabs; columns in a text.

Empty lines and lines that begin with ``#`` are comments; the first one names the columns. Cells are
texts as they are written, without escapes; a test converts what is no text, for example by
``ast.literal_eval``.
"""

from __future__ import annotations

import re
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


def columns(text: str, first: int = 1) -> list[dict[str, Any]]:
    """The fields of a schema of plain types, as metadata has them: ``id long, price decimal(9, 2)``.

    Ids count from ``first``; all are optional.
    """
    return [
        {"id": number, "name": name, "required": False, "type": kind}
        for number, (name, kind) in enumerate(
            re.findall(r"(\w+) ([^,(]+(?:\([^)]*\))?)", text), start=first
        )
    ]
