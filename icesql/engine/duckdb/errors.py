"""Translate DuckDB's errors into icesql's, by what failed rather than by DuckDB's classes.

Messages about a query are shortened to what its user needs: what, where, what to do. An error of a
file gets the file's name, which DuckDB does not always give.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from icesql.context import QueryContext
from icesql.engine.duckdb.sql.size_guards import size_error
from icesql.errors import (
    TOO_MANY_FILES,
    AmbiguousColumnError,
    ColumnNotFoundError,
    CorruptFileError,
    DatabaseError,
    DataError,
    Error,
    InternalError,
    OperationalError,
    ProgrammingError,
    QueryCancelledError,
    ScanLimitError,
    StorageError,
    UnsupportedSqlError,
)
from icesql.storage.open import VANISHED

if TYPE_CHECKING:
    from icesql.scan.tasks import CombinedScanTask, FileScanTask, ScanContext


# ------------------------------------------------------------------ messages
# These functions remove lists of candidates, settings of DuckDB that icesql does not have, and
# names that the user did not write. Types get their usual names.


_TYPES: Final = {
    "INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INTEGER", "INT64": "BIGINT",
    "INT128": "HUGEINT", "UINT8": "UTINYINT", "UINT16": "USMALLINT", "UINT32": "UINTEGER",
    "UINT64": "UBIGINT", "UINT128": "UHUGEINT", "INTEGER_LITERAL": "INTEGER",
    "STRING_LITERAL": "VARCHAR",
}  # fmt: skip
_TYPE: Final = rf"\b(?:{'|'.join(_TYPES)})\b"
# Names in the engine's text that replace the user's own.
_HIDDEN: Final = (
    r"__(?:(?:scan|file|col)_|row\b)|icesql: no value|icesql_\w+_[0-9a-f]{32}|\bq\.c\d+\b|#\d+"
)
_CANDIDATES: Final = r"(?s)(?<!\s)(?=[^\S\n]*+\n)\s++(?:Candidate|Did you mean)\b.*"
_SETTING: Final = r"""(?s)[,;]? ?(?:or )?(?:Use |use )?"?SET [a-z_]+ ?=.*"""
_NAME: Final = r'"([^"]+)"'

_NO_FUNCTION: Final = (
    r"(?s)(?:No function matches the given name and argument types '|Could not choose a best "
    r"candidate function for the function call \")(.*?)['\"]\. (?:You might need|In order to)"
)
_NO_COLUMN: Final = (
    r'Referenced column "(.*)" (?:not found in FROM clause!|was not found because the FROM clause)'
)
_AMBIGUOUS: Final = r'Ambiguous reference to column name "(.*?)" \(use: (.*)\)'
_MISSING: Final = r"\w+ Function with name \"?(.*?)\"? does not exist!"
_DIVISION: Final = r"Division by zero(?: in expression (.*?))?\. Use TRY"
_CAST_FROM: Final = r" when casting from source column \S+$"
_OPERATORS: Final = r"[^\w\s]+"
# A message, what is wrong, the hint, and the text between the candidates that follow the hint. The
# gap takes the name in the message.
_MISTAKES: Final = (
    (
        r'Referenced table "(.*)" not found!',
        'table "{}" is not in FROM',
        "FROM has ",
        " and ",
    ),
    # Macros of the same name hide some functions; see ``duckdb.sql.size_guards``.
    (
        r'Macro "?(\w+)"?\(\) does not support the supplied arguments',
        "{}() does not take these arguments",
        "CAST them, or give other ones",
        "",
    ),
    (r'Could not find key "(.*)" in struct', 'the struct has no field "{}"', "it has ", ", "),
    (
        r'column "(.*)" must appear in the GROUP BY clause',
        'column "{}" must appear in GROUP BY or in an aggregate',
        "add it to GROUP BY, or use any_value({})",
        "",
    ),
    (
        "(Window) functions are not supported here",
        "a window function needs OVER",
        "write OVER (…) behind it, in SELECT, QUALIFY or ORDER BY",
        "",
    ),
    (
        "(WHERE) clause cannot contain aggregates",
        "WHERE cannot contain aggregates",
        "use HAVING",
        "",
    ),
)


