"""Decide for which columns of a file a dictionary pays, by the first rows.

A dictionary of values that hardly repeat is built, found too large and discarded, which costs time
and bytes. With such dictionaries an INSERT of 1.5 million rows of TPC-H's lineitem takes 1.3
times the CPU time, and an eighth more bytes (tests/benchmarks insert).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_SAMPLE: Final = 1 << 15
_FEWEST: Final = 20_000
# Shares of distinct values above which a column gets no dictionary.
_MOST_OF_NUMBERS: Final = 0.2
_MOST_OF_TEXTS: Final = 0.7
# After so many equal partitions in a row, only one of as many is examined.
_AGREEING: Final = 6


def unrepeated_columns(rows: pa.Table) -> frozenset[str]:
    """The names of columns whose values hardly repeat; nested columns are ignored."""
    sample = rows.slice(0, _SAMPLE)
    if sample.num_rows < _FEWEST:
        return frozenset()
    found = []
    for field, column in zip(sample.schema, sample.columns, strict=True):
        kind = field.type
        if pa.types.is_nested(kind) or pa.types.is_boolean(kind):
            continue
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
            column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
        is_text = pa.types.is_string(kind) or pa.types.is_binary(kind)
        most = _MOST_OF_TEXTS if is_text else _MOST_OF_NUMBERS
        # ``unique`` of the combined chunks takes half the time of counting distinct values.
        if len(pc.unique(column.combine_chunks())) > most * len(column):
            found.append(field.name)
    return frozenset(found)


class PlainColumns:
    """The columns without a dictionary in the files of each partition of a write.

    Once several partitions in a row agree, the next few are assumed to be alike, and then one is
    examined again: examining each of 84 took an eighth of the CPU time of an INSERT by month.
    Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: frozenset[str] | None = None
        self._agreeing = self._unseen = 0

    def of(self, rows: pa.Table) -> frozenset[str]:
        """The columns for a partition that begins with ``rows``."""
        if rows.num_rows < _FEWEST:
            return frozenset()
        with self._lock:
            latest = self._latest
            if latest is not None and self._agreeing >= _AGREEING and self._unseen < _AGREEING:
                self._unseen += 1
                return latest
        found = unrepeated_columns(rows)
        with self._lock:
            self._agreeing = self._agreeing + 1 if found == self._latest else 1
            self._latest, self._unseen = found, 0
        return found


def leaf_paths(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(path in the Parquet schema, top-level column) of every leaf.

    >>> list(leaf_paths([pa.field("a", pa.list_(pa.int32())), pa.field("b", pa.int32())]))
    [('a.list.element', 'a'), ('b', 'b')]
    """
    for field in fields:
        path, kind = prefix + field.name, field.type
        top = path.partition(".")[0] if prefix else field.name
        if pa.types.is_struct(kind):
            inner, below = list(kind), f"{path}."
        elif pa.types.is_map(kind):
            inner = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
            below = f"{path}.key_value."
        elif pa.types.is_list(kind):
            inner, below = [kind.value_field.with_name("element")], f"{path}.list."
        else:
            yield path, top
            continue
        yield from ((each, top) for each, _ in leaf_paths(inner, below))
