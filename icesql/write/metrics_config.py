"""The metrics to keep for each column of a data file, by the table's properties.

Source: Iceberg's MetricsConfig; the properties ``write.metadata.metrics.*``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.iceberg.schema import Schema

_DEFAULT: Final = "write.metadata.metrics.default"
_COLUMN: Final = "write.metadata.metrics.column."
_MOST_INFERRED: Final = "write.metadata.metrics.max-inferred-column-defaults"
_FIELDS: Final = 100
_TRUNCATE: Final = re.compile(r"truncate\(\s*(\d+)\s*\)")


class MetricsMode(Frozen):
    """The metrics to keep of a column: sizes and counts, and bounds of at most ``length``.

    ``length`` is None for full bounds, 0 for none. It counts code points or bytes, and applies to
    strings and binary only.
    """

    counts: bool = True
    length: int | None = 16

    @property
    def has_bounds(self) -> bool:
        """True if bounds are kept."""
        return self.length != 0


NONE: Final = MetricsMode(counts=False, length=0)
COUNTS: Final = MetricsMode(length=0)
FULL: Final = MetricsMode(length=None)
DEFAULT: Final = MetricsMode()


def parse_mode(text: str) -> MetricsMode | None:
    """The mode that ``text`` spells, in any case; None for an unknown one.

    >>> parse_mode("Truncate(5)"), parse_mode("truncate(0)"), parse_mode("half")
    (MetricsMode(counts=True, length=5), None, None)
    """
    plain = text.strip().lower()
    known = {"none": NONE, "counts": COUNTS, "full": FULL}.get(plain)
    found = _TRUNCATE.fullmatch(plain)
    if known is not None or found is None:
        return known
    return MetricsMode(length=int(found[1])) if int(found[1]) > 0 else None


def metrics_modes(
    schema: Schema, properties: Mapping[str, str], sorted_ids: Iterable[int] = ()
) -> dict[int, MetricsMode]:
    """The mode of every field at any depth, by field id.

    ``sorted_ids`` are the columns of the sort order whose transforms preserve order: they have
    bounds unless a property of the column says otherwise. An invalid mode is ignored, as in Java.
    """
    given = properties.get(_DEFAULT)
    default = DEFAULT if given is None else parse_mode(given) or DEFAULT
    modes = dict.fromkeys(schema.field_by_id, default)
    most = whole_number(properties.get(_MOST_INFERRED))
    most = _FIELDS if most is None else most
    if given is None and len(schema.field_by_id) > most:
        inferred = set(_first_primitives(schema.fields, most))
        modes = {each: default if each in inferred else NONE for each in modes}
    for each in sorted_ids:
        if each in modes and not modes[each].has_bounds:
            modes[each] = DEFAULT
    for field_id, name in schema.name_by_id.items():
        own = properties.get(_COLUMN + name)
        mode = None if own is None else parse_mode(own)
        if mode is not None:
            modes[field_id] = mode
    return modes


def _first_primitives(fields: tuple[t.NestedField, ...], most: int) -> Iterator[int]:
    """The ids of the first primitive fields, level by level."""
    level, found = list(fields), 0
    while level:
        below: list[t.NestedField] = []
        for each in level:
            inner = t.children(each.type)
            below += inner
            if not inner:
                if found == most:
                    return
                found += 1
                yield each.field_id
        level = below
