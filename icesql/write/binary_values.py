"""Converts values to variants and geometries (WKB), types with a binary form of their own."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg import variant as p
from icesql.iceberg.variant import DEEPEST, NULL, Node
from icesql.read.columns.arrow_schema import VARIANT_BYTES
from icesql.read.columns.variant import leaf_nodes, variant_bytes
from icesql.read.formats.file_fields import is_list
from icesql.write.casts import Misfit, list_elements, list_lengths, map_pairs, plain_array
from icesql.write.parquet_schema import InnerColumn

_JSON: Final = "arrow.json"


def variant_array(values: pa.Array) -> pa.Array:
    """``values`` as ``VARIANT_BYTES``. Raises Misfit for a string that is not JSON, and for types
    without a variant type."""
    if values.type == VARIANT_BYTES:
        return values
    plain = plain_array(values)
    nodes = _texts(plain) if pa.types.is_string(plain.type) else _nodes(values)
    return variant_bytes(nodes, plain.is_null() if plain.null_count else None)


def _texts(texts: pa.Array) -> list[Node | None]:
    return [
        None if text is None else _parsed(text, row) for row, text in enumerate(texts.to_pylist())
    ]


# ------------------------------------------------------------------ typed values


def _nodes(values: pa.Array) -> list[Node | None]:
    """The values as nodes, None for NULL; nested JSON values are parsed."""
    is_json = isinstance(values.type, pa.BaseExtensionType) and (
        values.type.extension_name == _JSON
    )
    plain = plain_array(values)
    kind = plain.type
    if is_json:
        return _texts(plain)
    if pa.types.is_null(kind):
        return [None] * len(plain)
    if pa.types.is_struct(kind):
        return _objects(plain)
    if pa.types.is_map(kind):
        return _maps(plain)
    if is_list(kind):
        return _divided(_filled(list_elements(plain)), plain)
    try:
        found: Sequence[Node | None] | None = leaf_nodes(plain, narrow=True)
    except (ValueError, pa.ArrowInvalid) as error:
        raise Misfit(-1, str(error)) from error
    if found is None:
        raise Misfit(-1, f"a value of type {kind} cannot be stored in it; CAST it")
    return list(found)


def _filled(values: pa.Array) -> list[Node]:
    return [NULL if each is None else each for each in _nodes(values)]


def _divided(items: Iterable[Any], lists: pa.Array) -> list[Any]:
    """The items of each list, None for NULL."""
    left, lengths = iter(items), list_lengths(lists).to_pylist()
    return [
        [*islice(left, length)] if present else None
        for length, present in zip(lengths, lists.is_valid().to_pylist(), strict=True)
    ]


def _objects(values: pa.Array) -> list[Node | None]:
    names = [values.type.field(index).name for index in range(values.type.num_fields)]
    columns = [_filled(pc.struct_field(values, [index])) for index in range(len(names))]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise Misfit(-1, f"the struct has two fields {twice[0]!r}")
    return [
        {name: column[row] for name, column in zip(names, columns, strict=True)}
        if present
        else None
        for row, present in enumerate(values.is_valid().to_pylist())
    ]


def _maps(values: pa.Array) -> list[Node | None]:
    if not pa.types.is_string(plain_array(values.keys).type):
        raise Misfit(-1, "the keys of a map that becomes a variant are texts; CAST them")
    pairs = map_pairs(values)
    flat = list_elements(pairs)
    keys = plain_array(pc.struct_field(flat, [0])).to_pylist()
    items = _filled(pc.struct_field(flat, [1]))
    divided = _divided(zip(keys, items, strict=True), pairs)
    return [None if each is None else dict(each) for each in divided]


# ------------------------------------------------------------------ JSON


def _parsed(text: str, row: int) -> Node:
    try:
        return _checked(_decoder.decode(text), 0)
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = str(error).replace("Expecting value", "no value")
    raise Misfit(row, f"{text!r:.80} is no JSON: {reason}; a text is written as '\"text\"'")


def _checked(value: Any, depth: int) -> Node:
    """A parsed JSON value as a node."""
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    if isinstance(value, dict):
        return {name: _checked(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list):
        return [_checked(each, depth + 1) for each in value]
    if isinstance(value, str):
        return p.of_text(value)
    if value is None:
        return NULL
    if isinstance(value, bool):
        return p.of_bool(value)
    assert isinstance(value, bytes)
    return value


def _whole(text: str) -> bytes:
    return p.of_int(int(text)) if len(text) <= 38 else _double(text)


def _fraction(text: str) -> bytes:
    """A decimal if it can hold all digits; with an exponent a double, as in Spark."""
    if "e" not in text.lower():
        try:
            return p.of_decimal(Decimal(text))
        except ValueError:
            pass
    return _double(text)


def _double(text: str) -> bytes:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text:.20}… is too large a number")
    return p.of_double(value)


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"the name {name!r:.80} is there twice")
        made[name] = value
    return made


_decoder: Final = json.JSONDecoder(
    parse_int=_whole, parse_float=_fraction, parse_constant=_constant, object_pairs_hook=_object
)


# ------------------------------------------------------------------ geometries
# Source: OGC 06-103r4, section 8, and ISO 13249-3 for coordinates with z and m.


# Least and greatest x, y, z, m; infinities in reverse order for a dimension without values.
Box = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
# The places in a box of a point's coordinates, by the thousands of its type.
_PLACES: Final = ([0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 2, 3])
_POINT, _LINE, _POLYGON, _MULTIPOINT = 1, 2, 3, 4
_DEEPEST: Final = 50


class Extent(Frozen):
    """Facts about the geometries of a column: the number of NULLs, and the box around all others.

    The box is None if it is unknown.
    """

    nulls: int
    box: Box | None


def geometry_array(type: t.IcebergType, values: pa.Array) -> pa.Array:
    """``values`` as WKB. Raises Misfit for values of other types, and for invalid WKB."""
    values = plain_array(values)
    if pa.types.is_string(values.type):
        raise Misfit(-1, "a text is no geometry; CAST it: 'POINT (1 2)'::GEOMETRY")
    if not pa.types.is_binary(values.type):
        raise Misfit(-1, f"a value of type {values.type} cannot be stored in it; give its WKB")
    walk = _Walk()
    for row, value in enumerate(values.to_pylist()):
        if value is None:
            continue
        try:
            walk.whole(value)
        except (struct.error, IndexError, ValueError) as error:
            reason = error if isinstance(error, ValueError) else "it ends early"
            raise Misfit(row, f"the bytes are no WKB of a {type}: {reason}") from error
    return values


def extents(table: pa.Table, columns: Sequence[InnerColumn]) -> dict[int, Extent]:
    """The extent of each column in ``table``, by field id.

    Of a geography only points have a box: edges between points can leave theirs on a sphere.
    """
    found: dict[int, Extent] = {}
    for each in columns:
        values, on_sphere = each.of(table), isinstance(each.type, t.GeographyType)
        walk = _Walk()
        for value in values.to_pylist():
            if value is not None:
                walk.whole(value)
            if on_sphere and not walk.points_alone:
                break
        is_known = walk.points_alone or not on_sphere
        found[each.field_id] = Extent(values.null_count, walk.box if is_known else None)
    return found


def bounds(found: Sequence[Extent]) -> tuple[bytes, bytes] | None:
    """The lower and upper bound of a column from its extents; None if there is none."""
    low, high = _no_box()
    for each in found:
        if each.box is None:
            return None
        low, high = np.minimum(low, each.box[0]), np.maximum(high, each.box[1])
    if low[0] > high[0] or low[1] > high[1]:
        return None
    return _bound(low, high), _bound(high, low)


def _no_box() -> Box:
    return np.full(4, math.inf), np.full(4, -math.inf)


def _bound(own: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> bytes:
    has_z, has_m = (math.isfinite(own[place]) and math.isfinite(other[place]) for place in (2, 3))
    values = [*own[:2]]
    if has_z or has_m:
        values.append(own[2] if has_z else math.nan)
    if has_m:
        values.append(own[3])
    return struct.pack(f"<{len(values)}d", *values)


class _Walk:
    """Parses the coordinates of WKB values; ``box`` is around all of them."""

    def __init__(self) -> None:
        self.box, self.points_alone = _no_box(), True

    def whole(self, data: bytes) -> None:
        """Parse all bytes of a value. Raises ValueError, struct.error and IndexError."""
        self._data, self._at = data, 0
        self._geometry(0)
        if self._at != len(self._data):
            raise ValueError("bytes are left behind it")

    def _geometry(self, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        order = self._data[self._at]
        if order > 1:
            raise ValueError(f"its byte order is {order}")
        sign = "<" if order else ">"
        (code,) = struct.unpack_from(f"{sign}I", self._data, self._at + 1)
        self._at += 5
        kind, dimensions = code % 1000, code // 1000
        if dimensions > 3 or not 1 <= kind <= 7:
            hint = "; it is EWKB, whose SRID is to be left out" if code >> 29 else ""
            raise ValueError(f"its type is {code}{hint}")
        self.points_alone &= kind in (_POINT, _MULTIPOINT)
        if kind == _POINT:
            self._points(sign, dimensions, 1)
        elif kind == _LINE:
            self._points(sign, dimensions, self._count(sign))
        elif kind == _POLYGON:
            for _ in range(self._count(sign)):
                self._points(sign, dimensions, self._count(sign))
        else:
            for _ in range(self._count(sign)):
                self._geometry(depth + 1)

    def _count(self, sign: str) -> int:
        (count,) = struct.unpack_from(f"{sign}I", self._data, self._at)
        self._at += 4
        return int(count)

    def _points(self, sign: str, dimensions: int, count: int) -> None:
        places = _PLACES[dimensions]
        size = 8 * len(places) * count
        if self._at + size > len(self._data):
            raise ValueError("it ends early")
        if not count:
            return
        found = np.frombuffer(self._data, f"{sign}f8", len(places) * count, self._at)
        self._at += size
        rows = found.reshape(count, len(places))
        low, high = self.box
        # NaN, which these functions ignore, is a missing coordinate, as are all of an empty point.
        low[places] = np.fmin(low[places], np.fmin.reduce(rows))
        high[places] = np.fmax(high[places], np.fmax.reduce(rows))
