"""Every exception icesql raises: one tree under PEP 249's, picklable, data as attributes.

    Warning
    Error
    ├── InterfaceError
    └── DatabaseError
        ├── ProgrammingError    SqlSyntaxError · TableNotFoundError · ColumnNotFoundError
        │                       AmbiguousColumnError · AmbiguousTableError
        │                       SnapshotNotFoundError · AccessDeniedError
        ├── NotSupportedError   UnsupportedSqlError · UnsupportedTableError
        ├── DataError           TypeMismatchError · CorruptFileError
        ├── OperationalError    CatalogError · StorageError · ScanLimitError · QueryCancelledError
        │                       CommitConflictError · CommitStateUnknownError
        │                       MissingExtraError
        ├── IntegrityError
        └── InternalError

A message states the problem, its place and what to do. Foreign exceptions are translated in the
file that calls the foreign code, with ``raise … from``, according to the operation there.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final


class Warning(builtins.Warning):
    """Something worth knowing that did not stop the statement."""


class Error(Exception):
    """Root of every error of icesql; ``str()`` is the whole message.

    ``while_reading`` is set on errors of an engine that another reader of the same files might
    not have. ``line`` is the line of the SQL, from 1, where one is known. ``topic`` is the topic of
    ``icesql help`` with more than the message.
    """

    while_reading = False
    topic: ClassVar[str] = ""
    line: int | None = None
    # The offset in the SQL by an engine, and the length of the hint at the end of the message.
    sql_offset: int | None = None
    hint_length = 0
    # The view whose text has the error, "" for the statement itself; None: views were not checked.
    view: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors are pickled between processes (Spark workers); constructors of subclasses take
        # other arguments than ``args``, so the state is copied instead.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(cls: type[Error], args: tuple[Any, ...], state: dict[str, Any]) -> Error:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class InterfaceError(Error):
    """The DB-API was used in a way it does not allow, such as a closed cursor."""


class DatabaseError(Error):
    """Something about the query, the table or the machine."""


class ProgrammingError(DatabaseError):
    """The statement or a name in it is wrong."""


class NotSupportedError(DatabaseError):
    """Well formed, but icesql does not do it; it is refused rather than answered wrongly."""


class DataError(DatabaseError):
    """The data cannot be what the statement or the metadata says."""


class OperationalError(DatabaseError):
    """A file, catalog or engine failed, or a limit was reached."""


class IntegrityError(DatabaseError):
    """Part of PEP 249; icesql does not raise it."""


class InternalError(DatabaseError):
    """A bug in icesql, or an engine in a state that it cannot recover from."""


# ------------------------------------------------------------------ places in SQL


class _InSql(Error):
    """An error at a place in SQL text.

    It is raised with at most an ``offset`` into the text; ``placing(sql)`` adds ``position``, the
    line and the column, which count from 1. Both are None when unknown.
    """

    def __init__(self, offset: int | None = None, position: tuple[int, int] | None = None) -> None:
        self.offset, self.position = offset, position
        super().__init__(self._message())

    # Other errors are assigned a line; here it comes from the position, and cannot be set.
    @property
    def line(self) -> int | None:  # type: ignore[override]
        """The line, from 1."""
        return self.position[0] if self.position else None

    def place(self, sql: str) -> None:
        """Turn the offset into a position in ``sql``, unless the position is known."""
        if self.offset is not None and self.position is None:
            self.position = position(sql, self.offset)
            self.args = (self._message(),)

    def _message(self) -> str:
        return str(self)

    def _where(self) -> str:
        """The position as messages show it."""
        return f" (line {self.position[0]}, column {self.position[1]})" if self.position else ""


@contextmanager
def placing(sql: str) -> Iterator[None]:
    """Give errors that know an offset in ``sql`` their line and column."""
    try:
        yield
    except Error as error:
        place(error, sql)
        raise


def place(error: BaseException, sql: str) -> None:
    """Give an error that knows an offset in ``sql`` its line and column; leave any other."""
    if isinstance(error, _InSql):
        error.place(sql)
    elif isinstance(error, Error) and error.sql_offset is not None and error.line is None:
        error.line, column = position(sql, error.sql_offset)
        text = str(error)
        end = len(text) - error.hint_length
        where = f" (line {error.line}, column {column})"
        error.args = (text[:end] + where + text[end:],)


@contextmanager
def found_at(offset: int | None) -> Iterator[None]:
    """Give errors of name look-ups in the block ``offset``, the place of the name in the SQL."""
    try:
        yield
    except (TableNotFoundError, SnapshotNotFoundError) as error:
        if error.offset is None:
            error.offset = offset
        raise


def position(sql: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of a character offset."""
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


# ------------------------------------------------------------------ ProgrammingError


