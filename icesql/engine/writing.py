"""Write the rows of any result as a file, by the right writer for every kind of output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from icesql.engine.result import StaticResult
from icesql.engine.values import text_of
from icesql.errors import ProgrammingError
from icesql.quoting import quoted

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.engine.engines import Engines, Sink, WritableResult
    from icesql.engine.result import Result
    from icesql.file_format import FileFormat

# Characters that DuckDB's CSV writer quotes, beside the delimiter; it also quotes an empty text.
_QUOTED: Final = re.compile(r'[\n\r"#]')
_CONTROLS: Final = re.compile("[\x00-\x1f]")
# Types that ``_write_rows`` can write.
_PLAIN: Final = frozenset({"varchar", "bigint", "integer", "boolean", "timestamptz"})
# Options that ``_write_rows`` implements.
_OWN: Final = frozenset({"delimiter", "array"})


def write(
    result: Result, engines: Engines, form: FileFormat, sink: Sink, query: QueryContext
) -> int:
    """Write all rows of ``result`` to ``sink``, in bounded memory; returns their number.

    DuckDB writes csv, json and Parquet for every engine, Arrow writes its own format. Writing
    csv or json starts no engine for a result that needed none.
    """
    if form.name == "arrow":
        return _write_arrow(result, sink, query)
    if isinstance(result, StaticResult):
        plain = all(column.type.kind in _PLAIN for column in result.columns)
        if plain and form.name != "parquet" and {name for name, _ in form.options} <= _OWN:
            return _write_rows(result, form, sink)
    elif hasattr(result, "write"):
        return cast("WritableResult", result).write(form, sink)
    from icesql.engine.duckdb.copy import copy_stream

    pool = engines.local().pool
    return copy_stream(pool, result.arrow_reader(), result.columns, form, sink, query)


def write_texts(
    columns: Sequence[str], rows: Iterable[Sequence[str | None]], form: FileFormat, sink: Sink
) -> None:
    """Write rows of strings, None for NULL, as csv or json."""
    kinds = [(column, "varchar") for column in columns]
    _write_rows(StaticResult(kinds, map(tuple, rows)), form, sink)


def _write_arrow(result: Result, sink: Sink, query: QueryContext) -> int:
    import pyarrow as pa

    from icesql.engine.duckdb.file_systems import SinkFile

    reader, count = result.arrow_reader(), 0
    names = reader.schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ProgrammingError(f'two columns are called "{twice}"; give one another name with AS')
    target = pa.PythonFile(SinkFile(sink), mode="w")
    with pa.ipc.new_file(target, reader.schema) as writer:
        for batch in reader:
            query.check()
            writer.write_batch(batch)
            count += batch.num_rows
    return count


# ------------------------------------------------------------------ rows without an engine


def _write_rows(result: StaticResult, form: FileFormat, sink: Sink) -> int:
    """Write csv or json as DuckDB does, for the few types of such a result."""
    names = [column.name for column in result.columns]
    rows = result.fetch(None)
    if form.name == "csv":
        delimiter = form.option("delimiter", ",")
        cell = partial(_csv_cell, delimiter)
        lines = [delimiter.join(map(cell, line)) + "\n" for line in (names, *rows)]
        sink.write("".join(lines).encode())
        return len(rows)
    keys = [_json_text(name) for name in names]
    objects = [
        "{" + ",".join(f"{k}:{_json_value(v)}" for k, v in zip(keys, row, strict=True)) + "}"
        for row in rows
    ]
    if form.option("array"):
        sink.write(("[\n" + ",\n".join(objects) + "\n]\n").encode())
    else:
        sink.write("".join(f"{each}\n" for each in objects).encode())
    return len(rows)


def _csv_cell(delimiter: str, value: Any) -> str:
    if value is None:
        return ""
    text = _text(value)
    if text and delimiter not in text and not _QUOTED.search(text):
        return text
    return quoted(text)


def _text(value: Any) -> str:
    """A value's text in DuckDB's SQL."""
    return _time_text(value) if isinstance(value, datetime) else text_of(value)


def _time_text(value: datetime) -> str:
    """A time in DuckDB's form, such as ``2026-01-02 03:04:05.5+01``."""
    text = value.replace(tzinfo=None).isoformat(" ")
    text = text.rstrip("0") if value.microsecond else text
    offset = value.utcoffset()
    if offset is None:
        return text
    seconds = int(offset.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("+", seconds)
    parts = [seconds // 3600, seconds // 60 % 60, seconds % 60]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return text + sign + ":".join(f"{part:02d}" for part in parts)


def _json_value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool() | int():
            return _text(value)
        case _:
            return _json_text(_text(value))


def _json_text(text: str) -> str:
    """A JSON string as DuckDB writes it: escapes have upper-case digits."""
    quoted = json.dumps(text, ensure_ascii=False)
    if not _CONTROLS.search(text):
        return quoted
    return re.sub(r"(?<!\\)((?:\\\\)*)\\u00(..)", lambda f: f"{f[1]}\\u00{f[2].upper()}", quoted)
