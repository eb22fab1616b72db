"""Statements: one frozen value for each statement that icesql accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from icesql.file_format import FileFormat
from icesql.sql.time_travel import Before, ByQuery, TimeTravel
from icesql.sql.user_text import UserText

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.errors import Error
    from icesql.sql.change_range import ChangeRange
    from icesql.sql.constant import Constant
    from icesql.sql.spark_text.spark_text import SparkText


class Place(Struct, frozen=True):
    """Where the names in a view are looked up, as they were when it was made.

    ``catalog`` is None for the connection's own. ``stored``: the view is one of a catalog, which
    sees nothing that belongs to this session. ``references`` are the tables of its SQL where that
    was translated, for the names that stand for them there.
    """

    catalog: str | None
    namespace: tuple[str, ...]
    stored: bool = False
    references: tuple[Any, ...] = ()


class TableReference(Struct, frozen=True):
    """One place where a statement names an Iceberg table; ``"__scan_<index>"`` in its tree.

    ``parts`` are the names as written (``a.b.c`` → 3). ``path`` is set for
    ``iceberg_scan('path')`` and its like alone, whose ``parts`` is the last piece of the path.
    ``metadata_table`` is set for ``iceberg_snapshots('path')`` and ``iceberg_metadata('path')``.
    ``changes`` asks for what commits did to rows instead of rows. ``shown`` is the statement whose
    rows stand here instead of a table's, ``FROM (SHOW TABLES)``. ``offset`` and ``end`` are where
    its name stands in the SQL, ``given_alias`` is what it is called there where the SQL has no
    alias. ``place`` is where the names of a view are looked up; None: where USE has led.
    ``schema`` is "snapshot" or "current" where a clause says by which columns it is read, "" else.
    """

    index: int
    parts: tuple[str, ...]
    path: str | None = None
    travel: TimeTravel | None = None
    offset: int | None = None
    metadata_table: str | None = None
    changes: ChangeRange | None = None
    shown: Shown | Query | None = None
    end: int | None = None
    given_alias: str = ""
    place: Place | None = None
    schema: str = ""

    @property
    def name(self) -> str:
        """The name as messages show it: the path, or the parts joined by dots."""
        return self.path if self.path is not None else ".".join(self.parts)


class FileReference(Struct, frozen=True):
    """Files as one table: the function that reads them, paths or globs, and its options in SQL."""

    index: int
    function: str
    paths: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    offset: int | None = None

    @property
    def name(self) -> str:
        """Its name in the tree."""
        return f"__file_{self.index}"


class Query(Struct, frozen=True):
    """A SELECT, set operation, WITH or VALUES.

    Every Iceberg table in ``tree`` is a Table named ``"__scan_<i>"`` with an alias and stands
    at ``references[i]``, likewise ``"__file_<i>"`` in ``files``; parameters are literal or cast
    nodes. ``text`` is the SQL, from ``start`` on of all that was given. ``user_text`` is what may
    run in place of the tree, None where the SQL is not in DuckDB's spelling. ``spark`` is the same
    in Spark's spelling for the Spark engine, or why it may not run there, or what reads it once it
    is asked for; None for other spellings.
    ``refused`` is why ``tree`` may not run. ``translated`` is the dialect whose functions and
    operators the tree holds until binding puts them into DuckDB's, "" for none.
    ``only_text`` is what only the text can run: TABLESAMPLE or PIVOT, "" for neither.
    ``about`` is SUMMARIZE or DESCRIBE where the result is about the rows, "" where it is the rows.
    ``given`` are the parameters of all of the SQL, and how many of them come before this query's.
    ``temporary`` are the tables of the session that stand at ``"__temp_<i>"``. ``sources`` says
    which text each place is of where views are part of ``text``; None where it is all the user's.
    ``notes`` are told with the result.
    """

    tree: exp.Expression
    references: tuple[TableReference, ...]
    text: str = ""
    files: tuple[FileReference, ...] = ()
    start: int = 0
    spark: SparkText | Error | Callable[[], SparkText | Error] | None = None
    refused: Error | None = None
    user_text: UserText | None = None
    translated: str = ""
    about: str = ""
    only_text: str = ""
    given: tuple[Any, int] = (None, 0)
    temporary: tuple[Any, ...] = ()
    sources: Any = None
    notes: tuple[str, ...] = ()


class Explain(Struct, frozen=True):
    """EXPLAIN [ANALYZE] of a query.

    ``format`` is "text", "json", "tree" or "html", or "engine" for the plan of the engine in its
    own words. ``file`` is the path of EXPLAIN FILE, or the end of it. ``write`` is the statement
    WITH SCHEMA EVOLUTION whose rows the query gives.
    """

    query: Query
    analyze: bool = False
    format: str = "text"
    file: str | None = None
    write: Write | None = None


class Copy(Struct, frozen=True):
    """COPY (query) TO 'path': the rows of a query into a file of a format."""

    query: Query
    path: str
    format: FileFormat
    overwrite: bool = False


class SetSetting(Struct, frozen=True):
    """SET name = value; the value as text, unquoted."""

    name: str
    value: str


class ResetSetting(Struct, frozen=True):
    """RESET name; None for RESET ALL."""

    name: str | None


class SetSnapshotTime(Struct, frozen=True):
    """SET SNAPSHOT TIME = time: every table is read as it was then, unless a query says when."""

    time: TimeTravel


class Prepare(Struct, frozen=True):
    """PREPARE name AS query: the text of the query. Names are in lower case."""

    name: str
    sql: str


class Execute(Struct, frozen=True):
    """EXECUTE name(values): what its parameters are."""

    name: str
    values: tuple[Any, ...] = ()


class Deallocate(Struct, frozen=True):
    """DEALLOCATE name; None for ALL."""

    name: str | None


class SetVariable(Struct, frozen=True):
    """SET VARIABLE name = constant; None for RESET VARIABLE name. The name is in lower case."""

    name: str
    value: exp.Expression | Constant | None


class CreateView(Struct, frozen=True):
    """CREATE [OR REPLACE] TEMP VIEW [IF NOT EXISTS] name [(columns)] AS query."""

    name: str
    query: Query
    columns: tuple[str, ...] = ()
    replace: bool = False
    if_missing: bool = False


class CreateTable(Struct, frozen=True):
    """CREATE [OR REPLACE] TEMP TABLE [IF NOT EXISTS] name AS query, or with columns and no rows."""

    name: str
    query: Query
    columns: tuple[str, ...] = ()
    replace: bool = False
    if_missing: bool = False


class Drop(Struct, frozen=True):
    """DROP VIEW or TABLE [IF EXISTS] name; ``kind`` is the word. ``offset`` is that of the name."""

    kind: str
    name: str
    if_exists: bool = False
    offset: int | None = None


class Shown(Struct, frozen=True):
    """SHOW, DESCRIBE, DIFF SUMMARY, or a table of information_schema in FROM.

    ``what`` is the key of the rows in ``query.show.ANSWERS``, "PROCEDURES" or "INFORMATION_SCHEMA".
    ``reference`` is the table that they are about. ``namespace`` is where names are listed, None
    for the current one, or the catalog of information_schema. ``like`` is a pattern of names in any
    case, or a property. ``name`` is a setting, the dialect of functions, or a table of
    information_schema.
    """

    what: str
    reference: TableReference | None = None
    namespace: tuple[str, ...] | None = None
    like: str | None = None
    name: str = ""

    @property
    def label(self) -> str:
        """The words of the statement, for messages."""
        if self.what in ("DESCRIBE", "DIFF SUMMARY"):
            return self.what
        word = "DESCRIBE" if self.what in ("EXTENDED", "DETAIL") else "SHOW"
        return f"{word} {self.what}"


INFORMATION_SCHEMA: Final = (
    "schemata", "tables", "columns", "views", "table_constraints", "key_column_usage",
    "referential_constraints",
)  # fmt: skip


class Use(Struct, frozen=True):
    """USE namespace."""

    parts: tuple[str, ...]


class Write(Struct, frozen=True):
    """A statement that changes tables; see ``sql.writes.statements``."""


class TransactionControl(Write, frozen=True):
    """BEGIN, COMMIT or ROLLBACK."""

    verb: Literal["begin", "commit", "rollback"]


class MacroStatement(Struct, frozen=True):
    """A statement that changes which macros there are; see ``sql.macros.macro``."""


Prepared = Prepare | Execute | Deallocate
Created = CreateView | CreateTable | Drop

Commands = SetSetting | ResetSetting | SetSnapshotTime | SetVariable | Use | Prepared

Statement = Query | Copy | Explain | Commands | Shown | Created | MacroStatement | Write


def queries_versions(statement: object) -> bool:
    """Whether a query tells a version of the statement, and has to be asked before it is bound."""
    if isinstance(statement, Query):
        return any(has_query(each) for each in statement.references)
    if isinstance(statement, SetSnapshotTime):
        return query_of(statement.time) is not None
    reference = getattr(statement, "reference", None)
    return isinstance(reference, TableReference) and has_query(reference)


def has_query(reference: TableReference) -> bool:
    """Whether a query tells a version of the reference."""
    changes = reference.changes
    travels = (reference.travel,) if changes is None else (changes.start, changes.end)
    if any(query_of(each) is not None for each in travels):
        return True
    inner = getattr(reference.shown, "reference", None)
    return inner is not None and has_query(inner)


def query_of(travel: TimeTravel | None) -> ByQuery | None:
    """The query that tells a version."""
    found = travel.travel if isinstance(travel, Before) else travel
    return found if isinstance(found, ByQuery) else None
