"""Statement values: one frozen class for each kind of statement that icesql accepts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal

from icesql.file_format import FileFormat
from icesql.frozen import Frozen
from icesql.sql.edited_text import UserText
from icesql.sql.keywords import word_list
from icesql.sql.table_name import Parts
from icesql.sql.time_travel import Before, ByQuery, TimeTravel

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.errors import Error
    from icesql.sql.cursor import Constant
    from icesql.sql.spark_sql import SparkText
    from icesql.sql.time_travel import ChangeRange


class Place(Frozen):
    """The context in which the names in a view are resolved: that of its creation.

    ``catalog`` is None for the connection's own. ``stored``: the view belongs to a catalog, and
    sees nothing that belongs to this session. ``references`` are the tables of its SQL if the SQL
    was translated; the translated SQL names them by index.
    """

    catalog: str | None
    namespace: Parts
    stored: bool = False
    references: tuple[Any, ...] = ()


class TableReference(Frozen):
    """One reference of a statement to an Iceberg table; ``"__scan_<index>"`` in its tree.

    ``parts`` are the names as written (``a.b.c`` → 3). ``path`` is set only for
    ``iceberg_scan('path')`` and its like, whose ``parts`` is the last piece of the path.
    ``metadata_table`` is set for ``iceberg_snapshots('path')`` and ``iceberg_metadata('path')``.
    ``changes`` selects the changes that commits made to rows, instead of rows. ``shown`` is the
    statement whose rows replace the table, ``FROM (SHOW TABLES)``. ``offset`` and ``end`` are the
    span of its name in the SQL; ``given_alias`` is its alias if the SQL has none. ``place`` is the
    context for the names of a view; None: that of the last USE. ``schema`` is "snapshot" or
    "current" if a clause chooses the schema for reading, "" otherwise.
    """

    index: int
    parts: Parts
    path: str | None = None
    travel: TimeTravel | None = None
    offset: int | None = None
    metadata_table: str | None = None
    changes: ChangeRange | None = None
    shown: Any = None
    end: int | None = None
    given_alias: str = ""
    place: Place | None = None
    schema: str = ""

    @property
    def name(self) -> str:
        """The name for messages: the path, or the parts joined by dots."""
        return self.path if self.path is not None else ".".join(self.parts)


class FileReference(Frozen):
    """Files as one table: the reading function, paths or globs, and its options in SQL."""

    index: int
    function: str
    paths: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    offset: int | None = None

    @property
    def name(self) -> str:
        """The name of the table in the tree."""
        return f"__file_{self.index}"


class Query(Frozen):
    """A SELECT, set operation, WITH or VALUES.

    Every Iceberg table in ``tree`` is a Table named ``"__scan_<i>"`` with an alias, and has the
    index ``i`` in ``references``; likewise ``"__file_<i>"`` in ``files``. Parameters are literal or
    cast nodes. ``text`` is the SQL; its offset in all of the given SQL is ``start``. ``user_text``
    is the text that may run in place of the tree, None if the SQL is not in DuckDB's spelling.
    ``spark`` is, for SQL in Spark's spelling, the text for the Spark engine, the error that
    prevents running it there, or a function that returns one of them; None for other spellings.
    ``refused`` is the error that prevents running ``tree``. ``translated`` is the dialect whose
    functions and operators the tree holds until binding converts them to DuckDB's, "" for none.
    ``only_text`` is a construct that only the text can run: TABLESAMPLE or PIVOT, "" for neither.
    ``about`` is SUMMARIZE or DESCRIBE if the result is about the rows, "" if it is the rows.
    ``given`` are the parameters of all of the SQL, and the number of those before this query.
    ``temporary`` are the session's tables with the names ``"__temp_<i>"``. ``sources`` maps each
    offset to the text that it is from if ``text`` contains views; None if all is the user's.
    ``notes`` are shown with the result. ``for_explain`` makes binding also write the text of each
    condition and its outcome, which takes time.
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
    for_explain: bool = False

    def placing(self) -> AbstractContextManager[None]:
        """A context that translates the offsets of errors to those of the texts it was made of."""
        return nullcontext() if self.sources is None else self.sources.placing()


class Explain(Frozen):
    """EXPLAIN [ANALYZE] of a query.

    ``format`` is "text", "json", "tree" or "html", or "engine" for the engine's own plan. ``file``
    is the path of EXPLAIN FILE, or the end of it. ``write`` is the statement WITH SCHEMA EVOLUTION
    whose rows the query returns.
    """

    query: Query
    analyze: bool = False
    format: str = "text"
    file: str | None = None
    write: Write | None = None


