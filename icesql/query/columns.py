"""Compute the columns that each scan exposes, and rewrite their names in the tree.

A scan exposes the columns that its statement names, all of them for ``*``, none for that of
EXISTS (SELECT * …). Unknown names are rejected here, with the nearest known names. Metadata
columns such as ``_file`` are exposed only if they are named; ``*`` excludes them. Columns of
one table that differ only in case are exposed as ``__col_<field id>``, since engines match names
case-insensitively.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace
from sqlglot import exp

from icesql.errors import ColumnNotFoundError, UnsupportedSqlError, similar_names
from icesql.iceberg.schema import METADATA_COLUMNS, Schema, partition_column
from icesql.iceberg.types import NestedField
from icesql.query.names import (
    PARTITION,
    FromItem,
    Meaning,
    SelectScope,
    find_column,
    meaning_of,
    scan_index,
)
from icesql.query.pushdown.select_forms import EXISTS_PARTS, has_only
from icesql.quoting import quoted
from icesql.sql.edited_text import NAME, SQL, Edit
from icesql.sql.positions import offset_of, unsupported
from icesql.sql.statement import TableReference

if TYPE_CHECKING:
    from icesql.scan.plan import TableScan

# Names for columns computed by a nested query without an alias.
#
# The engine would use the text of the expression, which contains icesql's internal table names.


def name_nested_queries(tree: exp.Expr, references: Sequence[TableReference]) -> None:
    """Alias these columns by their text with the user's table names."""
    found = [
        (column, _text(column, references))
        for select in tree.find_all(exp.Select)
        for column in select.expressions
        if not isinstance(column, exp.Alias)
        and any(scan_index(table) is not None for table in column.find_all(exp.Table))
    ]
    for column, name in found:
        named = exp.Alias(alias=exp.to_identifier(name, quoted=True))
        column.replace(named)
        named.set("this", column)


def _text(column: exp.Expr, references: Sequence[TableReference]) -> str:
    column = column.copy()
    for table in list(column.find_all(exp.Table)):
        index = scan_index(table)
        if index is None:
            continue
        reference = references[index]
        written: exp.Expr = exp.Identifier(this=reference.name, quoted=False)
        if reference.path is not None:
            written = exp.Anonymous(
                this="iceberg_scan", expressions=[exp.Literal.string(reference.path)]
            )
        implied = reference.parts[-1] if reference.path is None else "iceberg_scan"
        alias = table.alias if table.alias != implied else None
        table.replace(exp.Table(this=written, alias=alias and exp.to_identifier(alias)))
    return str(column.sql(dialect="duckdb", normalize_functions="lower"))


# Names without a column that DuckDB evaluates itself.
_PSEUDO: Final = frozenset(
    {
        "user",
        "current_user",
        "session_user",
        "current_role",
        "current_time",
        "localtime",
        "localtimestamp",
        "current_localtimestamp",
        "all",
        "default",
    }
)
_OF_THE_SESSION: Final = frozenset({"current_schema", "current_catalog", "current_database"})


def bind_columns(
    tree: exp.Expr,
    scopes: Sequence[SelectScope],
    scans: tuple[TableScan, ...],
    edits: list[Edit],
) -> tuple[TableScan, ...]:
    """The scans with the columns that they must expose.

    Names in ``tree`` are rewritten in place, ``scopes`` are its SELECTs; the same changes to
    its source text are appended to ``edits``. Raises
    ColumnNotFoundError, AmbiguousColumnError, and UnsupportedSqlError where columns that differ
    only in case cannot be distinguished.
    """
    binder = _Binder(tuple(_Exposed(scan) for scan in scans), edits)
    understood = {id(item.node): item for scope in scopes for item in scope.items}
    for table in tree.find_all(exp.Table):
        index = scan_index(table)
        if index is not None and id(table) not in understood:
            # Outside any analysed FROM (PIVOT).
            binder.exposed[index].whole = True
    for scope in scopes:
        binder.bind(scope)
    for scope in scopes:
        binder.rewrite_stars(scope)
    for scope in binder.numbered:
        binder.check_numbers(scope)
    return tuple(each.projected() for each in binder.exposed)


