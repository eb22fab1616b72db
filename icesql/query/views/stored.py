"""Views of catalogs: the choice of their SQL, the resolution of its names, and its restrictions.

A view's SQL is not trusted. It is read like the SQL of a connection that may read no files and no
tables by path, and it does not see objects of the session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.errors import (
    Error,
    ProgrammingError,
    TableNotFoundError,
    UnsupportedTableError,
    placing,
)
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.query.bind import scan_of
from icesql.query.columns import name_nested_queries
from icesql.query.dialects.spark.instants import written
from icesql.query.dialects.translate import translate
from icesql.query.views.expansion import MARK, expand, meant, quoted_name, whole
from icesql.query.views.temporary import View
from icesql.quoting import quoted
from icesql.sql.keywords import word_set
from icesql.sql.lexer import SPARK_NAMES, promised_name
from icesql.sql.parse import parse
from icesql.sql.parser.sqlglot_releases import write_sql
from icesql.sql.positions import unsupported
from icesql.sql.statement import Place, Query, TableReference
from icesql.sql.table_name import Parts

if TYPE_CHECKING:
    from icesql.catalog.table import StoredView
    from icesql.context import QueryContext
    from icesql.iceberg.metadata.views import Representation
    from icesql.iceberg.schema import Schema
    from icesql.query.session_state import SessionState


# ------------------------------------------------------------------ columns of a stored view


# The property in which Spark stores the query's column names of a view that renames them.
_QUERY_COLUMNS: Final = "spark.query-column-names"
_NAMES: Final[dict[type[t.IcebergType], str]] = {
    t.BooleanType: "BOOLEAN",
    t.IntegerType: "INTEGER",
    t.LongType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DateType: "DATE",
    t.TimeType: "TIME",
    t.TimestampType: "TIMESTAMP",
    t.TimestamptzType: "TIMESTAMP WITH TIME ZONE",
    t.TimestampNanoType: "TIMESTAMP_NS",
    t.StringType: "VARCHAR",
    t.UUIDType: "UUID",
    t.BinaryType: "BLOB",
    t.FixedType: "BLOB",
}
# Types that hold every value of the types on the right. A HUGEINT is a sum of integers; the cast
# raises an error if one is too large.
_WIDER: Final[Mapping[str, frozenset[str]]] = {
    "INTEGER": word_set("TINYINT SMALLINT UTINYINT USMALLINT"),
    "BIGINT": word_set("TINYINT SMALLINT INTEGER UTINYINT USMALLINT UINTEGER HUGEINT"),
    "DOUBLE": frozenset({"FLOAT"}),
    "VARCHAR": frozenset({"JSON"}),
}
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_NULL: Final = '"NULL"'


def select_list(
    view: str,
    schema: Schema,
    properties: Mapping[str, str],
    found: Sequence[tuple[str, str]],
) -> list[tuple[str, str, str]] | None:
    """For each column its name in the query, the type to cast it to ("" for none), its own name.

    None if the query returns exactly the declared columns. ``found`` are names and engine
    types of the query's columns. Raises ProgrammingError with the difference.
    """
    fields = schema.fields
    said = ", ".join(f"{each.name} {engine_name(each.type)}" for each in fields)
    if len(fields) != len(found):
        given = ", ".join(f"{name} {kind}" for name, kind in found)
        raise ProgrammingError(
            f'the view "{view}" says that it has the columns {said}, but its query gives {given}; '
            "replace the view in the system that made it"
        )
    named = query_names(properties)
    chosen: list[tuple[str, str, str]] = []
    differences = []
    for index, (field, (name, kind)) in enumerate(zip(fields, found, strict=True)):
        renamed = len(named) == len(fields) and _is_called(name.lower(), named, index)
        wanted = engine_name(field.type)
        if name.lower() != field.name.lower() and not renamed:
            differences.append(f'"{field.name}" is called "{name}" by its query')
        elif kind != wanted and not _holds(wanted, kind):
            differences.append(f'"{field.name}" is {wanted}, by its query {kind}')
        chosen.append((name, "" if kind == wanted else wanted, field.name))
    if differences:
        raise ProgrammingError(
            f'the columns of the view "{view}" have changed: {"; ".join(differences)}; '
            "replace the view in the system that made it"
        )
    if all(name == own and not cast for name, cast, own in chosen):
        return None
    return chosen


def query_names(properties: Mapping[str, str]) -> list[str]:
    """The names, in lower case, that Spark stored for the columns of a view's query."""
    return [each.strip().lower() for each in properties.get(_QUERY_COLUMNS, "").split(",")]


