"""Types, values and predicates as the tables of tests write them.

A type is its name in metadata JSON, and a value is the JSON form of a single value of its type, or
the integer that is its internal form: days, microseconds, nanoseconds.
A predicate joins comparisons such as ``x <= 5``, ``x IN [1, 2]``, ``x IS NULL`` and
``bucket[4](x) = 3`` by AND or by OR.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from functools import reduce
from typing import Any
from uuid import UUID

from icesql.iceberg.expressions.literals import NanoTimestamp
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
)
from icesql.iceberg.schema import Schema
from icesql.iceberg.single_value import parse_single_value
from icesql.iceberg.transforms import parse_transform
from icesql.iceberg.types import IcebergType, is_floating
from tests.columns import columns as columns_of
from tests.columns import type_of as read_type

__all__ = ["columns", "read_predicate", "read_python", "read_type", "read_value"]
CONSTANTS = {"true": ALWAYS_TRUE, "false": ALWAYS_FALSE}
# Longer spellings come first: "<=" before "<".
OPERATIONS = "|".join(sorted((each.value for each in Operation), key=len, reverse=True))
LEAF = re.compile(rf"(?:(\S+)\((.+?)\)|(.+?)) ({OPERATIONS})(?: (.+))?")


KINDS: dict[str, Callable[[str], Any]] = {
    "Decimal": Decimal,
    "float": float,
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "UUID": UUID,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
    "EpochMicros": lambda text: NanoTimestamp(int(text) * 1000, zoned=False),
    "NanoTimestamp": lambda text: NanoTimestamp(int(text), zoned=False),
}


def read_value(kind: IcebergType, text: str) -> Any:
    """A value in the internal form of its type."""
    return _internal(kind, json.loads(text))


def _internal(kind: IcebergType, value: Any) -> Any:
    is_number = type(value) is int and not is_floating(kind)
    return value if is_number else parse_single_value(kind, value)


def columns(*described: str) -> Schema:
    """A schema of columns like ``id long`` and ``d date!``, with ids from 1 on."""
    return Schema(columns_of(",".join(described)))


def read_python(text: str) -> Any:
    """A value of Python: a literal, or the text of another value behind the name of its kind."""
    kind, _, rest = text.partition(" ")
    return KINDS[kind](rest) if kind in KINDS else ast.literal_eval(text)


def read_predicate(text: str, schema: Schema) -> Predicate:
    """A predicate on columns of ``schema``, whose types its literals have."""
    for word, join in ((" OR ", operator.or_), (" AND ", operator.and_)):
        if word in text:
            return reduce(join, (read_predicate(each, schema) for each in text.split(word)))
    if text in CONSTANTS:
        return CONSTANTS[text]
    found = LEAF.fullmatch(text)
    assert found is not None, text
    transform, name, operation = found[1] or "identity", found[2] or found[3], Operation(found[4])
    (field_id,) = (each for each, known in schema.name_by_id.items() if known == name)
    term = Term(field_id, name, transform)
    if found[5] is None:
        return Leaf(operation, term)
    kind = parse_transform(transform).result_type(schema.field_by_id[field_id].type)
    literal = json.loads(found[5])
    if operation in (Operation.IN, Operation.NOT_IN):
        return Leaf(operation, term, frozenset(_internal(kind, each) for each in literal))
    return Leaf(operation, term, _internal(kind, literal))