class _Exposed(Struct):
    """The columns that one scan exposes, collected while the tree is walked."""

    scan: TableScan
    whole: bool = False
    needed: dict[int, NestedField] = field(default_factory=dict)
    clashing: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        fields = self.scan.schema.fields
        named = Counter(column.name.lower() for column in fields)
        self.clashing = frozenset(each.field_id for each in fields if named[each.name.lower()] > 1)

    def find(self, name: str, node: exp.Expr) -> NestedField | None:
        """The column with this name: exact, else case-insensitive, else a metadata column."""
        found = find_column(self.scan.schema, name, node)
        if found is not None:
            return found
        lower = name.lower()
        if self.scan.metadata_table is not None or self.scan.changes is not None:
            return None
        if lower == PARTITION:
            return united_partition_column(self.scan)
        return METADATA_COLUMNS.get(lower)

    @property
    def metadata_columns(self) -> list[NestedField]:
        """The exposed metadata columns, which ``*`` must leave out."""
        own = self.scan.schema.field_by_id
        return [each for each in self.needed.values() if each.field_id not in own]

    def exposed_name(self, column: NestedField) -> str:
        return f"__col_{column.field_id}" if column.field_id in self.clashing else column.name

    def projected(self) -> TableScan:
        columns = [
            replace(column, name=self.exposed_name(column))
            for column in self.scan.schema.fields
            if self.whole or column.field_id in self.needed
        ]
        fields = (*columns, *self.metadata_columns)
        projection = Schema(fields, schema_id=self.scan.schema.schema_id)
        return replace(self.scan, projection=projection)