def read_message(text: str) -> tuple[str, Mapping[str, Any]]:
    """A message of DuckDB without its error class, and its JSON document, empty if none."""
    text = re.split(r"\n\n(?:LINE |Stack Trace)", text, maxsplit=1)[0].strip()
    text = re.sub(r"^[A-Z][A-Za-z ]* Error: ", "", text)
    if text.startswith("{"):
        try:
            document = json.loads(text)
        except ValueError:
            return text, {}
        if isinstance(document, dict) and "exception_message" in document:
            return str(document["exception_message"]).strip(), document
    return text, {}


def programming_error(text: str, at: int | None) -> Error:
    """The error at the offset ``at`` of the user's SQL for a message of DuckDB's binder."""
    if found := re.match(_AMBIGUOUS, text):
        candidates = [each for each in re.findall(r"'([^']*)'", found[2]) if _shown(each)]
        return AmbiguousColumnError(found[1], candidates=candidates, offset=at)
    if (found := re.match(_NO_COLUMN, text)) and _shown(found[1]):
        return ColumnNotFoundError(found[1], similar=_candidates(text), offset=at)
    if found := re.match(_MISSING, text):
        near = _candidates(text)
        hint = f"did you mean {near[0]}()?" if near else ""
        return UnsupportedSqlError(f"the function {found[1]}()", hint=hint, offset=at)
    if found := re.match(_NO_FUNCTION, text):
        return placed(ProgrammingError, *_no_function(found[1], text), at)
    if text.startswith("Star expression") and not _shown(text):
        what = "PIVOT finds no value, and no other column is left"
        return placed(ProgrammingError, what, "list its values with IN (…)", at)
    for message, what, hint, between in _MISTAKES:
        if (found := re.match(message, text)) and _shown(found[1]):
            near = [f'"{each}"' for each in _candidates(text)]
            if between:
                hint = hint + between.join(near) if near else ""
            what, hint = (each.replace("{}", found[1]) for each in (what, hint))
            return placed(ProgrammingError, what, hint, at)
    return placed(ProgrammingError, *_shortened(text), at)


def data_error(text: str, at: int | None) -> Error:
    """The DataError at the offset ``at`` of the user's SQL for a value that DuckDB failed on."""
    if found := re.match(_DIVISION, text):
        expression = f" in {found[1]}" if found[1] and _shown(found[1]) else ""
        hint = "divide by nullif(…, 0), or write TRY(…), to get NULL"
        return placed(DataError, f"Division by zero{expression}", hint, at)
    if text.startswith("More than one row returned by a subquery"):
        what = "a subquery used as one value returned more than one row"
        return placed(DataError, what, "add LIMIT 1 or an aggregate", at)
    return placed(DataError, *_shortened(text), at)


def placed(kind: Callable[[str], Error], what: str, hint: str, at: int | None) -> Error:
    """An error of ``kind``; its position will be inserted before its hint."""
    error = kind(f"{what}; {hint}" if hint else what)
    error.sql_offset, error.hint_length = at, len(hint) + 2 if hint else 0
    return error


def _no_function(call: str, text: str) -> tuple[str, str]:
    name, _, rest = call.partition("(")
    arguments = _typed(rest.removesuffix(")"))
    name = name.strip('"')
    if re.fullmatch(_OPERATORS, name):
        listed = " and ".join(arguments.split(", ")) if arguments.count(", ") == 1 else arguments
        # + also adds dates and intervals.
        is_text = (
            name == "+"
            and "VARCHAR" in arguments
            and not re.search("INTERVAL|DATE|TIME", arguments)
        )
        hint = "CAST one side to another type"
        if is_text:
            hint = "|| joins texts; CAST one side to another type"
        return f"the operator {name} does not take {listed}", hint
    if not arguments:
        return f"{name}() needs arguments", ""
    given = arguments.count(", ") + 1
    forms = re.findall(rf"(?m)^\s*{re.escape(name)}\((.*?)(?:, /)?\) -> ", text)
    counts = sorted({each.count(",") + bool(each) for each in forms})
    if forms and given not in counts and not re.search(r"\.\.\.|[([]", "".join(forms) + rest[:-1]):
        takes = " or ".join(map(str, counts)) if counts != [0] else "none"
        plural = "s" * (given != 1)
        return f"{name}() does not take {given} argument{plural}", f"it takes {takes}"
    return f"{name}() does not take ({arguments})", "CAST an argument, or give other ones"


