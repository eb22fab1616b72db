"""Names of columns above narrow values: on up to three lines, broken where a word ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from icesql.repl.cells import display_width

_MOST_LINES: Final = 3
# A word and the signs behind it: rewritten_ data_ files_ count.
_PIECE: Final = re.compile(r"[^\s_.(-]*[\s_.(-]*")


def heading_lines(headings: Sequence[str], widths: Sequence[int]) -> Iterator[list[str]]:
    """The lines of the headings above columns so wide.

    A heading of fewer lines than others stands at the bottom. One that does not fit is whole on
    its last line, for the caller to cut.
    """
    folded = [_folded(heading, width) for heading, width in zip(headings, widths, strict=True)]
    count = max(map(len, folded), default=1)
    for number in range(count):
        yield [lines[number - count] if number >= count - len(lines) else "" for lines in folded]


def least_heading_width(heading: str) -> int:
    """The narrowest column that can show the whole heading."""
    pieces = list(map(display_width, _pieces(heading)))
    for width in range(max(pieces, default=1), sum(pieces)):
        if len(_lines(heading, width)) <= _MOST_LINES:
            return width
    return display_width(heading)


def _folded(heading: str, width: int) -> list[str]:
    if display_width(heading) <= width:
        return [heading]
    lines = _lines(heading, width)
    fits = len(lines) <= _MOST_LINES and all(display_width(line) <= width for line in lines)
    return lines if fits else [heading]


def _lines(heading: str, width: int) -> list[str]:
    lines = [""]
    for piece in _pieces(heading):
        if lines[-1] and display_width(lines[-1] + piece.rstrip()) > width:
            lines.append(piece)
        else:
            lines[-1] += piece
    return [line.rstrip() for line in lines]


def _pieces(heading: str) -> list[str]:
    return [piece for piece in _PIECE.findall(heading) if piece] or [heading]
