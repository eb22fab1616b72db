"""SQL that writes a row as a line of JSON.

DuckDB's own to_json turns decimals inside of other values into doubles, and writes a NaN that is
not valid JSON. Here decimals are exact numbers, FLOAT and DOUBLE the shortest number that reads
back as the same value, NaN and infinities the strings "NaN", "Infinity" and "-Infinity". Bytes are
hexadecimal: DuckDB cannot read its own form back as bytes. Everything else is as DuckDB writes it:
a struct or map is an object, a list or tuple an array, a union an object of its member, times
DuckDB's strings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from icesql.engine.result_schema import ResultColumn, ResultType, unique_names
from icesql.quoting import literal

# Types whose text in SQL is a JSON number or word.
_BARE: Final = frozenset(
    {"boolean", "tinyint", "smallint", "integer", "bigint", "ubigint", "hugeint", "decimal"}
)
_TIMES: Final = frozenset({"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})


def json_line(
    columns: Sequence[ResultColumn],
    expressions: Sequence[str],
    formats: tuple[str | None, str | None] = (None, None),
) -> str:
    """An expression for one row as a JSON object, whose values are ``expressions``.

    ``formats`` are strftime formats of dates and of timestamps, None for DuckDB's own form.
    """
    text = _JsonText(*formats)
    keys = unique_names([column.name for column in columns], ignore_case=False)
    members = [
        (key, text.of(expression, column.type))
        for key, expression, column in zip(keys, expressions, columns, strict=True)
    ]
    return _object(members)


class _JsonText:
    def __init__(self, dates: str | None, times: str | None) -> None:
        self._dates, self._times = dates, times
        self._depth = 0

    def of(self, value: str, declared: ResultType) -> str:
        """An expression for the JSON text of ``value``, never NULL."""
        return f"coalesce({self._present(value, declared)}, 'null')"

    def _present(self, value: str, declared: ResultType) -> str:
        kind = declared.kind
        if kind in _BARE:
            return f"CAST({value} AS VARCHAR)"
        if kind in ("float", "double"):
            return (
                f"CASE WHEN isfinite({value}) THEN CAST({value} AS VARCHAR) "
                f"WHEN isnan({value}) THEN '\"NaN\"' WHEN {value} > 0 THEN '\"Infinity\"' "
                f"WHEN {value} < 0 THEN '\"-Infinity\"' END"
            )
        own = self._dates if kind == "date" else self._times if kind in _TIMES else None
        if own is not None:
            return f"CAST(to_json(strftime({value}, {literal(own)})) AS VARCHAR)"
        if kind == "variant":
            # The value is JSON already; it has line ends only between its tokens.
            return f"replace(replace(CAST({value} AS VARCHAR), chr(10), ' '), chr(13), ' ')"
        if kind == "blob":
            return f"'\"' || lower(hex({value})) || '\"'"
        if declared.is_nested:
            return self._nested(value, declared)
        return f"CAST(to_json(CAST({value} AS VARCHAR)) AS VARCHAR)"

    def _nested(self, value: str, declared: ResultType) -> str:
        children = declared.children
        match declared.kind:
            case "list":
                items = self._each(value, lambda item: self.of(item, children[0][1]))
                return f"'[' || {items} || ']'"
            case "map":
                pairs = self._each(
                    f"map_entries({value})",
                    lambda pair: (
                        f"to_json(CAST(struct_extract_at({pair}, 1) AS VARCHAR)) || ':' || "
                        + self.of(f"struct_extract_at({pair}, 2)", children[1][1])
                    ),
                )
                return f"'{{' || {pairs} || '}}'"
            case "union":
                cases = " ".join(
                    f"WHEN {literal(name)} THEN "
                    + _object([(name, self.of(f"union_extract({value}, {literal(name)})", child))])
                    for name, child in children
                )
                return f"CASE CAST(union_tag({value}) AS VARCHAR) {cases} END"
        parts = [
            (name, self.of(f"struct_extract_at({value}, {place})", child))
            for place, (name, child) in enumerate(children, start=1)
        ]
        if declared.kind == "tuple":
            texts = " || ',' || ".join(text for _, text in parts)
            inner = f"'[' || {texts} || ']'"
        else:
            inner = _object(parts)
        return f"CASE WHEN {value} IS NOT NULL THEN {inner} END"

    def _each(self, values: str, text: Callable[[str], str]) -> str:
        self._depth += 1
        name = f"j{self._depth}"
        made = f"list_transform({values}, lambda {name}: {text(name)})"
        self._depth -= 1
        return f"array_to_string({made}, ',')"


def _object(members: Sequence[tuple[str, str]]) -> str:
    pairs = " || ',' || ".join(
        f"{literal(json.dumps(name, ensure_ascii=False) + ':')} || {text}" for name, text in members
    )
    return f"'{{' || {pairs} || '}}'" if members else "'{}'"
