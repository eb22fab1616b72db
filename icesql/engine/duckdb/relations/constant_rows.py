"""Rows that replace files whose values all follow from metadata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from icesql.engine.duckdb.relations.relation import Relation, stream_relation
from icesql.iceberg.schema import Schema
from icesql.quoting import quoted

_COPIES: Final = "copies"
# A power of two; DuckDB holds one side of a cross product in memory.
_MOST_COPIES: Final = 1 << 20


def constant_rows(
    index: int,
    projection: Schema,
    rows: Sequence[tuple[object, ...]],
    counts: Sequence[int],
) -> Relation:
    """The rows, each repeated by its number in ``counts``; once if ``counts`` is empty.

    A row is repeated by cross products with ranges of powers of two: DuckDB makes 100 million rows
    in about a second, and takes 20 times longer with a function that is called for each row.
    """
    import pyarrow as pa

    from icesql.read.columns.values import column_of

    pairs = list(_products(rows, counts)) if counts else [(row, 1) for row in rows]
    columns: dict[str, Any] = {
        f"c{column.field_id}": column_of([row[place] for row, _ in pairs], column.type)
        for place, column in enumerate(projection.fields)
    }
    name = f"__constants_{index}"
    if not counts:
        return stream_relation(projection, name, pa.table(columns))
    columns[_COPIES] = pa.array([copies for _, copies in pairs], pa.int64())
    plain = stream_relation(projection, name, pa.table(columns))
    sql = " UNION ALL ".join(
        f"{plain.sql}, range({copies}) WHERE {quoted(_COPIES)} = {copies}"
        for copies in sorted({copies for _, copies in pairs})
    )
    return Relation(sql, registered=plain.registered)


def _products(
    rows: Sequence[tuple[object, ...]], counts: Sequence[int]
) -> Iterator[tuple[tuple[object, ...], int]]:
    """Each row with powers of two that add up to its count; the greatest may come several times."""
    for row, count in zip(rows, counts, strict=True):
        for _ in range(count // _MOST_COPIES):
            yield row, _MOST_COPIES
        rest, copies = count % _MOST_COPIES, 1
        while rest:
            if rest & 1:
                yield row, copies
            rest, copies = rest >> 1, copies * 2
