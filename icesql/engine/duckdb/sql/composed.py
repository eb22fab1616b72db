"""Make the text that the engine runs: apply edits, and replace tables by subqueries.

Each piece of the text keeps its source, so that errors have places in the user's own text.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from icesql.query.dialects.translate import INSTANTS
from icesql.sql import edited_text
from icesql.sql.edited_text import Edit, Segment, UserText, edited, joined
from icesql.sql.parser.literal_list import held
from icesql.sql.reading.engine_tree import counted, starts_of

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.engine.duckdb.sql.adapted import Adapter


# A replacement: start, end, and the text that replaces the characters between them.
Change = edited_text.Change


class Composed(edited_text.Composed):
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


# ------------------------------------------------------------------ tables
# Names, literals and paths come from strangers. So tables are found in the tree, and the SQL has a
# name with a nonce for each, which no other text can contain, until its subquery replaces it.


def spliced_sql(
    tree: exp.Expr,
    sources: Mapping[str, str],
    check: Callable[[str, Collection[str]], str] | None = None,
    adapter: Adapter | None = None,
) -> str:
    """The tree in DuckDB's dialect, tables named in ``sources`` replaced by their subqueries.

    ``adapter`` changes expressions of the text. ``check`` receives the text of the tree, with
    placeholders for its long lists, and the names of its tables; it returns the text that runs.
    """
    nonce = os.urandom(16).hex()
    names = {name: f"{name}_{nonce}" for name in sources}
    tree, lists = _without_lists(tree, nonce)
    text = renamed_sql(tree, names)
    if adapter is not None:
        text = adapter.adapted(text, names, lists)
    if check is not None:
        text = check(text, names.values())
    subqueries = {names[name]: f"({sql})" for name, sql in sources.items()}
    return changed(text, places_of(text, {**lists, **subqueries}))


def _without_lists(tree: exp.Expr, nonce: str) -> tuple[exp.Expr, dict[str, str]]:
    """The tree with a placeholder for each long list, and the items by placeholder."""
    from sqlglot import exp

    lists: dict[str, str] = {}
    if any(held(node) is not None for node in tree.find_all(exp.In)):
        tree = tree.copy()
        for node in tree.find_all(exp.In):
            if held(node) is not None:
                name = f"__list_{len(lists)}_{nonce}"
                lists[name] = node.expressions[0].name
                node.set("expressions", [exp.to_identifier(name, quoted=True)])
    return tree, lists


def renamed_sql(tree: exp.Expr, names: Mapping[str, str]) -> str:
    """The tree in DuckDB's dialect with its tables renamed by ``names``; aliases stay."""
    from sqlglot import exp

    from icesql.sql.parser.sqlglot_releases import write_sql

    tree = tree.copy()
    if any(each.name in INSTANTS for each in tree.find_all(exp.Anonymous)):
        from icesql.query.dialects.spark.instants import written

        tree = written(tree)
    rename_tables(tree, names)
    return write_sql(tree, "duckdb")


def rename_tables(tree: exp.Expr, names: Mapping[str, str]) -> None:
    """Rename the tables of a tree by ``names``, in place; aliases stay."""
    from sqlglot import exp

    for table in tree.find_all(exp.Table):
        if table.name in names:
            table.set("this", exp.to_identifier(names[table.name], quoted=True))


def filled(sql: str, sources: Mapping[str, str]) -> str:
    """``sql`` with its tables of these names replaced by subqueries, in one pass.

    No other text in ``sql`` can contain the nonce of these names; subqueries are not searched.
    """
    return changed(sql, places_of(sql, {name: f"({query})" for name, query in sources.items()}))


def places_of(sql: str, texts: Mapping[str, str]) -> list[Change]:
    """The spans of the names, which contain a nonce, with the texts for them, in order."""
    if not texts:
        return []
    places = "|".join(map(re.escape, texts))
    found = re.finditer(f'"({places})"|({places})', sql)
    return [(each.start(), each.end(), texts[each[1] or each[2]]) for each in found]
