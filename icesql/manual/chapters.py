"""The chapters, which are files of this folder, and their sections."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final

from icesql.frozen import Frozen

INDEX: Final = "index"
_REFERENCE: Final = "reference/"
_FOLDER: Final = Path(__file__).parent
_LISTED: Final = re.compile(r"^- \[[^\]]+\]\(([\w/-]+)\.md\)", re.MULTILINE)
_HEADING: Final = re.compile(r"^(#{1,3}) (.+)$")


class Section(Frozen):
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
    paths = (INDEX, *_LISTED.findall(_text(INDEX)))
    return {path.rpartition("/")[2]: _text(path) for path in paths}


@functools.cache
def reference_topics() -> frozenset[str]:
    """The chapters that are lists generated from the code."""
    paths = _LISTED.findall(chapters()[INDEX])
    return frozenset(path.removeprefix(_REFERENCE) for path in paths if _REFERENCE in path)


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
    found: list[tuple[re.Match[str], list[str]]] = []
    in_code = False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        if not in_code and (heading := _HEADING.match(line)):
            found.append((heading, []))
        found[-1][1].append(line)  # a chapter begins with its title
    title = found[0][0][2]
    return [
        Section(topic, title, heading[2], len(heading[1]), "\n".join(lines).strip())
        for heading, lines in found
    ]