def _shortened(text: str) -> tuple[str, str]:
    text = re.sub(_SETTING, "", re.sub(_CANDIDATES, "", text)).strip()
    text = text.removesuffix("You might need to add explicit type casts.").strip()
    text = re.sub(_CAST_FROM, "", text) if re.search(_HIDDEN, text) else text
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not re.search(_HIDDEN, line)] or ["the engine refuses this"]
    first, *others = [_typed(line) for line in lines]
    return first.rstrip("!."), "; ".join(others)


def _typed(text: str) -> str:
    return re.sub(_TYPE, lambda found: _TYPES[found[0]], text)


def _candidates(text: str) -> list[str]:
    """The names that DuckDB suggests, without the engine's own."""
    listed = text.partition("\n")[2]
    return [each for each in re.findall(_NAME, listed) if _shown(each)][:3]


def _shown(name: str) -> bool:
    return re.search(_HIDDEN, name) is None


# ------------------------------------------------------------------ translation


E = TypeVar("E", bound=BaseException)

# Messages of DuckDB's Parquet reader for errors in the file, not in the query.
_READING: Final = (
    r"magic bytes|Failed to read file|parquet|Parquet|[Ss]nappy|ZSTD|zstd|gzip|GZip|GZIP|LZ4|"
    r"decompress|TProtocol|Could not read|read past|out of buffer|corrupt|"
    r"Invalid (page|encoding|string)|footer|thrift"
)
# A 128-bit integer, such as a sum, that decimal(38,0) cannot hold, or the user's own cast.
_WIDE: Final = r"Could not cast value (-?[0-9]{39}) to DECIMAL\(38,0\)"
# The prefix of errors that ``relations.changes`` raises if rows cannot be paired: they are not
# about a file.
PAIRED: Final = "icesql:changes:"
_NO_FILE: Final = r"No such file|No files found"
_UNREACHABLE: Final = r"Too many open files|Permission denied|Input/output error|Stale file handle"


def is_fatal(error: BaseException) -> bool:
    """True if the DuckDB instance cannot be used any more."""
    import duckdb

    return isinstance(_original(error), duckdb.FatalException | duckdb.InternalException)


def translate(
    error: Exception,
    file_names: Iterable[str],
    place: Callable[[int], int | None] | None = None,
) -> Error:
    """The icesql error for an exception that DuckDB raised while it ran a query.

    ``place`` maps a byte offset in DuckDB's SQL to an offset in the user's SQL.
    ``while_reading`` is set where the files, not the query, may have caused the error.
    """
    import duckdb

    text, details = read_message(str(error))
    at = None if place is None or "position" not in details else place(int(details["position"]))
    if (limit := size_error(text)) is not None:
        return limit
    if PAIRED in text:
        return DataError(text.partition(PAIRED)[2])
    found: Error
    match _original(error):
        case duckdb.InterruptException():
            return QueryCancelledError("the query was cancelled")
        case duckdb.OutOfMemoryException():
            spill = "set temp_directory to a folder that can be written to, "
            advice = spill if "no temporary directory" in str(error) else ""
            return ScanLimitError(
                f"out of memory: {text}; {advice}raise memory_limit or read fewer columns and rows"
            )
        case duckdb.ParserException() | duckdb.BinderException() | duckdb.CatalogException():
            return programming_error(text, at)
        case duckdb.PermissionException():
            return ProgrammingError(f"refused: {text}")
        case duckdb.ConversionException() | duckdb.OutOfRangeException():
            if (wide := re.search(_WIDE, text)) is not None:
                return DataError(
                    f"the integer {wide[1]} has more than 38 digits, the most that a result holds; "
                    "CAST it to VARCHAR or DOUBLE"
                )
            found = data_error(text, at)
        case duckdb.FatalException() | duckdb.InternalException():
            found = InternalError(f"the local engine failed: {text}")
        case duckdb.IOException() | OSError():
            found = _file_error(text, file_names) or OperationalError(text)
        case UnicodeDecodeError():
            found = DataError("the local engine failed on a value that is not text")
        case _:
            # DuckDB's decoders have no error class and no fixed message for damaged files.
            found = _file_error(text, file_names) or data_error(text, at)
            found.while_reading = True
            return found
    reading = duckdb.IOException | duckdb.FatalException | duckdb.InternalException | OSError
    found.while_reading = isinstance(_original(error), reading | UnicodeDecodeError) or bool(
        re.search(_READING, text)
    )
    return found


