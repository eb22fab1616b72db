"""File formats of results, by name or by file ending, with checked options.

The options are those of DuckDB's COPY, in its spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from icesql.config import flag, one_of
from icesql.errors import ProgrammingError, UnsupportedSqlError, near_or_all, similar_names
from icesql.frozen import Frozen

Value = str | int | bool | tuple[str, ...]


class FileFormat(Frozen):
    """A format ("csv", "json", "parquet" or "arrow") and its options by name, in order.

    A text file is UTF-8. ``json`` has one object a line, or with the option ``array`` one array.
    """

    name: str
    options: tuple[tuple[str, Value], ...] = ()

    def option(self, name: str, default: Any = None) -> Any:
        """The value of an option, ``default`` where it is not given."""
        return dict(self.options).get(name, default)

    def with_option(self, name: str, value: Any) -> FileFormat:
        """With one more option; a later one of a name replaces an earlier one.

        Raises UnsupportedSqlError for an option that the format does not have, ProgrammingError
        for a value that it cannot have.
        """
        key = _SPELLINGS.get(name.lower(), name.lower())
        known = _OPTIONS[self.name]
        if key not in known:
            near = similar_names(key, known)
            hint = _REFUSED.get(key) or (
                f"did you mean {near[0].upper()}?"
                if near
                else f"there are: {', '.join(known).upper()}"
                if known
                else "it has none"
            )
            raise UnsupportedSqlError(f"the option {name.upper()} of format {self.name}", hint=hint)
        try:
            checked = known[key](value)
        except ValueError as error:
            raise ProgrammingError(f"the option {name.upper()}: {error}") from None
        kept = tuple(each for each in self.options if each[0] != key)
        return FileFormat(self.name, (*kept, (key, checked)))


def named_format(name: str) -> FileFormat:
    """The format of a name such as ``parquet`` or ``tsv``. Raises ProgrammingError."""
    found = _NAMES.get(name.lower())
    if found is None:
        hint = near_or_all(name.lower(), _NAMES)
        raise ProgrammingError(f'unknown file format "{name}"; {hint}')
    return found


def format_of_path(path: str) -> str | None:
    """The name of the format by the ending of a path, None if it is not the ending of one."""
    ending = re.search(r"\.(\w+)$", _uncompressed(path))
    return None if ending is None else _ENDINGS.get(ending[1].lower())


def compressed_by_ending(form: FileFormat, path: str) -> FileFormat:
    """``form``, compressed if it is a text format and the ending is ``.gz`` or ``.zst``."""
    ending = path.lower().rpartition(".")[2]
    if form.name in _TEXTS and ending in _COMPRESSIONS and form.option("compression") is None:
        return form.with_option("compression", _COMPRESSIONS[ending])
    return form


def _uncompressed(path: str) -> str:
    stem, _, ending = path.rpartition(".")
    return stem if ending.lower() in _COMPRESSIONS else path


# ------------------------------------------------------------------ values


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    return value


def _mark(value: Any) -> str:
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in "\n\r\0":
        raise ValueError(f"{value!r} is not one character")
    return value


def _delimiter(value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value.encode()) <= 4 or set(value) & set("\n\r"):
        raise ValueError(f"{value!r} is not a text of one to four characters")
    return value


def _columns(value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, tuple) or not all(isinstance(each, str) for each in names):
        raise ValueError(f"{value!r} is neither * nor names of columns in brackets")
    return names


def _number(least: int, most: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{value!r} is not a number from {least} to {most}")
        return value

    return check


_FLAG: Final = flag("true or false")
_TEXT_COMPRESSION: Final = one_of("none", "gzip", "zstd")
_OPTIONS: Final[Mapping[str, Mapping[str, Callable[[Any], Value]]]] = {
    "csv": {
        "header": _FLAG,
        "delimiter": _delimiter,
        "quote": _mark,
        "escape": _mark,
        "nullstr": _text,
        "force_quote": _columns,
        "dateformat": _text,
        "timestampformat": _text,
        "compression": _TEXT_COMPRESSION,
    },
    "json": {
        "array": _FLAG,
        "dateformat": _text,
        "timestampformat": _text,
        "compression": _TEXT_COMPRESSION,
    },
    "parquet": {
        "compression": one_of("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"),
        "compression_level": _number(1, 22),
        "row_group_size": _number(1, 1 << 24),
        "parquet_version": one_of("v1", "v2"),
    },
    "arrow": {},
}
_SPELLINGS: Final = {
    "sep": "delimiter", "delim": "delimiter", "null": "nullstr", "codec": "compression",
    "date_format": "dateformat", "timestamp_format": "timestampformat",
}  # fmt: skip
_REFUSED: Final = {
    "partition_by": "a result is written to one file",
    "per_thread_output": "a result is written to one file",
    "file_size_bytes": "a result is written to one file",
    "use_tmp_file": "a file is always written under another name and then renamed",
    "row_group_size_bytes": "use ROW_GROUP_SIZE, a number of rows",
}
_TEXTS: Final = ("csv", "json")
_COMPRESSIONS: Final = {"gz": "gzip", "zst": "zstd"}

_NAMES: Final[Mapping[str, FileFormat]] = {
    "csv": FileFormat("csv"),
    "tsv": FileFormat("csv", (("delimiter", "\t"),)),
    "json": FileFormat("json", (("array", True),)),
    "jsonl": FileFormat("json"),
    "parquet": FileFormat("parquet"),
    "arrow": FileFormat("arrow"),
}
_ENDINGS: Final = {
    "csv": "csv", "tsv": "tsv", "json": "json", "jsonl": "jsonl", "ndjson": "jsonl",
    "parquet": "parquet", "parq": "parquet", "pq": "parquet",
    "arrow": "arrow", "feather": "arrow", "md": "markdown", "markdown": "markdown",
    "txt": "table", "html": "html",
}  # fmt: skip
