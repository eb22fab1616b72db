"""BoundQuery: a statement whose tables are scans at a snapshot, ready for any engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from icesql.iceberg.expressions.predicate import Predicate

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.errors import Error
    from icesql.query.spark_text import BoundSparkText
    from icesql.scan.table_scan import TableScan
    from icesql.sql.statement import TableReference
    from icesql.sql.user_text import UserText


class PushedConjunct(Struct, frozen=True):
    """The outcome of one condition: its scan and its Iceberg predicate.

    ``scan`` is the index of the scan, None when the condition concerns none or several.
    ``predicate`` is None when nothing could be pushed; ``note`` then says why.
    """

    scan: int | None
    sql: str
    predicate: Predicate | None = None
    note: str = ""


class ScanNote(Struct, frozen=True):
    """The resolution of a table reference in words, for reports and EXPLAIN.

    ``snapshot`` is a text such as ``812 (main) committed 2026-11-19 14:02:11 Europe/Berlin``,
    None for a table without a snapshot. ``note`` is empty unless the table is travelled.
    ``after_last_commit`` is the instant that was asked for, if the last commit was before it.
    """

    snapshot: str | None
    note: str = ""
    after_last_commit: str | None = None


class FileScan(Struct, frozen=True):
    """Local files behind the table ``name`` of a tree, read by a function of the engine.

    ``options`` are names and literals in SQL; ``folders`` hold all of the files.
    """

    name: str
    function: str
    locations: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    folders: frozenset[str]


class KeyEdge(Struct, frozen=True):
    """A column of the scan ``target`` whose values have to be among those of one of ``source``.

    Rows of ``target`` with any other value, or NULL, change no answer. Columns are top-level ones,
    by their ids and names, of types whose equal values are equal in bounds; ``text`` is the
    condition. ``only`` is "max" or "min" where that one value of the source is meant. ``of_day``:
    the day of the target's timestamp, which has no zone, is compared with the source's date.
    """

    source: int
    source_id: int
    source_name: str
    target: int
    target_id: int
    target_name: str
    text: str
    only: str = ""
    of_day: bool = False


class BoundQuery(Struct, frozen=True):
    """A query tree over ``"__scan_<i>"`` tables and one TableScan for each of them, in order.

    A scan exposes exactly the columns of its ``projection`` under their names, which are
    case-insensitively unique within it. ``tree`` keeps every condition: what was pushed into a scan
    is implied by it, so evaluating the tree over the scans' rows gives the answer.
    ``has_lists``: the tree holds IN lists that ``sql.literal_list`` keeps as one value.
    ``spark`` is the text that Spark runs in the place of the tree, which says what is read.
    ``user_text`` is the text that the tree was read from, as an engine of DuckDB's spelling may run
    it in the tree's place; None for other spellings.
    ``about`` is SUMMARIZE or DESCRIBE where the result is about the rows; DESCRIBE reads nothing.
    ``only_text`` is what only ``user_text`` can run, "" for nothing.
    ``edges`` say which scan's keys limit which other scan. ``temporary`` are the tables
    ``"__temp_<i>"``, and ``sources`` the texts that its places are of; see ``sql.statement.Query``.
    ``notes`` say how travelled tables were resolved.
    """

    tree: exp.Expression
    scans: tuple[TableScan, ...]
    references: tuple[TableReference, ...] = ()
    notes: tuple[str, ...] = ()
    pushed: tuple[PushedConjunct, ...] = ()
    resolved: tuple[ScanNote, ...] = ()
    files: tuple[FileScan, ...] = ()
    has_lists: bool = False
    spark: BoundSparkText | None = None
    user_text: UserText | None = None
    about: str = ""
    only_text: str = ""
    edges: tuple[KeyEdge, ...] = ()
    temporary: tuple[Any, ...] = ()
    sources: Any = None

    def placed(self, error: Error) -> Error:
        """The error at its place in the text that it is of, where that is known."""
        if self.sources is not None:
            self.sources.place(error)
        return error
