"""The text that the engine runs: the user's text after edits, with the source of each piece."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from icesql.sql import sources
from icesql.sql.reading.engine_tree import counted, starts_of
from icesql.sql.sources import Segment, edited, joined
from icesql.sql.user_text import Edit, UserText

# A replacement: start, end, and the text that replaces the characters between them.
Change = sources.Change


class Composed(sources.Composed):
    """SQL for the engine, made from the user's text, or from the text of ``under``."""

    under: Composed | None = None

    def place(self, offset: int) -> int:
        """The offset in the user's SQL for ``offset`` in this text.

        A replacement has the offset of the first character that it replaces.
        """
        place = self.sources.find(offset)[1]
        return place if self.under is None else self.under.place(place)

    def edited(self, changes: Sequence[Change]) -> Composed:
        """The text after changes, which are in order and do not overlap."""
        made = [(start, end, [Segment(text, -1, start)]) for start, end, text in changes]
        return Composed(*joined(edited(self.text, 0, made)), under=self)

    def place_in(self, given: str) -> Callable[[int], int | None]:
        """``place`` for a byte offset that DuckDB reports in ``given``, which contains ``text``.

        None for an offset outside of ``text``.
        """

        def place(byte: int) -> int | None:
            starts = starts_of(counted(given))
            offset = bisect_left(starts, byte) if starts else byte
            offset -= max(given.find(self.text), 0)
            return self.place(offset) if 0 <= offset <= len(self.text) else None

        return place


def changed(sql: str, changes: Sequence[Change]) -> str:
    """A text after changes, which are in order. Raises ValueError if two overlap."""
    out, last = [], 0
    for start, end, text in changes:
        if start < last:
            raise ValueError(start)
        out += [sql[last:start], text]
        last = end
    return "".join([*out, sql[last:]])


def compose(text: UserText, fill: Callable[[Edit], str]) -> Composed:
    """The text with each edit replaced by ``fill(edit)``."""
    edits = [(each.start, each.end, [Segment(fill(each), -1, each.start)]) for each in text.edits]
    return Composed(*joined(edited(text.text, text.start, edits)))
