"""EXPLAIN of a statement that changes columns together with rows."""

from __future__ import annotations

from icesql.modify.evolution import Evolution
from icesql.modify.insert import insert_evolution
from icesql.modify.merge.evolution import merge_evolution
from icesql.modify.services import StatementServices
from icesql.modify.targets import find_named
from icesql.query.views.expansion import quoted_name
from icesql.sql.statement import Write
from icesql.sql.writes.merge.statement import Merge
from icesql.sql.writes.statements import Insert


def definitions_of(statement: Write, services: StatementServices) -> list[str]:
    """The ALTER TABLE statements that change the columns so, in their order. Changes nothing.

    Of tables only metadata is read. Raises what the statement would raise of its columns.
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
