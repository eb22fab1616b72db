"""Predicates and content files as JSON, the form in which REST catalogs take and give them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import field
from msgspec.structs import asdict

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.calendar import days_from_civil, units_per_day
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    SETS,
    UNARY,
    And,
    Leaf,
    Operation,
    Or,
    Predicate,
    Term,
    negated,
)
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.json_fields import Malformed, as_list, as_object, as_text, of_file
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.single_value import parse_single_value, single_value_json
from icesql.iceberg.types import IcebergType, is_floating

_SPELLINGS: Final = {each: each.name.lower().replace("_", "-") for each in Operation}
_OPERATIONS: Final = {spelling: operation for operation, spelling in _SPELLINGS.items()}
# Java reads the years from 1 to 9999.
_FIRST_DAY, _LAST_DAY = days_from_civil(1, 1, 1), days_from_civil(9999, 12, 31)


class _NoForm(Exception):
    """A value that JSON, or Java's reading of it, has no form for."""


def predicate_json(predicate: Predicate, schema: Schema) -> Any:
    """``predicate`` or a weaker one as JSON; ``True`` if no part of it has a JSON form.

    Weaker where a leaf has no form that every server reads alike: transforms, bytes, columns in
    lists and maps or with dots in their names, years that four digits do not hold. Servers order
    -0.0 before 0.0, which are equal here, so a comparison with zero becomes a range.
    """
    match predicate:
        case And(left, right):
            return _joined("and", predicate_json(left, schema), predicate_json(right, schema))
        case Or(left, right):
            return _joined("or", predicate_json(left, schema), predicate_json(right, schema))
        case Leaf():
            try:
                return _leaf_json(predicate, schema)
            except _NoForm:
                return True
        case _:
            return predicate is not ALWAYS_FALSE


def parse_predicate(json: Any, schema: Schema) -> Predicate:
    """The predicate of a JSON value, or a stronger one: its leaves are false for NULL.

    Raises Malformed for JSON that is not a predicate, or names a column or a value that ``schema``
    does not have.
    """
    if isinstance(json, bool):
        return ALWAYS_TRUE if json else ALWAYS_FALSE
    node = as_object(json, "an expression")
    kind = as_text(node.get("type"), "the type of an expression").lower().replace("_", "-")
    match kind:
        case "true" | "false":
            return ALWAYS_TRUE if kind == "true" else ALWAYS_FALSE
        case "literal" if isinstance(node.get("value"), bool):
            return ALWAYS_TRUE if node["value"] else ALWAYS_FALSE
        case "not":
            return negated(parse_predicate(node.get("child"), schema))
        case "and" | "or":
            left = parse_predicate(node.get("left"), schema)
            right = parse_predicate(node.get("right"), schema)
            return left & right if kind == "and" else left | right
    operation = _OPERATIONS.get(kind)
    if operation is None:
        raise Malformed(f"{kind[:60]!r} is no expression that is known")
    return _parse_leaf(operation, node, schema)


# ---------------------------------------------------------------------- to JSON


def _joined(kind: str, left: Any, right: Any) -> Any:
    neutral = kind == "and"
    if left is neutral or right is (not neutral):
        return right
    if right is neutral or left is (not neutral):
        return left
    return {"type": kind, "left": left, "right": right}


def _leaf_json(leaf: Leaf, schema: Schema) -> Any:
    field_id = leaf.term.field_id
    field = schema.field_by_id.get(field_id)
    if field is None or leaf.term.transform != "identity" or schema.inside_repeated(field_id):
        raise _NoForm
    if any("." in each.name for each in (field, *schema.ancestors(field_id))):
        raise _NoForm
    term, operation, type = schema.name_by_id[field_id], leaf.operation, field.type
    if operation in UNARY:
        if "nan" in _SPELLINGS[operation] and not t.is_floating(type):
            raise _NoForm
        return {"type": _SPELLINGS[operation], "term": term}
    if operation in SETS:
        if t.is_floating(type) and 0.0 in leaf.literal:
            raise _NoForm
        values = sorted((value_json(type, each) for each in leaf.literal), key=repr)
        return {"type": _SPELLINGS[operation], "term": term, "values": values}

    def one(operation: Operation, value: Any) -> Any:
        spelled = value_json(type, value)
        return {"type": _SPELLINGS[operation], "term": term, "value": spelled}

    if isinstance(type, t.UUIDType) and operation not in (Operation.EQ, Operation.NOT_EQ):
        raise _NoForm  # servers differ in the order of these
    if t.is_floating(type) and leaf.literal == 0:
        match operation:
            case Operation.EQ:
                return _joined("and", one(Operation.GT_EQ, -0.0), one(Operation.LT_EQ, 0.0))
            case Operation.GT_EQ | Operation.LT:
                return one(operation, -0.0)
            case Operation.LT_EQ | Operation.GT:
                return one(operation, 0.0)
            case _:
                raise _NoForm
    return one(operation, leaf.literal)