def _is_called(name: str, named: Sequence[str], index: int) -> bool:
    """Whether a column of the query has its stored name; DuckDB numbers repeated names."""
    wanted = named[index]
    if name == wanted or len(set(named)) == len(named):
        return name == wanted
    return re.fullmatch(rf"{re.escape(wanted)}(_\d+)+", name) is not None


def engine_name(node: t.IcebergType) -> str:
    """The name of a type in DuckDB's DESCRIBE."""
    match node:
        case t.DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case t.ListType():
            return f"{engine_name(node.element)}[]"
        case t.MapType():
            return f"MAP({engine_name(node.key)}, {engine_name(node.value)})"
        case t.StructType(fields):
            inner = ", ".join(f"{_quoted(each.name)} {engine_name(each.type)}" for each in fields)
            return f"STRUCT({inner})"
        case _:
            return _NAMES.get(type(node), str(node))


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else quoted(name)


def _holds(wanted: str, kind: str) -> bool:
    if kind == _NULL or kind in _WIDER.get(wanted, ()):
        return True
    one, other = _DECIMAL.fullmatch(wanted), _DECIMAL.fullmatch(kind)
    if one is not None and other is not None:
        digits = [int(each[1]) - int(each[2]) for each in (one, other)]
        return digits[0] >= digits[1] and int(one[2]) >= int(other[2])
    # Struct types may differ in the case and quotes of their fields' names.
    return wanted.lower().replace('"', "") == kind.lower().replace('"', "")


# ------------------------------------------------------------------ stored views


# The order of preference if a view has no SQL in the dialect of the connection.
_TRANSLATED: Final = ("spark", "trino", "snowflake")
_OWN: Final = "duckdb"
_VIEW: Final = "__stored"

# Returns the names and engine types of the columns of a query without views.
ColumnsOf = Callable[[Query], Sequence[tuple[str, str]]]