class SqlSyntaxError(_InSql, ProgrammingError):
    """SQL that does not parse; ``line`` and ``column`` count from 1, None when unknown."""

    def __init__(
        self,
        problem: str,
        *,
        offset: int | None = None,
        position: tuple[int, int] | None = None,
        expected: Sequence[str] = (),
        sql: str | None = None,
    ) -> None:
        self.problem, self.expected, self.sql = problem, tuple(expected), sql
        super().__init__(offset, position)

    def __str__(self) -> str:
        # Cut only when it is shown: half a secret would not be recognised, and not masked.
        return _cut_around_caret(super().__str__())

    @property
    def column(self) -> int | None:
        """The column in its line, from 1."""
        return self.position[1] if self.position else None

    def place(self, sql: str) -> None:
        """Turn the offset into a position in ``sql``, whose line the message shows."""
        if self.offset is not None and self.position is None:
            self.sql = sql
        super().place(sql)

    def _message(self) -> str:
        where = f" at line {self.line}, column {self.column}" if self.position else ""
        hint = f"; expected {_either(self.expected)}" if self.expected else ""
        shown = _snippet(self.sql, self.position)
        return f"syntax error{where}: {self.problem}{hint}{shown}"


class TableNotFoundError(_InSql, ProgrammingError):
    """No table of that name; ``similar`` holds the nearest names."""

    def __init__(
        self,
        table: str,
        *,
        similar: Iterable[str] = (),
        hint: str = "",
        offset: int | None = None,
    ) -> None:
        self.table, self.similar, self.hint = table, tuple(similar), hint
        super().__init__(offset)

    def _message(self) -> str:
        # The names are spelled as in lists: one that needs quotes has them already.
        near = _did_you_mean(
            _one_line(name) if name.endswith('"') else repr_name(name) for name in self.similar
        )
        hint = _one_line(_hint(self.hint))
        return f"table {repr_name(self.table)} not found{self._where()}{near}{hint}"


class ColumnNotFoundError(_InSql, ProgrammingError):
    """No column of that name in ``table``."""

    def __init__(
        self,
        column: str,
        *,
        table: str | None = None,
        similar: Iterable[str] = (),
        offset: int | None = None,
    ) -> None:
        self.column, self.table, self.similar, self.hint = column, table, tuple(similar), ""
        super().__init__(offset)

    def place(self, sql: str) -> None:
        """Turn the offset into a position in ``sql``; a text in double quotes gets its hint."""
        quoted = self.offset is not None and sql[self.offset : self.offset + 1] == '"'
        if quoted and not (self.hint or self.similar):
            self.hint = "write texts in single quotes, names in double ones"
        super().place(sql)

    def _message(self) -> str:
        table = f" in table {repr_name(self.table)}" if self.table else ""
        near = _did_you_mean(map(repr_name, self.similar))
        where = self._where()
        return f"column {repr_name(self.column)} not found{table}{where}{near}{_hint(self.hint)}"


class AmbiguousColumnError(_InSql, ProgrammingError):
    """A column name that several tables have, or several columns that differ only in case."""

    def __init__(
        self, column: str, *, candidates: Iterable[str], offset: int | None = None
    ) -> None:
        self.column, self.candidates = column, tuple(candidates)
        super().__init__(offset)

    def _message(self) -> str:
        names = ", ".join(f'"{name}"' for name in self.candidates)
        where = self._where()
        return f'column "{self.column}" is ambiguous{where}: it could be {names}; qualify it'


class AmbiguousTableError(_InSql, ProgrammingError):
    """Two tables of one FROM under one name."""

    def __init__(self, table: str, *, offset: int | None = None) -> None:
        self.table = table
        super().__init__(offset)

    def _message(self) -> str:
        return (
            f'two tables of one FROM are called "{self.table}"{self._where()}; '
            "give one of them another alias"
        )


class AccessDeniedError(ProgrammingError):
    """The owner of the connection does not allow this; ``argument`` of ``connect`` is the limit.

    The text is the same whether or not the object exists.
    """

    topic = "trust"

    def __init__(self, what: str, *, argument: str) -> None:
        self.what, self.argument = what, argument
        super().__init__(f"access denied: {what} ({argument} of this connection)")


class SnapshotNotFoundError(_InSql, ProgrammingError):
    """A snapshot id, ref or instant that the table cannot be read at."""

    def __init__(
        self,
        wanted: str,
        *,
        table: str,
        similar: Iterable[str] = (),
        oldest: str | None = None,
        newest: str | None = None,
        hint: str = "",
    ) -> None:
        self.wanted, self.table, self.similar = wanted, table, tuple(similar)
        self.oldest, self.newest, self.hint = oldest, newest, hint
        super().__init__()

    def _message(self) -> str:
        known = self.oldest and self.newest
        reach = f"; oldest: {self.oldest}, newest: {self.newest}" if known else ""
        near = _did_you_mean(map(repr_name, self.similar))
        what = f"{self.wanted} not found in table {repr_name(self.table)}{self._where()}"
        return f"{what}{near}{reach}{_hint(self.hint)}"


