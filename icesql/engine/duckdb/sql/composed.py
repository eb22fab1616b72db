"""The text that the engine runs: a user's text with its edits, and where each piece is from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from msgspec import Struct

from icesql.sql.reading.engine_tree import counted, starts_of
from icesql.sql.user_text import ALIAS, LIST, NAME, SQL, TABLE, VALUE, Edit, UserText

# What stands for the characters of a text from one place to another.
Change = tuple[int, int, str]


class Composed(Struct, frozen=True):
    """SQL for the engine, and its way back to the user's words.

    Each of ``pieces`` is where it begins in ``sql``, where it begins in the SQL that the user gave,
    and how many characters were taken over; none for words that stand for others.
    """

    sql: str
    pieces: tuple[tuple[int, int, int], ...]

    def user_offset(self, offset: int) -> int:
        """The place in the user's SQL of what stands at ``offset`` of ``sql``.

        What stands for other words has the place of their first character.
        """
        found = max(bisect_right(self.pieces, offset, key=lambda piece: piece[0]) - 1, 0)
        begin, start, length = self.pieces[found]
        return start + min(max(offset - begin, 0), length)

    def edited(self, changes: Sequence[Change]) -> Composed:
        """The text with changes, which are in order and do not overlap."""
        out: list[str] = []
        pieces: list[tuple[int, int, int]] = []
        size = last = index = 0
        for start, end, text in (*changes, (len(self.sql), len(self.sql), "")):
            while index < len(self.pieces) and self.pieces[index][0] < start:
                begin, _, length = self.pieces[index]
                stop = self.pieces[index + 1][0] if index + 1 < len(self.pieces) else start
                first, stop = max(begin, last), min(stop, start)
                if first < stop:
                    kept = stop - first if length else 0
                    pieces.append((size + first - last, self.user_offset(first), kept))
                if stop == start:
                    break
                index += 1
            out += [self.sql[last:start], text]
            size += start - last
            pieces.append((size, self.user_offset(start), 0))
            size += len(text)
            last = end
        return Composed("".join(out), tuple(pieces))

    def place_in(self, given: str) -> Callable[[int], int | None]:
        """``user_offset`` of a place that DuckDB names in bytes of ``given``, which holds ``sql``.

        None for a place outside of that.
        """

        def place(byte: int) -> int | None:
            starts = starts_of(counted(given))
            offset = bisect_left(starts, byte) if starts else byte
            offset -= max(given.find(self.sql), 0)
            return self.user_offset(offset) if 0 <= offset <= len(self.sql) else None

        return place


def changed(sql: str, changes: Sequence[Change]) -> str:
    """A text with changes, which are in order. Raises ValueError if two overlap."""
    out, last = [], 0
    for start, end, text in changes:
        if start < last:
            raise ValueError(start)
        out += [sql[last:start], text]
        last = end
    return "".join([*out, sql[last:]])


def compose(text: UserText, fill: Callable[[int, Edit], str]) -> Composed:
    """The text in which ``fill(index, edit)`` stands for each edit."""
    out: list[str] = []
    pieces: list[tuple[int, int, int]] = []
    size, last = 0, text.start
    for index, edit in enumerate(text.edits):
        kept, filled = text.written(last, edit.start), fill(index, edit)
        pieces.append((size, last, len(kept)))
        size += len(kept)
        pieces.append((size, edit.start, 0))
        size += len(filled)
        out += [kept, filled]
        last = edit.end
    rest = text.text[last - text.start :]
    pieces.append((size, last, len(rest)))
    return Composed("".join([*out, rest]), tuple(pieces))


def filled(edit: Edit, name: str, value: str) -> str:
    """The SQL for an edit: ``name`` for tables, names and aliases, ``value`` for constants."""
    if edit.kind in (TABLE, NAME):
        return edit.before + name + edit.after
    if edit.kind in (VALUE, LIST):
        # The words beside it may not have been apart from a parameter.
        return f" {edit.before}{value}{edit.after} "
    if edit.kind == ALIAS:
        return f" AS {name}"
    return edit.text if edit.kind == SQL else " "