class StoredViews:
    """The views of catalogs that one statement reads."""

    def __init__(
        self,
        session: SessionState,
        dialect: str | None,
        query: QueryContext,
        columns_of: ColumnsOf,
    ) -> None:
        self._session, self._dialect, self._query = session, dialect, query
        self._columns_of = columns_of
        self._found: dict[tuple[Parts, Place | None], View | None] = {}
        self._open: list[str] = []

    def find(self, reference: TableReference, place: Place | None) -> View | None:
        """The view that a reference names; None for a table or an unknown name.

        Raises ProgrammingError if the view reads itself, if its columns changed or if its SQL is in
        no supported dialect, UnsupportedSqlError for SQL that a view may not have, and the errors
        of opening it.
        """
        if reference.path is not None or reference.shown is not None:
            return None
        key = reference.parts, place
        if key not in self._found:
            self._found[key] = self._view(reference, place)
        return self._found[key]

    def _view(self, reference: TableReference, place: Place | None) -> View | None:
        try:
            self._session.names.load(reference.parts, None, self._query, place)
        except (TableNotFoundError, UnsupportedTableError):
            pass
        else:
            return None
        wait, names = self._query.wait_for, self._session.names
        found = wait(lambda: names.open_view(reference.parts, place))
        if found is None:
            return None
        stored, catalog = found
        name = f"{stored.catalog}.{stored.name}"
        if name in self._open:
            chain = " → ".join([*self._open[self._open.index(name) :], name])
            raise ProgrammingError(f'the view "{stored.name}" reads itself: {chain}')
        self._open.append(name)
        try:
            return self._made(stored, catalog)
        finally:
            self._open.pop()

    def _made(self, stored: StoredView, catalog: str | None) -> View:
        place = self._place(stored, catalog)
        chosen, dialect = self._chosen(stored)
        is_own = _plain(dialect) == _plain(self._dialect)
        try:
            with placing(chosen.sql):
                query = self._read(chosen.sql, dialect)
                held = () if is_own else query.references
                query = query if is_own else self._in_own_words(query, place)
        except Error as error:
            error.view = error.view or stored.name
            error.args = (f'in view "{stored.name}": {error}',)
            raise
        schema = stored.metadata.schema
        known = replace(place, references=held)
        view = View(stored.name, query, (), known, None if is_own else dialect, schema)
        columns = self._columns_of(self._alone(view))
        listed = select_list(stored.name, schema, stored.metadata.properties, columns)
        if listed is None:
            return view
        items = ", ".join(self._item(*each) for each in listed)
        names = query_names(stored.metadata.properties)
        places = ""
        if len(set(names)) < len(names):
            # Each engine numbers repeated names in its own way.
            quoted = ", ".join(quoted_name(name, self._dialect) for name, _, _ in listed)
            places = f"({quoted})"
        return replace(view, before=f"SELECT {items} FROM (", after=f"\n) AS view_query{places}")

    def _item(self, name: str, kind: str, called: str) -> str:
        column = quoted_name(name, self._dialect)
        if kind:
            cast = exp.cast(exp.column(name, quoted=True), kind, dialect="duckdb")
            column = cast.sql(dialect=promised_name(self._dialect))
        return f"{column} AS {quoted_name(called, self._dialect)}"

    def _alone(self, view: View) -> Query:
        """A query of all columns of a view, before they are checked."""

        def find(reference: TableReference, place: Place | None) -> View | None:
            return view if place is None else self.find(reference, place)

        return expand(whole(_VIEW, self._dialect), find, self._dialect, files=False)

    def _place(self, stored: StoredView, catalog: str | None) -> Place:
        """The place in which its names are resolved; ``catalog`` is the one that has the view."""
        wanted = stored.metadata.default_catalog
        if wanted is not None and wanted.lower() != stored.catalog.lower():
            own = self._session.names.catalog
            known = self._session.names.catalog_kinds()
            if own is not None and wanted.lower() == own.name.lower():
                catalog = None
            elif wanted.lower() in {each.lower() for each in known}:
                catalog = wanted
            else:
                raise ProgrammingError(
                    f'the view "{stored.name}" reads tables of the catalog "{wanted}", which this '
                    f"connection does not have; there are: {', '.join(known) or 'none'}"
                )
        return Place(catalog, stored.metadata.default_namespace, stored=True)

    def _chosen(self, stored: StoredView) -> tuple[Representation, str | None]:
        """The chosen SQL and its dialect."""
        by_dialect = {
            _plain(each.dialect): each for each in reversed(stored.metadata.representations)
        }
        own = _plain(self._dialect)
        if own in by_dialect:
            return by_dialect[own], self._dialect
        if own == _OWN:
            for each in _TRANSLATED:
                if each in by_dialect:
                    return by_dialect[each], each
        held = ", ".join(each.dialect for each in stored.metadata.representations) or "none"
        reads = own if own != _OWN else ", ".join((_OWN, *_TRANSLATED))
        raise ProgrammingError(
            f'the view "{stored.name}" has SQL for: {held}; this connection reads {reads}'
        )

    def _read(self, sql: str, dialect: str | None) -> Query:
        statements = parse(sql, dialect=dialect)
        if len(statements) != 1 or not isinstance(statements[0], Query) or statements[0].about:
            raise unsupported("a view that is not one query", None)
        query = statements[0]
        for reference in query.references:
            if reference.path is not None:
                raise unsupported("a table by its path in a view", reference.offset)
            if reference.shown is not None:
                raise unsupported("SHOW or DESCRIBE in a view", reference.offset)
        return query

    def _in_own_words(self, query: Query, place: Place) -> Query:
        """A query of another dialect translated to DuckDB's, its tables by the same references."""
        if query.refused is not None:
            raise query.refused
        schemas = [self._schema(each, place) for each in query.references]
        tree = query.tree.copy()
        name_nested_queries(tree, query.references)
        translate(tree, schemas, query.translated, self._query.settings.timezone)
        for table in tree.find_all(exp.Table):
            if table.name.startswith("__scan_"):
                marked = table.name.replace("__scan_", MARK)
                table.set("this", exp.to_identifier(marked, quoted=True))
        made = self._read(write_sql(written(tree), "duckdb"), None)
        known = replace(place, references=query.references)
        references = tuple(meant(replace(each, place=known)) for each in made.references)
        return replace(made, references=references)

    def _schema(self, reference: TableReference, place: Place) -> Schema:
        """The columns of a table or view that a view reads."""
        view = self.find(reference, place)
        if view is not None and view.schema is not None:
            return view.schema
        return scan_of(replace(reference, place=place), self._session, self._query).schema


def _plain(dialect: str | None) -> str:
    """The canonical name of a dialect: duckdb, spark, trino, snowflake."""
    name = promised_name(dialect)
    return "spark" if name in SPARK_NAMES else name