# ------------------------------------------------------------------ NotSupportedError


class UnsupportedSqlError(_InSql, NotSupportedError):
    """A construct that icesql refuses by name and, where known, by position.

    ``of_files``: it would read files, or write them.
    """

    of_files = False

    def __init__(
        self,
        construct: str,
        *,
        hint: str = "",
        offset: int | None = None,
        position: tuple[int, int] | None = None,
    ) -> None:
        self.construct, self.hint = construct, hint
        super().__init__(offset, position)

    @property
    def column(self) -> int | None:
        """The column in its line, from 1."""
        return self.position[1] if self.position else None

    def _message(self) -> str:
        return f"not supported: {self.construct}{self._where()}{_hint(self.hint)}"


class UnsupportedTableError(NotSupportedError):
    """A table feature that icesql does not read; ``feature`` names it."""

    topic = "UnsupportedTableError"

    def __init__(
        self, feature: str, *, table: str | None = None, path: str | None = None, hint: str = ""
    ) -> None:
        self.feature, self.table, self.path = feature, table, path
        where = (f' in table "{table}"' if table else "") + (f" ({path})" if path else "")
        super().__init__(f"not supported: {feature}{where}{_hint(hint)}")


# ------------------------------------------------------------------ DataError


class TypeMismatchError(DataError):
    """A value or column of another type than its place asks for."""


class CorruptFileError(DataError):
    """A metadata, manifest, delete or data file that is not what it should be.

    ``path`` is the file as it was opened; ``offset`` a byte position, None when unknown.
    ``was_kept``: the bytes came from the cache on disk, and are fetched from the store next time.
    """

    topic = "doctor"
    was_kept = False

    def __init__(self, path: str, problem: str, *, offset: int | None = None) -> None:
        self.path, self.problem, self.offset = path, problem, offset
        where = f" at byte {offset}" if offset is not None else ""
        super().__init__(f"corrupt file {path}{where}: {problem}")


# ------------------------------------------------------------------ OperationalError

TOO_MANY_FILES = (
    "this process has too many open files: close some, or raise the limit (ulimit -n); "
    "no file is damaged by it"
)


class CatalogError(OperationalError):
    """A catalog could not be opened or did not answer."""

    topic = "catalogs"


class StorageError(OperationalError):
    """A file could not be opened, read or written; ``path`` names it."""

    topic = "StorageError"

    def __init__(self, path: str, problem: str, *, verb: str = "read") -> None:
        self.path, self.problem = path, problem
        super().__init__(f"cannot {verb} {path}: {problem}")


class ScanLimitError(OperationalError):
    """A guard rail was reached before or while reading."""

    topic = "ScanLimitError"


class QueryCancelledError(OperationalError):
    """The query was cancelled or ran into its time limit; the connection stays usable."""


class CommitConflictError(OperationalError):
    """Another writer committed first; the table is as that writer left it."""

    topic = "several writers"
    # The other writer changed rows or files: the statement may succeed when evaluated again.
    _rows_changed = False


def rows_changed(message: str) -> CommitConflictError:
    """The conflict of a statement that may succeed when it is evaluated again."""
    error = CommitConflictError(message)
    error._rows_changed = True
    return error


class CommitStateUnknownError(OperationalError):
    """A commit was sent and nobody knows whether it was applied; none of its files is deleted.

    ``snapshot_ids`` are those of the snapshots that it makes, ``files`` the paths that it wrote:
    the table has them if it was applied, or will have them if the request is still on its way.
    """

    topic = "CommitStateUnknownError"

    def __init__(
        self, message: str, *, snapshot_ids: Iterable[int] = (), files: Iterable[str] = ()
    ) -> None:
        self.snapshot_ids, self.files = tuple(snapshot_ids), tuple(files)
        ids = ", ".join(map(str, self.snapshot_ids))
        made = f"; it makes snapshot{'s' * (len(self.snapshot_ids) > 1)} {ids}" if ids else ""
        named = ", ".join(self.files[:_MOST_FILES])
        more = len(self.files) - _MOST_FILES
        rest = f" and {more:,} more, which are `files` of this error" if more > 0 else ""
        left = f"; none of its files was deleted: {named}{rest}" if named else ""
        super().__init__(message + made + left)


# Files that the message of an error names.
_MOST_FILES: Final = 10


class MissingExtraError(OperationalError):
    """An optional dependency is not installed; ``extra`` names what to install."""

    def __init__(self, what: str, *, extra: str | None = None, hint: str = "") -> None:
        self.what, self.extra = what, extra
        install = f"; install it with: pip install '.[{extra}]'" if extra else ""
        super().__init__(f"{what} is not available{install}{_hint(hint)}")


