"""BoundQuery: a statement whose tables are scans at a snapshot, ready for any engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import Predicate

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.errors import Error
    from icesql.query.snapshot_selection import SelectedSnapshot
    from icesql.query.spark_text import BoundSparkText
    from icesql.scan.plan import TableScan
    from icesql.sql.edited_text import UserText
    from icesql.sql.statement import TableReference


class PushedConjunct(Frozen):
    """The outcome of one condition: its scan and its Iceberg predicate.

    ``scan`` is the index of the scan, None when the condition concerns none or several.
    ``predicate`` is None if nothing could be pushed; ``note`` then has the reason.
    """

    scan: int | None
    sql: str
    predicate: Predicate | None = None
    note: str = ""


class FileScan(Frozen):
    """Local files behind the table ``name`` of a tree, read by a function of the engine.

    ``options`` are names and literals in SQL; ``folders`` hold all of the files.
    """

    name: str
    function: str
    locations: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    folders: frozenset[str]


class KeyEdge(Frozen):
    """A filter for a column of the scan ``target`` by the values of a column of ``source``.

    Rows of ``target`` with any other value, or NULL, change no answer. Columns are top-level ones,
    by their ids and names, of types whose equal values are equal in bounds; ``text`` is the
    condition. ``only`` is "max" or "min" if only that value of the source matters. ``of_day``:
    the day of the target's timestamp without zone is compared with the source's date.
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


class BoundQuery(Frozen):
    """A query tree over ``"__scan_<i>"`` tables and one TableScan for each of them, in order.

    A scan exposes exactly the columns of its ``projection`` under their names, which are
    case-insensitively unique within it. ``tree`` keeps every condition, also the ones pushed into
    scans, so evaluating the tree over the scans' rows gives the answer.
    ``has_lists``: the tree holds IN lists that ``sql.parser.literal_list`` keeps as one value.
    ``spark`` is the text that Spark runs in place of the tree; the scans are still the tree's.
    ``user_text`` is the text from which the tree was read. An engine of DuckDB's dialect can run it
    in place of the tree. None for other dialects.
    ``about`` is SUMMARIZE or DESCRIBE if the result describes the rows; DESCRIBE reads no data.
    ``only_text`` names the construct that only ``user_text`` can run, "" if there is none.
    ``edges`` name the scans whose keys limit other scans. ``temporary`` are the tables
    ``"__temp_<i>"``, ``sources`` maps offsets to texts; see ``sql.statement.Query``.
    ``notes`` describe how time travel was resolved.
    """

    tree: exp.Expression
    scans: tuple[TableScan, ...]
    references: tuple[TableReference, ...] = ()
    notes: tuple[str, ...] = ()
    pushed: tuple[PushedConjunct, ...] = ()
    resolved: tuple[SelectedSnapshot, ...] = ()
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
        """The error with its offset in the source text to which it belongs, if that is known."""
        if self.sources is not None:
            self.sources.place(error)
        return error