class Copy(Frozen):
    """COPY (query) TO 'path': write the rows of a query to a file of a format."""

    query: Query
    path: str
    format: FileFormat
    overwrite: bool = False


class SetSetting(Frozen):
    """SET name = value; ``value`` is text without quotes."""

    name: str
    value: str


class ResetSetting(Frozen):
    """RESET name; ``name`` None is RESET ALL."""

    name: str | None


class SetSnapshotTime(Frozen):
    """SET SNAPSHOT TIME = time: read every table as of then, unless a query has its own clause."""

    time: TimeTravel


class Prepare(Frozen):
    """PREPARE name AS query; ``sql`` is the text of the query, ``name`` is in lower case."""

    name: str
    sql: str


class Execute(Frozen):
    """EXECUTE name(values)."""

    name: str
    values: tuple[Any, ...] = ()


class Deallocate(Frozen):
    """DEALLOCATE name; ``name`` None is DEALLOCATE ALL."""

    name: str | None


class SetVariable(Frozen):
    """SET VARIABLE name = value; ``value`` None is RESET VARIABLE. ``name`` is in lower case."""

    name: str
    value: exp.Expression | Constant | None


class CreateTemporary(Frozen):
    """CREATE [OR REPLACE] TEMP VIEW or TABLE [IF NOT EXISTS] name [(columns)] AS query.

    ``kind`` is the word VIEW or TABLE. The query of a table that is made with columns has no rows.
    """

    kind: str
    name: str
    query: Query
    columns: tuple[str, ...] = ()
    replace: bool = False
    if_missing: bool = False


class Drop(Frozen):
    """DROP VIEW or TABLE [IF EXISTS] name; ``kind`` is the word, ``offset`` that of the name."""

    kind: str
    name: str
    if_exists: bool = False
    offset: int | None = None


class Shown(Frozen):
    """SHOW, DESCRIBE, DIFF SUMMARY, or a table of information_schema in FROM.

    ``what`` is the key of the rows in ``query.show``, "PROCEDURES" or "INFORMATION_SCHEMA".
    ``reference`` is the described table. ``namespace`` is the one whose names are listed, None
    for the current one, or the catalog of information_schema. ``like`` is a case-insensitive
    pattern of names, or a property. ``name`` is a setting, the dialect of functions, or a table of
    information_schema.
    """

    what: str
    reference: TableReference | None = None
    namespace: Parts | None = None
    like: str | None = None
    name: str = ""

    @property
    def label(self) -> str:
        """The words of the statement, for messages."""
        if self.what in ("DESCRIBE", "DIFF SUMMARY"):
            return self.what
        word = "DESCRIBE" if self.what in ("EXTENDED", "DETAIL") else "SHOW"
        return f"{word} {self.what}"


INFORMATION_SCHEMA: Final = word_list(
    "schemata tables columns views table_constraints key_column_usage referential_constraints"
)


class Use(Frozen):
    """USE namespace."""

    parts: Parts


class Write(Frozen):
    """A statement that changes tables; see ``sql.writes.statements``."""


class TransactionControl(Write):
    """BEGIN, COMMIT or ROLLBACK."""

    verb: Literal["begin", "commit", "rollback"]


class MacroStatement(Frozen):
    """A statement that creates or drops macros; see ``sql.macro``."""


Prepared = Prepare | Execute | Deallocate
Created = CreateTemporary | Drop

Commands = SetSetting | ResetSetting | SetSnapshotTime | SetVariable | Use | Prepared

Statement = Query | Copy | Explain | Commands | Shown | Created | MacroStatement | Write


def queries_versions(statement: object) -> bool:
    """True if the statement has a query that returns a version, and must run before binding."""
    if isinstance(statement, Query):
        return any(has_query(each) for each in statement.references)
    if isinstance(statement, SetSnapshotTime):
        return query_of(statement.time) is not None
    reference = getattr(statement, "reference", None)
    return isinstance(reference, TableReference) and has_query(reference)


def has_query(reference: TableReference) -> bool:
    """True if a query returns a version of the reference."""
    changes = reference.changes
    travels = (reference.travel,) if changes is None else (changes.start, changes.end)
    if any(query_of(each) is not None for each in travels):
        return True
    inner = getattr(reference.shown, "reference", None)
    return inner is not None and has_query(inner)


def query_of(travel: TimeTravel | None) -> ByQuery | None:
    """Return the query that returns a version; None for other time travel."""
    found = travel.travel if isinstance(travel, Before) else travel
    return found if isinstance(found, ByQuery) else None