# ------------------------------------------------------------------ wording

NO_CATALOG: Final = (
    "no catalog; name one with --warehouse, --uri or --catalog "
    "(in Python: arguments of connect), or read a path with iceberg_scan('path')"
)


def similar_names(name: str, candidates: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The candidates nearest to ``name``, ignoring case, best first; never the name itself."""
    import difflib

    by_lower = {each.lower(): each for each in candidates if each != name}
    found = difflib.get_close_matches(name.lower(), list(by_lower), n=most, cutoff=0.6)
    return tuple(by_lower[lower] for lower in found)


def plural(count: int, noun: str) -> str:
    """A number with its noun in singular or plural."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def nearest(
    name: str, names: Iterable[str], otherwise: str = "", form: str = "; did you mean {}?"
) -> str:
    """The question for a wrong name: whether the nearest of the right ones was meant."""
    near = similar_names(name, names, 1)
    return form.replace("{}", near[0]) if near else otherwise


def near_or_all(name: str, names: Iterable[str]) -> str:
    """The hint for a wrong name: the nearest of the right ones, else all of them."""
    return nearest(name, names, f"there are: {', '.join(names)}", "did you mean {}?")


def _did_you_mean(similar: Iterable[str]) -> str:
    words = list(similar)
    return f"; did you mean {_either(words)}?" if words else ""


def repr_name(name: str) -> str:
    """A name in double quotes on one line, as errors show it."""
    return '"' + _one_line(name.replace("\t", "\\t")) + '"'


def _either(words: Sequence[str]) -> str:
    if len(words) <= 1:
        return "".join(words)
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _hint(hint: str) -> str:
    return f"; {hint}" if hint else ""


def _snippet(sql: str | None, position: tuple[int, int] | None) -> str:
    if not sql or position is None:
        return ""
    line, column = position
    lines = sql.split("\n")  # as positions count them
    if not 1 <= line <= len(lines):
        return ""
    text, at = lines[line - 1].rstrip("\r"), max(column - 1, 0)
    left, right = _one_line(text[:at]), _one_line(text[at:])
    return f"\n  {left}{right}\n  {' ' * display_width(left)}^"


def mark_in(error: Error, sql: str) -> str:
    """The line of ``sql`` at an error's place and a mark below; "" if the message has one."""
    at = place_of(error, sql)
    if at is None or isinstance(error, SqlSyntaxError):
        return ""
    return _cut_around_caret(_snippet(sql, at)).removeprefix("\n")


def place_of(error: BaseException, sql: str) -> tuple[int, int] | None:
    """The line and the column that an error has in ``sql``, from 1."""
    if isinstance(error, _InSql):
        return error.position
    offset = getattr(error, "sql_offset", None)
    return None if offset is None else position(sql, offset)


def _cut_around_caret(message: str) -> str:
    """The message with a short last line: a long one would wrap, its caret under another line."""
    head, _, caret = message.rpartition("\n")
    before, _, line = head.rpartition("\n  ")
    if not caret.endswith("^") or caret.strip(" ") != "^":
        return message
    at, cells = 0, len(caret) - 3
    while at < len(line) and display_width(line[at]) <= cells:
        cells -= display_width(line[at])
        at += 1
        if not cells:
            break
    start, end = max(at - _BEFORE, 0), at + _BEHIND
    left = ("…" if start else "") + line[start:at]
    right = line[at:end] + ("…" if end < len(line) else "")
    return f"{before}\n  {left}{right}\n  {' ' * display_width(left)}^"


_BEFORE: Final = 60
_BEHIND: Final = 40


def json_document(value: Any, indent: int | None = None) -> str:
    """JSON that cannot control a terminal: characters that are not printable are escaped."""
    import json

    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return printable(text, lines=True, spell=json_escape)


def json_escape(character: str) -> str:
    """A character as a text in JSON can spell it."""
    import json

    return json.dumps(character)[1:-1]


def escape(character: str) -> str:
    """A character as Python spells it."""
    return character.encode("unicode_escape").decode("ascii")


def printable(text: str, *, lines: bool = False, spell: Callable[[str], str] = escape) -> str:
    """The text with control characters spelled out, so that data cannot control a terminal.

    On one line, unless ``lines`` keeps its line ends and tabs.
    """
    if text.isprintable():
        return text
    kept = "\u3000\n\t" if lines else "\u3000"
    return "".join(each if each.isprintable() or each in kept else spell(each) for each in text)


def _one_line(text: str) -> str:
    """The text with a blank for a tab, whose width varies, and control characters spelled out."""
    return printable(text.replace("\t", " "))


def display_width(text: str) -> int:
    """The width of a text in terminal cells; East Asian wide characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text
    )