class _Binder(Struct):
    exposed: Sequence[_Exposed]
    edits: list[Edit]
    # SELECTs that name columns by number.
    numbered: list[SelectScope] = field(default_factory=list)

    def bind(self, scope: SelectScope) -> None:
        """Collect the columns that a SELECT names; check and rewrite their names."""
        self._joins(scope)
        aliases: frozenset[str] | None = None
        for node in list(scope.own_nodes()):
            match node:
                case exp.Column() if isinstance(node.this, exp.Star):
                    self._table_star(node, scope)
                case exp.Star() if not isinstance(node.parent, exp.Count | exp.Column):
                    if not _is_for_existence(node, scope):
                        self._star(scope, "")
                case exp.Columns() | exp.Pivot():
                    self._star(scope, "")
                case exp.PositionalColumn():
                    self._star(scope, "")
                    self.numbered.append(scope)
                case exp.Column():
                    meaning = meaning_of(node, scope)
                    if aliases is None:
                        aliases = scope.aliases
                    self._column(node, meaning, scope, aliases)

    def _joins(self, scope: SelectScope) -> None:
        for item, exposed in self._of(scope.items):
            exposed.whole = exposed.whole or item.columns is None
        for join in (item.join for item in scope.items if item.join is not None):
            if join.method == "NATURAL":
                self._star(scope, "")
                self._refuse_clashes(scope, "NATURAL JOIN", join.this)
            for name in join.args.get("using") or ():
                for each, exposed in self._of(scope.items):
                    column = exposed.find(name.name, name) if each.columns is not None else None
                    if column is not None:
                        exposed.needed[column.field_id] = column
                        if column.field_id in exposed.clashing:
                            raise _clash(f"USING ({name.name})", exposed, name)

    def _of(self, items: Iterable[FromItem]) -> Iterator[tuple[FromItem, _Exposed]]:
        """The items that are scans, each with its columns."""
        return ((item, self.exposed[item.scan]) for item in items if item.scan is not None)

    def _refuse_clashes(self, scope: SelectScope, construct: str, node: exp.Expr) -> None:
        for _, exposed in self._of(scope.items):
            if exposed.clashing:
                raise _clash(construct, exposed, node)

    def _star(self, scope: SelectScope, table: str) -> None:
        for item, exposed in self._of(scope.items):
            exposed.whole = exposed.whole or not table or item.name == table.lower()

    def _table_star(self, star: exp.Column, scope: SelectScope) -> None:
        """``t.*``, or ``s.*`` and ``t.s.*`` of a struct."""
        names = [part.copy() for part in star.parts[:-1]]
        if len(names) == 1 and any(item.name == names[0].name.lower() for item in scope.items):
            self._star(scope, names[0].name)
            return
        column = column_at(names, star)
        meaning = meaning_of(column, scope)
        if meaning.items:
            self._column(column, meaning, scope, frozenset())
        else:
            self._star(scope, names[-1].name)

    def _column(
        self, node: exp.Column, meaning: Meaning, scope: SelectScope, aliases: frozenset[str]
    ) -> None:
        for item, exposed in self._of(meaning.items):
            column = exposed.find(meaning.path[0], node) if item.columns is not None else None
            if column is None:
                continue
            exposed.needed[column.field_id] = column
            if column.field_id in exposed.clashing and len(meaning.items) == 1:
                _rename(node, meaning, exposed.exposed_name(column), scope, self.edits)
        if not meaning.items:
            self._unknown(node, meaning, scope, aliases)

    def _unknown(
        self, node: exp.Column, meaning: Meaning, scope: SelectScope, aliases: frozenset[str]
    ) -> None:
        """Check a name without a column: a whole row, an alias, the engine's own, or a mistake."""
        first = meaning.path[0].lower()
        items = [item for each in scope.around() for item in each.items]
        named = [item for item in items if item.name == first]
        for _, exposed in self._of(named):
            exposed.whole = exposed.whole or len(meaning.path) == 1
        if not meaning.certain or _means_no_column(node):
            return
        if len(meaning.path) > 1:
            if len(named) == 1 and named[0].scan is not None:
                raise self._not_found(node, meaning.path[1], named)
            return
        if named or first in aliases or any(first in each.aliases for each in scope.around()):
            return
        if first in _OF_THE_SESSION:
            # The engine would return its own values, not the session's.
            raise unsupported(f"{first} without parentheses", node, f"write {first}()")
        if first in _PSEUDO or not items:
            return
        raise self._not_found(node, meaning.path[0], items)

    def _not_found(
        self, node: exp.Expr, name: str, items: Sequence[FromItem]
    ) -> ColumnNotFoundError:
        scans = [exposed.scan for _, exposed in self._of(items)]
        names = {column.name: None for scan in scans for column in scan.schema.fields}
        names |= {each: None for item in items for each in sorted(item.columns or ())}
        distinct: dict[str, str] = {}
        for each in names:
            distinct.setdefault(each.lower(), each)
        tables = {scan.table.name for scan in scans}
        is_row_id = bool(scans) and name.lower() == "rowid"  # other systems' row number
        return ColumnNotFoundError(
            name,
            table=tables.pop() if len(tables) == 1 and len(items) == len(scans) else None,
            similar=("_pos",) if is_row_id else similar_names(name, distinct.values()),
            offset=offset_of(node),
        )

    # -------------------------------------------------------------- stars

    def rewrite_stars(self, scope: SelectScope) -> None:
        """Exclude metadata columns from ``*`` and restore the names of clashing columns."""
        for node in list(scope.own_nodes("expressions")):
            if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
                if _is_for_existence(node, scope):
                    continue
                table = node.parent.table if isinstance(node.parent, exp.Column) else ""
                given = list(node.args.get("except_") or ())
                for item, exposed in self._of(scope.items):
                    if not item.is_filter_only and (not table or item.name == table.lower()):
                        self._rewrite_star(node, item, exposed)
                self.edits += _star_edits(node, given)
            elif isinstance(node, exp.Columns):
                self._refuse_clashes(scope, "COLUMNS", node)

    def check_numbers(self, scope: SelectScope) -> None:
        """Refuse ``#2``, the number of a column in FROM, beside metadata columns."""
        for item, exposed in self._of(scope.items):
            if exposed.metadata_columns:
                raise unsupported(
                    "a column by its number (#1) beside metadata columns",
                    item.node,
                    "name the column",
                )

    def _rewrite_star(self, star: exp.Star, item: FromItem, exposed: _Exposed) -> None:
        for each in exposed.metadata_columns:
            hidden = exp.column(each.name, table=item.node.alias_or_name, quoted=True)
            star.append("except_", hidden)
        if not exposed.clashing:
            return
        if star.args.get("except_") or star.args.get("rename") or star.args.get("replace"):
            raise _clash("EXCLUDE, REPLACE and RENAME", exposed, star)
        for column in exposed.scan.schema.fields:
            if column.field_id in exposed.clashing:
                old = exp.column(exposed.exposed_name(column), quoted=True)
                star.append("rename", exp.alias_(old, column.name, quoted=True))


