"""Types and values in SQL, as DuckDB and as Spark spell them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tests.writer.types import decimal_of
from tests.writer.values import pool

# Those that both spell, and whose values PyIceberg and Java give back as they are.
KINDS: Final = (
    "boolean", "int", "int", "long", "float", "double", "decimal(9, 2)", "decimal(20, 3)", "string",
    "string", "binary", "date", "timestamp", "timestamptz",
)  # fmt: skip
_NAMES: Final = {"long": "BIGINT", "string": "VARCHAR", "binary": "BLOB"}
_SPARK: Final = {
    "long": "BIGINT", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"
}  # fmt: skip
_YEARS: Final = range(1900, 2100)


def is_spelled(type_: Any) -> bool:
    """Whether values of a type can be written here."""
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


class Spelling:
    """Texts of types and values; ``spark``: as Spark's dialect has them."""

    def __init__(self, spark: bool = False) -> None:
        self.spark = spark

    def type(self, type_: Any) -> str:
        """A type."""
        if isinstance(type_, str):
            return (_SPARK if self.spark else _NAMES).get(type_, type_).upper()
        colon = ":" if self.spark else ""
        match type_["type"]:
            case "struct":
                fields = (f"{each['name']}{colon} {self.type(each['type'])}"
                          for each in type_["fields"])  # fmt: skip
                inner = ", ".join(fields)
                return f"STRUCT<{inner}>" if self.spark else f"STRUCT({inner})"
            case "list":
                inner = self.type(type_["element"])
                return f"ARRAY<{inner}>" if self.spark else f"{inner}[]"
            case _:
                inner = f"{self.type(type_['key'])}, {self.type(type_['value'])}"
                return f"MAP<{inner}>" if self.spark else f"MAP({inner})"

    def literal(self, type_: Any, value: Any) -> str:
        """A value of exactly this type."""
        return f"CAST({self._uncast(type_, value)} AS {self.type(type_)})"

    def _uncast(self, type_: Any, value: Any) -> str:
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
                pairs = [
                    (f"'{each['name']}'", self.literal(each["type"], value[each["id"]]))
                    for each in type_["fields"]
                ]
                if self.spark:
                    return f"named_struct({', '.join(', '.join(each) for each in pairs)})"
                return f"{{{', '.join(': '.join(each) for each in pairs)}}}"
            case "list":
                inner = ", ".join(self.literal(type_["element"], each) for each in value)
                return f"array({inner})" if self.spark else f"[{inner}]"
            case _:
                pairs = [
                    (self.literal(type_["key"], key), self.literal(type_["value"], each))
                    for key, each in value
                ]
                if self.spark:
                    return f"map({', '.join(', '.join(each) for each in pairs)})"
                return f"MAP {{{', '.join(': '.join(each) for each in pairs)}}}"

    def source(self, rows: str, names: Sequence[str], alias: str) -> str:
        """Rows as a table of a statement."""
        columns = ", ".join(names)
        if self.spark:
            return f"(SELECT * FROM VALUES {rows} AS v({columns})) {alias}"
        return f"(VALUES {rows}) {alias}({columns})"

    def mode(self, word: str) -> str:
        """The statement that chooses what INSERT OVERWRITE replaces."""
        if self.spark:
            return f"SET spark.sql.sources.partitionOverwriteMode = {word}"
        return f"SET partition_overwrite_mode = '{word}'"


def transform(form: str, name: str) -> str:
    """A partition transform of a column, as a statement has it."""
    word, _, width = form.rstrip("]").partition("[")
    if word == "identity":
        return name
    return f"{word}({width}, {name})" if width else f"{word}s({name})"
