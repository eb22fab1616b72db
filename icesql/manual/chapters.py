"""The chapters, which are files of this folder, and their sections."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final

from msgspec import Struct

INDEX: Final = "index"
_REFERENCE: Final = "reference/"
_FOLDER: Final = Path(__file__).parent
_LISTED: Final = re.compile(r"^- \[[^\]]+\]\(([\w/-]+)\.md\)", re.MULTILINE)
_HEADING: Final = re.compile(r"^(#{1,3}) (.+)$")


class Section(Struct, frozen=True):
    """A heading with its text up to the next one; ``text`` begins with the heading.

    ``level`` is 1 for the opening of a chapter, whose heading is the chapter's title.
    """

    topic: str
    chapter: str
    title: str
    level: int
    text: str


@functools.cache
def chapters() -> dict[str, str]:
    """The Markdown of each chapter by its topic, in the order of the index, which comes first.

    A topic is the name of the file without its folder and ending, such as ``write``.
    """
    index = _text(INDEX)
    return {
        INDEX: index,
        **{path.rpartition("/")[2]: _text(path) for path in _LISTED.findall(index)},
    }


@functools.cache
def reference_topics() -> frozenset[str]:
    """The chapters that are lists generated from the code."""
    paths = _LISTED.findall(_text(INDEX))
    return frozenset(path.rpartition("/")[2] for path in paths if path.startswith(_REFERENCE))


@functools.cache
def sections() -> tuple[Section, ...]:
    """Every section of every chapter but the index, in order."""
    found: list[Section] = []
    for topic, text in chapters().items():
        if topic != INDEX:
            found += _sections_of(topic, text)
    return tuple(found)


def chapter_title(topic: str) -> str:
    """The title of a chapter."""
    return chapters()[topic].partition("\n")[0].removeprefix("# ")


def _text(path: str) -> str:
    return (_FOLDER / f"{path}.md").read_text(encoding="utf-8")


def _sections_of(topic: str, text: str) -> list[Section]:
    starts: list[tuple[int, re.Match[str]]] = []
    lines = text.splitlines()
    in_code = False
    for number, line in enumerate(lines):
        if line.startswith("```"):
            in_code = not in_code
        elif not in_code and (found := _HEADING.match(line)):
            starts.append((number, found))
    ends = [number for number, _ in starts[1:]] + [len(lines)]
    title = starts[0][1][2]
    return [
        Section(topic, title, found[2], len(found[1]), "\n".join(lines[number:end]).strip())
        for (number, found), end in zip(starts, ends, strict=True)
    ]
