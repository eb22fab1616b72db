"""Markdown as a terminal shows it: wrapped to its width, tables as columns or as a list."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

_BOLD, _CYAN, _DIM, _OFF = "\x1b[1m", "\x1b[36m", "\x1b[2m", "\x1b[0m"
_INLINE: Final = re.compile(r"`` ?(.*?) ?``|`([^`]+)`|\*\*([^*]+)\*\*|\[([^\[\]]+)\]\(([^()\s]+)\)")
_WIDEST: Final = 100
_GAP: Final = 2


def laid_out(markdown: str, width: int, *, colour: bool) -> list[str]:
    """The lines, none longer than ``width`` except for code and long words; colours if wanted."""
    width = max(min(width, _WIDEST), 30)
    page = _Page(width, colour)
    for kind, lines in _blocks(markdown.splitlines()):
        page.add(kind, lines)
    return page.lines


def _blocks(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Paragraphs, headings, items of lists, tables and code, in order."""
    kind, block = "", list[str]()
    for line in lines:
        if kind == "code":
            if line.startswith("```"):
                yield kind, block
                kind, block = "", []
            else:
                block.append(line)
            continue
        now = _kind_of(line)
        goes_on = now == kind and kind in ("text", "table")
        if now == "text" and kind == "item" and line.startswith(" "):
            goes_on = True
        if goes_on:
            block.append(line)
            continue
        if block:
            yield kind, block
        kind, block = now, [] if now in ("code", "") else [line]
    if block:
        yield kind, block


def _kind_of(line: str) -> str:
    if not line.strip():
        return ""
    if line.startswith("```"):
        return "code"
    if line.startswith("#"):
        return "heading"
    if line.startswith("|"):
        return "table"
    return "item" if re.match(r"(-|\d+\.) ", line) else "text"


class _Page:
    def __init__(self, width: int, colour: bool) -> None:
        self.lines: list[str] = []
        self._width, self._colour = width, colour
        self._last = ""

    def add(self, kind: str, block: list[str]) -> None:
        if self.lines and not (kind == self._last == "item"):
            self.lines.append("")
        self._last = kind
        match kind:
            case "heading":
                self._heading(block[0])
            case "code":
                self.lines += [
                    _styled(_CYAN, f"    {line}".rstrip(), self._colour) for line in block
                ]
            case "table":
                self._table([_cells(line) for line in block])
            case "item":
                mark, _, text = " ".join(line.strip() for line in block).partition(" ")
                mark = "•" if mark == "-" else mark
                self._wrapped(text, f"  {mark} ", " " * (len(mark) + 3))
            case _:
                self._wrapped(" ".join(line.strip() for line in block), "", "")

    def _heading(self, line: str) -> None:
        marks, _, title = line.partition(" ")
        if marks == "#":
            title, rule = title, ["=" * min(len(title), self._width)]
        else:
            title, rule = title if self._colour else f"{title}:", []
        for each in [*textwrap.wrap(title, self._width), *rule]:
            self.lines.append(_styled(_BOLD, each, self._colour))

    def _table(self, rows: list[list[str]]) -> None:
        head, body = rows[0], rows[2:]
        shown = [[_inline(cell, colour=False) for cell in row] for row in (head, *body)]
        widths = [max(map(len, column)) for column in zip(*shown, strict=False)]
        if sum(widths) + _GAP * len(widths) + 2 <= self._width:
            for number, (row, plain) in enumerate(zip((head, *body), shown, strict=True)):
                cells = [
                    _inline(cell, colour=self._colour) + " " * (width - len(text))
                    for cell, text, width in zip(row, plain, widths, strict=False)
                ]
                line = "  " + (" " * _GAP).join(cells).rstrip()
                self.lines.append(line if number else _styled(_DIM, line, self._colour))
            return
        for row in body:
            self._wrapped(row[0], "  ", "  ")
            for title, cell in zip(head[1:], row[1:], strict=False):
                if cell:
                    self._wrapped(f"{title}: {cell}" if len(head) > 2 else cell, " " * 6, " " * 6)

    def _wrapped(self, text: str, first: str, others: str) -> None:
        """Add one paragraph; text in backquotes is never broken."""
        held: list[str] = []

        def hold(found: re.Match[str]) -> str:
            held.append(_inline(found[0], colour=self._colour))
            length = len(_inline(found[0], colour=False))
            # A word of the same length, which textwrap leaves whole.
            return chr(0xE000 + len(held) - 1) + "\ue7ff" * (length - 1)

        words = _INLINE.sub(hold, text)
        for line in textwrap.wrap(
            words, self._width, initial_indent=first, subsequent_indent=others,
            break_long_words=False, break_on_hyphens=False,
        ):  # fmt: skip
            self.lines.append(
                re.sub("([\ue000-\ue7fe])\ue7ff*", lambda found: held[ord(found[1]) - 0xE000], line)
            )


def _inline(text: str, *, colour: bool) -> str:
    """The text as it is shown, with colours or without."""

    def shown(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code:
            return _styled(_CYAN, code, colour)
        if found[3]:
            return _styled(_BOLD, found[3], colour)
        return _link(found[4], found[5])

    return _INLINE.sub(shown, text)


def _styled(style: str, text: str, colour: bool) -> str:
    return f"{style}{text}{_OFF}" if colour and text.strip() else text


def _link(text: str, target: str) -> str:
    """A link: the help command for a chapter, the URL for a page of the web."""
    if target.startswith("http"):
        return f"{text} ({target})" if text not in target else target
    text, topic = text.replace("`", ""), target.partition("#")[0].rpartition("/")[2]
    topic = topic.removesuffix(".md")
    return f"{text} ({topic})" if topic and topic != text else text


def _cells(line: str) -> list[str]:
    r"""The cells of a row of a table; ``\|`` is a bar in one."""
    parts = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [part.strip().replace(r"\|", "|") for part in parts]
