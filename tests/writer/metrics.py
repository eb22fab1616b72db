"""The counts and bounds of a data file's columns."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from tests.writer.types import single_value

INTEGER_FORMS = {
    "date": pa.int32(),
    "time": pa.int64(),
    "timestamp": pa.int64(),
    "timestamptz": pa.int64(),
    "timestamp_ns": pa.int64(),
    "timestamptz_ns": pa.int64(),
}


def metrics(fields, table, truncate=16):
    """value, null and NaN counts and bounds by field id, of the primitive columns outside lists."""
    found = {
        "value_counts": {},
        "null_value_counts": {},
        "nan_value_counts": {},
        "lower_bounds": {},
        "upper_bounds": {},
    }

    def visit(field, column):
        type_ = field["type"]
        if isinstance(type_, dict):
            if type_["type"] == "struct":
                parent_null = pc.is_null(column)
                for index, child in enumerate(type_["fields"]):
                    values = column.field(index)
                    values = pc.if_else(parent_null, pa.scalar(None, values.type), values)
                    visit(child, values)
            return
        if type_ == "unknown":
            return
        _collect(found, field, column, truncate)

    for field in fields:
        if field["type"] != "unknown":
            visit(field, table.column(field["name"]).combine_chunks())
    return found


def _collect(found, field, column, truncate):
    field_id, type_ = field["id"], field["type"]
    found["value_counts"][field_id] = len(column)
    found["null_value_counts"][field_id] = column.null_count
    if type_ in ("float", "double"):
        nan = pc.is_nan(column)
        found["nan_value_counts"][field_id] = pc.sum(nan).as_py() or 0
    if type_ in INTEGER_FORMS:
        column = column.cast(INTEGER_FORMS[type_])
    values = [value for value in column.to_pylist() if value is not None]
    values = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
    if not values or type_ in ("geometry", "geography"):
        return
    # Total order of zeros: -0.0 is below 0.0.
    key = (lambda v: (v, math.copysign(1, v))) if type_ in ("float", "double") else None
    lower, upper = min(values, key=key), max(values, key=key)
    if type_ == "string":
        lower, upper = lower[:truncate], _string_above(upper, truncate)
    elif type_ == "binary":
        lower, upper = lower[:truncate], _bytes_above(upper, truncate)
    found["lower_bounds"][field_id] = single_value(type_, lower)
    if upper is not None:
        found["upper_bounds"][field_id] = single_value(type_, upper)


def _string_above(text, length):
    if len(text) <= length:
        return text
    cut = list(text[:length])
    while cut:
        code = ord(cut.pop()) + 1
        if code == 0xD800:
            code = 0xE000
        if code <= 0x10FFFF:
            return "".join(cut) + chr(code)
    return None


def _bytes_above(data, length):
    if len(data) <= length:
        return data
    cut = bytearray(data[:length])
    while cut:
        last = cut.pop()
        if last < 0xFF:
            return bytes(cut) + bytes([last + 1])
    return None
