"""Convert SQL values to variants, in the binary form of files.

A string is parsed as JSON, as variants are read; other values keep their types: structs and maps
with string keys become objects, lists arrays. NULL in a column is a missing variant, NULL inside of
a value the variant ``null``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icesql.iceberg.variant import primitives as p
from icesql.iceberg.variant.nodes import DEEPEST, NULL, Node
from icesql.read.columns.arrow_schema import VARIANT_BYTES
from icesql.read.columns.variant_leaves import leaf_nodes, variant_bytes
from icesql.read.formats.file_fields import is_list
from icesql.write.casts import list_elements, list_lengths, map_pairs, plain_array
from icesql.write.values.misfit import Misfit

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