def value_json(type: t.IcebergType, value: Any) -> Any:
    """A value in the internal form of a primitive type as a JSON single value."""
    match type:
        case t.BooleanType() | t.DecimalType() | t.UUIDType() | t.TimeType():
            return single_value_json(type, value)
        case t.IntegerType() | t.LongType():
            if not -(1 << 63) <= value < 1 << 63:
                raise _NoForm
            return value
        case t.FloatType() | t.DoubleType():
            if not math.isfinite(value):
                raise _NoForm
            return float(value)
        case t.StringType():
            try:
                cast("str", value).encode()
            except (UnicodeEncodeError, AttributeError) as error:
                raise _NoForm from error
            return value
        case t.DateType() | t.AnyTimestamp():
            if not _FIRST_DAY <= value // units_per_day(type) <= _LAST_DAY:
                raise _NoForm
            return single_value_json(type, value)
        case _:
            raise _NoForm


# ---------------------------------------------------------------------- from JSON


def _parse_leaf(operation: Operation, node: Mapping[str, Any], schema: Schema) -> Predicate:
    named = node.get("term")
    if isinstance(named, Mapping) and named.get("type") == "reference":
        named = named.get("term")
    if not isinstance(named, str):
        raise Malformed("an expression over a transform or over nothing")
    ids = [each for each, name in schema.name_by_id.items() if name == named]
    if len(ids) != 1:
        raise Malformed(f"an expression over the column {named[:100]!r}")
    (field_id,) = ids
    term, type = Term(field_id, named), schema.field_by_id[field_id].type
    if operation in UNARY:
        return Leaf(operation, term)
    if operation in SETS:
        values = as_list(node.get("values"), "the values of an expression")
        return Leaf(operation, term, frozenset(_literal(type, each) for each in values))
    return Leaf(operation, term, _literal(type, node.get("value")))


def _literal(type: t.IcebergType, json: Any) -> Any:
    if isinstance(json, Mapping) and json.get("type") == "literal":
        json = json.get("value")
    value = parse_single_value(type, json) if isinstance(type, t.PrimitiveType) else None
    if value is None:
        raise Malformed(f"an expression compares a column of type {type} with {str(json)[:60]!r}")
    return value


# ------------------------------------------------------------------ content files
# Source: Iceberg's OpenAPI specification, "ScanTasks", "ContentFile"; Java ``ContentFileParser``.


_NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")


class CountMap(Frozen):
    """Numbers by field id."""

    keys: list[int]
    values: list[int]


class ContentFile(Frozen, rename="kebab"):
    """A file as it was sent. Bounds and most counts are left aside: only planning needs them."""

    spec_id: int
    content: str
    path: str = field(name="file-path")
    file_format: str
    file_size_in_bytes: int
    record_count: int
    partition: list[Any] | dict[str, Any] | None = None
    column_sizes: CountMap | None = None
    nan_value_counts: CountMap | None = None
    key_metadata: str | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None


class FileTask(Frozen, rename="kebab"):
    """One data file, the indexes of its delete files, and the residual filter."""

    data_file: ContentFile
    delete_file_references: list[int] | None = None
    residual_filter: msgspec.Raw = msgspec.Raw(b"")


class ScanTasks(Frozen, rename="kebab"):
    """One response with tasks; each of ``plan_tasks`` is a token for further tasks to fetch."""

    file_scan_tasks: list[FileTask] | None = None
    delete_files: list[ContentFile] | None = None
    plan_tasks: list[str] | None = None


def data_file(sent: ContentFile, spec: PartitionSpec, types: Sequence[IcebergType]) -> DataFile:
    """The file of a manifest entry, without sequence numbers, which are not sent.

    ``types`` are those of the fields of ``spec``. Raises Malformed.
    """
    # Java wrote FileContent's own names before 1.11.
    content = FileContent.__members__.get(sent.content.upper().replace("-", "_"))
    if content is None:
        raise Malformed(f"{sent.content[:60]!r} is no content of a file")
    if sent.file_size_in_bytes < 0:
        raise Malformed(f"a file of {sent.file_size_in_bytes} bytes")
    read = {
        "content": content,
        "file_format": sent.file_format.upper(),
        "partition": _partition(sent.partition, spec, types),
        "record_count": of_file([sent.record_count])[0],
        "column_sizes": _counts(sent.column_sizes),
        "nan_value_counts": _counts(sent.nan_value_counts),
        "key_metadata": None if sent.key_metadata is None else sent.key_metadata.encode(),
    }
    return DataFile(**(asdict(sent) | read))


def _partition(
    sent: list[Any] | dict[str, Any] | None, spec: PartitionSpec, types: Sequence[IcebergType]
) -> tuple[Any, ...]:
    """The values by the fields of the spec; an object has them by field id, without the NULLs."""
    if isinstance(sent, dict):
        known = {str(each.field_id) for each in spec.fields}
        if not known.issuperset(sent):
            raise Malformed(f"a partition of other fields than those of spec {spec.spec_id}")
        values = [sent.get(str(each.field_id)) for each in spec.fields]
    else:
        values = sent or []
    if len(values) != len(types):
        raise Malformed(
            f"a partition of {len(values)} values, where spec {spec.spec_id} has {len(types)}"
        )
    return tuple(_value(type, value) for type, value in zip(types, values, strict=True))


def _value(type: IcebergType, sent: Any) -> Any:
    if sent in _NO_NUMBERS and is_floating(type):
        return float(sent)  # as Java writes them, though it does not read them
    return parse_single_value(type, sent)


def _counts(sent: CountMap | None) -> dict[int, int] | None:
    if sent is None:
        return None
    if len(sent.keys) != len(sent.values):
        raise Malformed("counts with another number of columns than of values")
    return dict(zip(sent.keys, sent.values, strict=True))
