"""Spell types and values in SQL."""

from __future__ import annotations

from typing import Any, Final

from tests.writer.types import decimal_of
from tests.writer.values import pool

# Types whose values PyIceberg and Java return unchanged.
KINDS: Final = (
    "boolean", "int", "int", "long", "float", "double", "decimal(9, 2)", "decimal(20, 3)", "string",
    "string", "binary", "date", "timestamp", "timestamptz",
)  # fmt: skip
_NAMES: Final = {"long": "BIGINT", "string": "VARCHAR", "binary": "BLOB"}
_YEARS: Final = range(1900, 2100)


def is_spelled(type_: Any) -> bool:
    """True if values of a type can be written in SQL here."""
    if isinstance(type_, str):
        return type_ in KINDS or decimal_of(type_) is not None
    parts = [
        *type_.get("fields", ()),
        *({"type": type_[p]} for p in ("key", "value") if p in type_),
    ]
    if "element" in type_:
        parts.append({"type": type_["element"]})
    return all(is_spelled(each["type"]) for each in parts)


def values(type_: str) -> list[Any]:
    """The values of a primitive type that statements use."""
    return [
        each for each in pool(type_)
        if not (isinstance(each, str) and set(each) & set("'\\\""))
        and (not type_.startswith("timestamp") or each.year in _YEARS)
    ]  # fmt: skip


def sql_type(type_: Any) -> str:
    """The SQL name of a type."""
    if isinstance(type_, str):
        return _NAMES.get(type_, type_).upper()
    match type_["type"]:
        case "struct":
            fields = (f"{each['name']} {sql_type(each['type'])}" for each in type_["fields"])
            return f"STRUCT({', '.join(fields)})"
        case "list":
            return f"{sql_type(type_['element'])}[]"
        case _:
            return f"MAP({sql_type(type_['key'])}, {sql_type(type_['value'])})"


def literal(type_: Any, value: Any) -> str:
    """A literal with exactly this type."""
    return f"CAST({_uncast(type_, value)} AS {sql_type(type_)})"


def _uncast(type_: Any, value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(type_, str):
        match value:
            case bool() | int():
                return str(value)
            case bytes():
                return f"unhex('{value.hex()}')"
            case _:
                return f"'{value}'"
    match type_["type"]:
        case "struct":
            inner = (f"'{each['name']}': {literal(each['type'], value[each['id']])}"
                     for each in type_["fields"])  # fmt: skip
            return f"{{{', '.join(inner)}}}"
        case "list":
            return f"[{', '.join(literal(type_['element'], each) for each in value)}]"
        case _:
            inner = (f"{literal(type_['key'], key)}: {literal(type_['value'], each)}"
                     for key, each in value)  # fmt: skip
            return f"MAP {{{', '.join(inner)}}}"


def transform(form: str, name: str) -> str:
    """A partition transform of a column, as in a statement."""
    word, _, width = form.rstrip("]").partition("[")
    if word == "identity":
        return name
    return f"{word}({width}, {name})" if width else f"{word}s({name})"
