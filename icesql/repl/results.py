"""Write a result to a screen, a pipe or a file, in the requested format.

Rows for people (table, markdown) are laid out here; csv, tsv, json, jsonl, parquet and arrow are
written by ``engine.writing``, which COPY uses, too.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from icesql.dbapi.cursor import result_types, write_rows
from icesql.engine.writing import write_texts
from icesql.errors import ProgrammingError
from icesql.file_format import compressed_by_ending, format_of_path, named_format
from icesql.repl.render import DOCUMENT, LAYOUTS, Style, as_written, is_document
from icesql.repl.render import write_rows as layout_rows
from icesql.repl.terminal import Output, Writer, coloured
from icesql.storage.new_files import OutputFile

if TYPE_CHECKING:
    from icesql.dbapi.cursor import Cursor

# The formats that a terminal can show; the others are only for a pipe or a file.
TEXT_FORMATS: Final = (
    "table", "csv", "tsv", "json", "jsonl", "markdown", "html", "expanded",
)  # fmt: skip
FORMATS: Final = (*TEXT_FORMATS, "parquet", "arrow")


def show(
    cursor: Cursor,
    output_format: str,
    out: Output,
    style: Style,
    began: Callable[[], None] = lambda: None,
) -> int:
    """Write the rows of ``cursor`` to ``out`` in one of ``FORMATS``; how many there were.

    ``began`` is called before the first row is written.
    """
    layout = _layout(cursor, output_format)
    if layout is None:
        if output_format not in TEXT_FORMATS and out.isatty():
            raise ProgrammingError(
                f"{output_format} is nothing to show on a terminal; name a file with --output"
            )
        sink = _OutputSink(out, began)
        count = write_rows(cursor, named_format(output_format), sink)
        sink.end()
        return count
    first = cursor.fetchmany(1)  # may take all the time there is
    began()
    return _lay_out(cursor, chain(first, cursor), layout, out, style)


def _layout(cursor: Cursor, output_format: str) -> str | None:
    """The layout of a result for people; None for the formats of ``engine.writing``."""
    layout = DOCUMENT if is_document(cursor.description) else output_format
    return layout if layout in LAYOUTS else None


def _lay_out(
    cursor: Cursor, rows: Iterable[Sequence[Any]], layout: str, out: Writer, style: Style
) -> int:
    names = [column[0] for column in cursor.description or ()]
    return layout_rows(out, layout, names, as_written(rows, result_types(cursor)), style)


def show_texts(
    columns: Sequence[str], rows: Sequence[Sequence[str | None]], output_format: str, out: Output
) -> None:
    """Write texts that are not a result of SQL in one of ``TEXT_FORMATS``."""
    if output_format in LAYOUTS:
        layout_rows(out, output_format, columns, rows, Style())
    elif output_format in TEXT_FORMATS:
        sink = _OutputSink(out, lambda: None)
        write_texts(columns, rows, named_format(output_format), sink)
        sink.end()
    else:
        raise ProgrammingError(f"this is text, not {output_format}; use {', '.join(TEXT_FORMATS)}")


def save(cursor: Cursor, output_format: str, path: str, file: OutputFile) -> int:
    """Write the rows of ``cursor`` to a file in one of ``FORMATS``; how many there were."""
    layout = _layout(cursor, output_format)
    if layout is not None:
        bytes_only: Any = file  # of a stream, this asks for no more than write
        text = codecs.getwriter("utf-8")(bytes_only, "surrogatepass")
        return _lay_out(cursor, cursor, layout, text, Style())
    return write_rows(cursor, compressed_by_ending(named_format(output_format), path), file)


def format_for(path: str | None, output_format: str | None) -> str:
    """The format of results: the requested one, else the one of the ending of ``path``.

    Raises ProgrammingError for an ending of no known format.
    """
    if output_format is not None:
        return output_format
    if path in (None, "-"):
        return "table"
    assert path is not None
    found = format_of_path(path)
    if found is None:
        raise ProgrammingError(
            f"the ending of {path} names no format; end it with .parquet, .csv, .json … or "
            "name one with --format"
        )
    return found


class Screen:
    """Standard output, for any number of results."""

    def __init__(self, output_format: str) -> None:
        self._format, self._any = output_format, False

    def take(self, cursor: Cursor) -> int:
        """Write a result; the number of its rows."""
        out = Output(sys.stdout, self._format)
        if self._any and self._format in LAYOUTS:
            out.write("\n")
        self._any = True
        count = show(cursor, self._format, out, Style(colour=coloured(sys.stdout)))
        out.flush()
        return count


class File:
    """A file for one result, which exists only after ``finish``."""

    def __init__(self, output_format: str, path: str, *, overwrite: bool) -> None:
        self._format, self._path, self._taken = output_format, path, False
        self._file = OutputFile(path, overwrite=overwrite)

    def take(self, cursor: Cursor) -> int:
        """See ``Screen``. Raises ProgrammingError for a second result."""
        if self._taken:
            raise ProgrammingError(
                f"{self._path} takes the rows of one statement, and a second one gives rows"
            )
        self._taken = True
        return save(cursor, self._format, self._path, self._file)

    def finish(self) -> None:
        """Make the file visible. Raises ProgrammingError where there was no result."""
        if not self._taken:
            raise ProgrammingError(f"no statement gives rows to write to {self._path}")
        self._file.finish()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.abandon()


class _OutputSink:
    """Standard output as a file of bytes. See ``engine.engines.Sink``."""

    def __init__(self, out: Output, began: Callable[[], None]) -> None:
        self.error: BaseException | None = None
        self._out, self._began = out, began
        self._decode = None if out.takes_utf8() else codecs.getincrementaldecoder("utf-8")()
        self._any = False

    def write(self, data: bytes) -> None:
        if not self._any:
            self._any = True
            self._began()
        try:
            if self._decode is None:
                self._out.write_bytes(data)
            else:
                self._out.write(self._decode.decode(data))
        except BaseException as error:
            self.error = error
            raise

    def restart(self) -> bool:
        return not self._any

    def end(self) -> None:
        """After the last byte."""
        if not self._any:
            self._began()
        self._out.flush()
