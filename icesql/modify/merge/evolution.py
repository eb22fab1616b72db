"""The columns that MERGE WITH SCHEMA EVOLUTION adds: those that clauses copy unchanged.

EXPLAIN shows them, and those that INSERT adds.

Source: Spark ``MergeIntoTable.sourceSchemaForSchemaEvolution``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.iceberg.schema import Schema
from icesql.modify.evolution import Evolution
from icesql.modify.insert import insert_evolution
from icesql.modify.merge.values import unqualified
from icesql.modify.services import StatementServices
from icesql.modify.targets import find_named
from icesql.query.views.expansion import quoted_name
from icesql.sql.statement import Write
from icesql.sql.writes.merge.statement import Merge
from icesql.sql.writes.statements import Insert

Path = tuple[str, ...]


def merge_evolution(
    statement: Merge, schema: Schema, names: Sequence[str], columns: Sequence[ResultColumn]
) -> Evolution:
    """The evolution of the table by the source's ``columns``, which have these ``names``.

    UPDATE SET * and INSERT * add all columns of the source. An assignment adds the column, or the
    struct field, that it copies to the same path: ``SET x = s.x``. Other values add no column.
    """
    clauses = [each for each in statement.clauses if each.action in ("update", "insert")]
    given = [ResultColumn(name, each.type) for name, each in zip(names, columns, strict=True)]
    if any(each.star in ("all", "name") for each in clauses):
        return Evolution(given)
    wanted = {*_assigned(statement, schema)}
    kept = [(each.name, _kept(each.type, (each.name.lower(),), wanted)) for each in given]
    return Evolution([ResultColumn(name, type) for name, type in kept if type is not None])


def _assigned(statement: Merge, schema: Schema) -> Iterator[Path]:
    """The paths, in lower case, to which clauses copy the source's column at the same path."""
    taken = dict(statement.taken)
    for clause in statement.clauses:
        for number, each in enumerate(clause.values):
            path = taken.get(each.value) if each.value is not None else None
            if path is None:
                continue
            target = unqualified(each.path, schema, statement)
            if not target:  # VALUES without a list of columns
                target = tuple(field.name for field in schema.fields[number : number + 1])
            lower = tuple(name.lower() for name in path)
            if lower == tuple(name.lower() for name in target):
                yield lower


def _kept(type: ResultType, path: Path, wanted: Collection[Path]) -> ResultType | None:
    """The part of a type at the wanted paths or below; None if there is none."""
    if path in wanted:
        return type
    if type.kind != "struct":
        return None
    inner = [(name, _kept(child, (*path, name.lower()), wanted)) for name, child in type.children]
    kept = tuple((name, child) for name, child in inner if child is not None)
    return ResultType("struct", children=kept) if kept else None


def definitions_of(statement: Write, services: StatementServices) -> list[str]:
    """The ALTER TABLE statements that make the same changes, in their order. Changes nothing.

    Reads only the metadata of tables. Raises what the statement would raise about its columns.
    """
    assert isinstance(statement, Insert | Merge)
    _, table, _ = find_named(statement.table, services)
    schema = table.metadata.schema
    query = statement.query if isinstance(statement, Insert) else statement.source
    columns = services.columns_of(query)
    evolution: Evolution | None
    if isinstance(statement, Insert):
        evolution = insert_evolution(statement, table, columns)
    else:
        names = [each.name for each in columns]
        evolution = merge_evolution(statement, schema, names, columns)
    assert evolution is not None
    evolution.updates(table.metadata)
    name = ".".join(quoted_name(each, "") for each in table.identifier)
    return [f"{each.sql(name)};" for each in evolution.growth(schema)]
