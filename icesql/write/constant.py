"""One value of the table as a whole column: the default of a column that is not given."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icesql.iceberg import types as t
from icesql.write.parquet_schema import written_type
from icesql.write.values.nulls import null_array


def constant_array(value: Any, type: t.IcebergType, count: int) -> pa.Array:
    """``count`` times ``value``, in the internal form of ``iceberg.types``, in the stored type."""
    target = written_type(type)
    if value is None:
        return null_array(count, target)
    if isinstance(type, t.UUIDType):
        return pa.repeat(pa.scalar(value, pa.binary(16)), count).cast(target)
    if pa.types.is_temporal(target):
        base = pa.int32() if pa.types.is_date(target) else pa.int64()
        return pa.repeat(pa.scalar(value, base), count).cast(target)
    return (
        pa.array([_python(value, type)] * count, target)
        if t.children(type)
        else pa.repeat(pa.scalar(value, target), count)
    )


def _python(value: Any, type: t.IcebergType) -> Any:
    """A nested default as pyarrow takes it."""
    if value is None:
        return None
    match type:
        case t.StructType(fields):
            made = {}
            for each in fields:
                given = value.get(each.field_id, t.MISSING)
                default = None if each.write_default is t.MISSING else each.write_default
                made[each.name] = _python(default if given is t.MISSING else given, each.type)
            return made
        case t.ListType():
            return [_python(each, type.element) for each in value]
        case t.MapType():
            return [(_python(k, type.key), _python(v, type.value)) for k, v in value]
        case _:
            return constant_array(value, type, 1)[0].as_py()