def _original(error: E) -> E | Exception:
    """DuckDB's own error; an Arrow stream passes on only its text, as an OSError."""
    import duckdb

    kinds: dict[str, type[Exception]] = {
        "Conversion": duckdb.ConversionException,
        "Out of Range": duckdb.OutOfRangeException,
        "Invalid Input": duckdb.InvalidInputException,
        "Out of Memory": duckdb.OutOfMemoryException,
        "INTERRUPT": duckdb.InterruptException,
        "FATAL": duckdb.FatalException,
        "INTERNAL": duckdb.InternalException,
    }
    kind = str(error).partition(" Error: ")[0] if isinstance(error, OSError) else ""
    return kinds[kind](str(error)) if kind in kinds else error


def _file_error(text: str, file_names: Iterable[str]) -> Error | None:
    named = next((name for name in file_names if name and name in text), None)
    if named is None:
        return None
    path = next((part for part in re.findall(r'["\']([^"\']+)["\']', text) if named in part), named)
    if re.search(_NO_FILE, text):
        return StorageError(path, VANISHED)
    if os.strerror(errno.EMFILE) in text or os.strerror(errno.ENFILE) in text:
        return StorageError(path, TOO_MANY_FILES)
    if (found := re.search(_UNREACHABLE, text)) is not None:
        return StorageError(path, found[0])
    return CorruptFileError(path, text)


# ------------------------------------------------------------------ the file that could not be read


# Limits for reading files again only to find the corrupt one.
_MOST_FILES: Final = 100
_MOST_BYTES: Final = 256 << 20
_NAMED: Final = 3


def check_named_file(cause: Error, scans: Sequence[CombinedScanTask], query: QueryContext) -> None:
    """Read the file that ``cause`` names with ``read/`` and raise the error of that.

    Returns if no file is named or if it can be read.
    """
    name = _file_name(getattr(cause, "path", ""))
    if not name:
        return
    alike = (each for each in _files(scans) if _file_name(each[1].data_file.path) == name)
    _read(islice(alike, _NAMED), cause, query)


def name_bad_file(cause: Error, scans: Sequence[CombinedScanTask], query: QueryContext) -> None:
    """Read the files of scans with ``read/``, whose errors name the file; raise the first error.

    If all files that were read are intact, the error lists names of the scanned files. Returns
    if ``cause`` is not a read error, or already names its file. At most 100 files and 256 MB.
    """
    if isinstance(cause, CorruptFileError | StorageError) or not cause.while_reading:
        return
    _read(_first_files(scans), cause, query)
    if names := names_of(task for _, task in _files(scans)):
        many = f"{', '.join(names[:_NAMED])}, …" if len(names) > _NAMED else ", ".join(names)
        raise _class_of(cause)(f"{cause} (while reading {many})") from cause


def forget_bad_file(error: CorruptFileError, scans: Sequence[CombinedScanTask]) -> bool:
    """Discard cached bytes of the error's file; True if there were any on disk."""
    for context, task in _files(scans):
        for file in (task.data_file, *task.deletes):
            if error.path in (file.path, context.storage.location(file.path)):
                error.was_kept = context.storage.forget(file.path, file.file_size_in_bytes)
                return error.was_kept
    return False


def names_of(tasks: Iterable[FileScanTask]) -> list[str]:
    """The names of data files, without folders."""
    return [_file_name(task.data_file.path) for task in tasks]


def _class_of(error: Error) -> type[Error]:
    """The class of an error if its constructor takes only a message, else DatabaseError."""
    plain = type(error).__init__ is Exception.__init__
    return type(error) if plain else DatabaseError


def _first_files(scans: Sequence[CombinedScanTask]) -> Iterator[tuple[ScanContext, FileScanTask]]:
    size = 0
    for context, task in islice(_files(scans), _MOST_FILES):
        size += task.data_file.file_size_in_bytes
        if size > _MOST_BYTES:
            return
        yield context, task


def _files(scans: Sequence[CombinedScanTask]) -> Iterator[tuple[ScanContext, FileScanTask]]:
    return ((scan.context, task) for scan in scans for task in scan.tasks)


def _read(
    files: Iterable[tuple[ScanContext, FileScanTask]], cause: Error, query: QueryContext
) -> None:
    from icesql.read.task import read_file

    for context, task in files:
        try:
            for _ in read_file(task, context, query):
                pass
        except Error as error:
            raise error from cause


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]