def _is_for_existence(star: exp.Star, scope: SelectScope) -> bool:
    """True for the star of EXISTS (SELECT * FROM … WHERE …), whose values are never read."""
    select = scope.select
    around = select.parent.parent if isinstance(select.parent, exp.Subquery) else select.parent
    return (
        isinstance(around, exp.Exists)
        and star.parent is select
        and not any(star.args.values())
        and has_only(select, EXISTS_PARTS)
    )


def column_at(names: Sequence[exp.Expr], place: exp.Expr) -> exp.Column:
    """A column of these names, with the parent of the node ``place``."""
    parts = ("this", "table", "db", "catalog")
    made = exp.Column(**dict(zip(parts, reversed(names), strict=False)))
    made.parent = place.parent
    return made


def _star_edits(star: exp.Star, given: Sequence[exp.Expr]) -> list[Edit]:
    """Edits of the text for the columns that a star leaves out and renames."""
    left_out = ", ".join(
        ".".join(quoted(part.name) for part in each.parts)
        for each in (star.args.get("except_") or ())[len(given) :]
    )
    renamed = ", ".join(
        f"{quoted(each.this.name)} AS {quoted(each.alias)}"
        for each in (star.args.get("rename") or () if not given else ())
        if each.this.name.startswith("__col_")
    )
    end = star.meta.get("end")
    if end is None or not (left_out or renamed):
        return []
    if given and left_out:
        start, stop = given[0].meta["place"]
        if given[0].meta["in_list"]:
            return [Edit(start, start, SQL, f"{left_out}, ")]
        return [Edit(start, start, SQL, "("), Edit(stop, stop, SQL, f", {left_out})")]
    sql = f" EXCLUDE ({left_out})" if left_out else ""
    return [Edit(end + 1, end + 1, SQL, sql + (f" RENAME ({renamed})" if renamed else ""))]


def _rename(
    node: exp.Column, meaning: Meaning, name: str, scope: SelectScope, edits: list[Edit]
) -> None:
    parts = list(node.parts)
    place = parts[len(parts) - len(meaning.path)]
    assert isinstance(place, exp.Identifier)
    start, end = place.meta.get("start"), place.meta.get("end")
    if start is not None and end is not None:
        edits.append(Edit(start, end + 1, NAME, name))
    written = node.parts[-1].name
    place.set("this", name)
    place.set("quoted", True)
    if node.parent is scope.select and node.arg_key == "expressions":
        # The result column keeps the table's name for it.
        node.replace(exp.alias_(node.copy(), written, quoted=True))


def _means_no_column(node: exp.Column) -> bool:
    """True at places where an identifier is not necessarily a column."""
    parent = node.parent
    if isinstance(parent, exp.Star | exp.PropertyEQ | exp.Kwarg | exp.Interval | exp.TableAlias):
        return True
    if isinstance(parent, exp.Alias) and isinstance(parent.parent, exp.Star):
        return True
    return node.find_ancestor(exp.Lambda, exp.Pivot, exp.UnpivotColumns) is not None


def _clash(construct: str, exposed: _Exposed, node: exp.Expr) -> UnsupportedSqlError:
    names = [
        column.name for column in exposed.scan.schema.fields if column.field_id in exposed.clashing
    ]
    return unsupported(
        f'{construct} over table "{exposed.scan.table.name}", whose columns '
        f"{' and '.join(names)} differ only in case",
        node,
        "name the columns in double quotes",
    )


def united_partition_column(scan: TableScan) -> NestedField | None:
    """``_partition`` of a scan's table; None for a table that was never partitioned."""
    from icesql.iceberg.metadata.table_metadata import united_partition_type

    united = united_partition_type(scan.table.metadata)
    return partition_column(united) if united.fields else None
