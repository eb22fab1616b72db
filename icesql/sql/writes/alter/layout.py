"""The layout of new files of a table: partition fields, sort order, identifier fields.

Spark's ``ADD PARTITION FIELD`` and ``WRITE ORDERED BY``, DuckDB's ``SET PARTITIONED BY`` and
``SET SORTED BY``, Trino's ``SET PROPERTIES partitioning = …``, Hive's ``SET PARTITION SPEC``.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from icesql.sql.cursor import TokenCursor
from icesql.sql.positions import unsupported
from icesql.sql.statement import Write
from icesql.sql.table_name import Parts
from icesql.sql.writes.create import read_clauses
from icesql.sql.writes.definitions import (
    read_ordering,
    read_partitioning,
    read_sort_term,
    read_term,
)
from icesql.sql.writes.statements import PartitionTerm, Properties, SortTerm, TableName

Distribution = Literal["none", "hash", "range"]


class ChangeLayout(Write):
    """Changes of one table's layout in one commit.

    ``partitioning`` and ``ordering`` replace the whole, None leaves it unchanged; ``add`` and
    ``drop`` are single partition fields, those to drop by name or transform. ``distribution`` is
    the ``write.distribution-mode`` that goes with an order. ``lenient``: skip fields of ``add``
    that exist and fields of ``drop`` that do not.
    """

    table: TableName
    partitioning: tuple[PartitionTerm, ...] | None = None
    add: tuple[PartitionTerm, ...] = ()
    drop: tuple[PartitionTerm, ...] = ()
    ordering: tuple[SortTerm, ...] | None = None
    distribution: Distribution | None = None
    properties: Properties = ()
    unset: tuple[str, ...] = ()
    lenient: bool = False


class SetIdentifierFields(Write):
    """SET or DROP IDENTIFIER FIELDS: the columns that identify a row, which is not enforced."""

    table: TableName
    paths: tuple[Parts, ...]
    drop: bool = False


def read_layout(words: TokenCursor, table: TableName) -> Write | None:
    """Read the layout change after ALTER TABLE and its name; None if it is none."""
    if words.skip("ADD PARTITION FIELD"):
        unless = words.skip("IF NOT EXISTS")
        return ChangeLayout(table, add=(_named_term(words),), lenient=unless)
    if words.skip("DROP PARTITION FIELD"):
        exists = words.skip("IF EXISTS")
        return ChangeLayout(table, drop=(read_term(words),), lenient=exists)
    if words.skip("REPLACE PARTITION FIELD"):
        gone = read_term(words)
        words.need("WITH")
        return ChangeLayout(table, add=(_named_term(words),), drop=(gone,))
    if words.skip("SET PARTITIONED BY") or words.skip("SET PARTITION SPEC"):
        return ChangeLayout(table, partitioning=read_partitioning(words))
    if words.skip("RESET PARTITIONED BY"):
        return ChangeLayout(table, partitioning=())
    if words.skip("SET SORTED BY"):
        return ChangeLayout(table, ordering=tuple(words.bracketed(read_sort_term)))
    if words.skip("RESET SORTED BY"):
        return ChangeLayout(table, ordering=())
    if words.peek() == "WRITE" and words.peek(1) in _WRITE:
        words.index += 1
        return _write_order(words, table)
    if words.peek() in ("SET", "DROP") and words.peek(1) == "IDENTIFIER":
        drop = words.peek() == "DROP"
        words.index += 1
        words.need("IDENTIFIER FIELDS")
        paths = words.listed(lambda: words.name("a column"))
        return SetIdentifierFields(table, tuple(paths), drop)
    if words.peek(2) != "(" and words.skip("SET PROPERTIES"):
        return _of_trino(words, table)
    return None


_WRITE = ("ORDERED", "UNORDERED", "LOCALLY", "DISTRIBUTED")


def _named_term(words: TokenCursor) -> PartitionTerm:
    term = read_term(words)
    return replace(term, name=words.identifier("a name")) if words.skip("AS") else term


def _write_order(words: TokenCursor, table: TableName) -> ChangeLayout:
    """Read ``[DISTRIBUTED BY PARTITION] [[LOCALLY] ORDERED BY … | UNORDERED]``, in any order."""
    distribution: Distribution | None = None
    ordering: tuple[SortTerm, ...] | None = None
    by_partition = False
    while words.token is not None:
        if not by_partition and words.skip("DISTRIBUTED BY PARTITION"):
            by_partition = True
        elif ordering is None and words.skip("UNORDERED"):
            ordering, distribution = (), "none"
        elif ordering is None and words.skip("LOCALLY"):
            words.need("ORDERED BY")
            ordering, distribution = _terms(words), "none"
        elif ordering is None and words.skip("ORDERED BY"):
            ordering, distribution = _terms(words), "range"
        else:
            raise words.unexpected("ORDERED BY", "UNORDERED", "DISTRIBUTED BY PARTITION")
    if by_partition:
        distribution = "hash"
    return ChangeLayout(table, ordering=ordering or (), distribution=distribution)


def _terms(words: TokenCursor) -> tuple[SortTerm, ...]:
    if words.peek() != "(":
        return read_ordering(words)
    return tuple(words.bracketed(read_sort_term))


def _of_trino(words: TokenCursor, table: TableName) -> ChangeLayout:
    """Read ``partitioning = ARRAY['day(ts)'], sorted_by = ARRAY['id'], format_version = 3``."""
    at = words.here
    found = read_clauses(words)
    if found.location is not None:
        raise unsupported("a new location of a table", at, "CREATE TABLE … AS SELECT")
    return ChangeLayout(
        table,
        found.partitioning,
        ordering=found.ordering,
        properties=tuple(found.properties),
        unset=tuple(found.unset),
    )
