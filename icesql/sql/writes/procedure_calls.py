"""CALL of a procedure with its arguments, and equivalent statements of other systems."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from icesql.errors import SqlSyntaxError
from icesql.frozen import Frozen
from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import CLOSING, NUMBER, OPENING, TEXT, Token, span_of
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query, Write
from icesql.sql.table_name import Parts
from icesql.sql.writes.definitions import constant_query, read_name
from icesql.sql.writes.statements import TableName

T = TypeVar("T")


class Duration(Frozen):
    """A duration before now."""

    milliseconds: int


class MapValue(Frozen):
    """``map(key, value, …)`` or ``{key: value}``."""

    entries: tuple[tuple[Value, Value], ...]


# A Query is evaluated to its one value.
Value: TypeAlias = "str | int | bool | Duration | list[Value] | MapValue | TableName | Query | None"


class CallArgument(Frozen):
    """An argument; ``name`` is "" for a positional one."""

    name: str
    value: Value
    offset: int


class CallProcedure(Write):
    """CALL [catalog.]system.procedure(…); ``explain`` only shows what it would do.

    ``head`` is the snapshot that must be the branch's head, if a person confirmed an undo of it.
    """

    name: Parts
    arguments: tuple[CallArgument, ...]
    offset: int
    explain: bool = False
    head: int | None = None


# ------------------------------------------------------------------ CALL


def read_call(words: TokenCursor) -> CallProcedure:
    """Read the statement after CALL."""
    at = words.here
    name = words.name("a procedure")
    arguments = read_arguments(words)
    words.end()
    return CallProcedure(name, arguments, at)


def read_arguments(words: TokenCursor) -> tuple[CallArgument, ...]:
    """Read the arguments in brackets, which may be empty."""
    if words.skip("( )"):
        return ()
    return tuple(words.bracketed(_argument))


def _argument(words: TokenCursor) -> CallArgument:
    """Read ``value`` or ``name => value``."""
    at, name = words.here, ""
    if words.peek(1) in ("=>", ":="):
        name = words.identifier("a parameter")
        words.index += 1
    return CallArgument(name, read_value(words), at)


def read_value(words: TokenCursor) -> Value:
    """Read a constant, up to the next comma or closing bracket."""
    start = words.index
    value = _literal(words)
    if value is not _NO_LITERAL and (words.token is None or words.peek() in (*CLOSING, ",", ":")):
        return value  # type: ignore[return-value]
    words.index = start
    tokens = words.until()
    if not tokens:
        raise words.unexpected("a value")
    hint = "write a literal; names in quotes"
    return constant_query(words, tokens, "an argument that is no constant", hint)


_NO_LITERAL: Final = object()


def _literal(words: TokenCursor) -> object:
    """Read a literal without an engine, and step over it; or return ``_NO_LITERAL``."""
    token = words.token
    if token is None:
        return _NO_LITERAL
    if token.kind == TEXT:
        return words.text()
    if token.kind == NUMBER and token.text.isdigit():
        return words.number()
    if words.peek() == "-" and words.peek(1).isdigit():
        words.index += 1
        return -words.number()
    for word, constant in (("TRUE", True), ("FALSE", False), ("NULL", None)):
        if words.skip(word):
            return constant
    if words.peek() == "TIMESTAMP" and words.kind(words.index + 1) == TEXT:
        words.index += 1
        return words.text()
    if words.peek() in ("MAP", "ARRAY") and words.peek(1) in OPENING:
        words.index += 1
        is_map = token.word == "MAP"
        if words.peek() == "(":
            items = _items(words, lambda: read_value(words), "(", ")")
            return _map_of(items, token) if is_map else items
        if is_map and words.peek() == "[":
            return _NO_LITERAL
    if words.peek() == "[":
        return _items(words, lambda: read_value(words), "[", "]")
    if words.peek() == "{":
        return MapValue(tuple(_items(words, lambda: _entry(words), "{", "}")))
    return _NO_LITERAL


def _items(words: TokenCursor, read: Callable[[], T], opening: str, closing: str) -> list[T]:
    words.need(opening)
    return [] if words.skip(closing) else words.listed(read, closing)


def _map_of(items: list[Value], at: Token) -> MapValue:
    """Return Spark's ``map(key, value, …)``, or one of two lists, as in DuckDB and Trino."""
    match items:
        case [list(keys), list(values)] if len(keys) == len(values):
            return MapValue(tuple(zip(keys, values, strict=True)))
    if len(items) % 2:
        raise syntax_error("a map has a value for each key", at, ("map('key', 'value')",))
    return MapValue(tuple(zip(items[::2], items[1::2], strict=True)))


def _entry(words: TokenCursor) -> tuple[Value, Value]:
    """Read ``'key': value`` or ``key = value``."""
    key = words.text_or_name("a key")
    if not words.skip(":"):
        words.need("=")
    return key, read_value(words)


# ------------------------------------------------------------------ statements of other systems
# OPTIMIZE, VACUUM, ROLLBACK, EXECUTE …, in tables.


_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES: Final = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
# Dremio's options, in MB except for the last, and icesql's names for them.
_OPTIONS: Final = {
    "TARGET_FILE_SIZE_MB": "target-file-size-bytes", "MIN_FILE_SIZE_MB": "min-file-size-bytes",
    "MAX_FILE_SIZE_MB": "max-file-size-bytes", "MIN_INPUT_FILES": "min-input-files",
}  # fmt: skip
# The syntax after the first word of a statement, and the procedure: words, [optional part],
# <argument> or <reader:argument>, argument=constant, !refused word. The first form that matches
# the statement is used.
_FORMS: Final[Mapping[str, Mapping[str, str]]] = {
    # Athena's, Databricks' and Dremio's.
    "OPTIMIZE": {
        "[TABLE] <table> REWRITE MANIFESTS": "rewrite_manifests",
        "[TABLE] <table> [REWRITE DATA [USING BIN_PACK]] [ZORDER BY strategy=sort <sort_order>] "
        "[( <options> )] [WHERE <where>] [ZORDER BY strategy=sort <sort_order>] "
        "[!FULL]": "rewrite_data_files",
    },
    # Dremio's.
    "VACUUM": {
        "TABLE <table> EXPIRE SNAPSHOTS [RETAIN_LAST [=] <retain_last>] "
        "[OLDER_THAN [=] <time:older_than>] [RETAIN_LAST [=] <retain_last>]": "expire_snapshots",
        "TABLE <table> REMOVE ORPHAN FILES [LOCATION [=] <location>] "
        "[OLDER_THAN [=] <time:older_than>] [LOCATION [=] <location>]": "remove_orphan_files",
    },
    "ROLLBACK": {
        "<table> TO SNAPSHOT <snapshot_id>": "rollback_to_snapshot",
        "<table> TO VERSION <version:snapshot_id>": "rollback_to_snapshot",
        "<table> TO TIMESTAMP <time:timestamp>": "rollback_to_timestamp",
    },
    # Delta Lake's; -1 is one commit back.
    "RESTORE": {
        "[TABLE] <table> TO [!TIMESTAMP] VERSION AS OF <version:snapshot_id>": (
            "rollback_to_snapshot"
        )
    },
    # Snowflake's; the error of the procedure names the table's metadata file.
    "UNDROP": {"[TABLE] <table>": "register_table"},
    # Spark's and Trino's.
    "ANALYZE": {
        "[TABLE] <table> [!PARTITION] [!DELETE] [COMPUTE STATISTICS [NOSCAN] [FOR ALL COLUMNS]]": (
            "compute_table_stats"
        ),
        "[TABLE] <table> COMPUTE STATISTICS [NOSCAN] FOR COLUMNS <columns>": "compute_table_stats",
        "[TABLE] <table> WITH ( COLUMNS = <constant:columns> )": "compute_table_stats",
    },
}
_OF_A_SNAPSHOT: Final = (
    "ANALYZE of partitions, and without STATISTICS",
    "the statistics of a table are of a snapshot, and go with it",
)
_REFUSED: Final = {
    "!FULL": (
        "OPTIMIZE … FULL",
        "CALL system.rewrite_data_files('t', options => map('rewrite-all', 'true'))",
    ),
    "!TIMESTAMP": (
        "RESTORE … TO TIMESTAMP AS OF",
        "CALL system.rollback_to_timestamp('t', TIMESTAMP '…') goes to what was before it",
    ),
    "!PARTITION": _OF_A_SNAPSHOT,
    "!DELETE": _OF_A_SNAPSHOT,
}


def read_form(words: TokenCursor, verb: str) -> CallProcedure | None:
    """Read the statement after its first word; see ``_FORMS``. None if it names no table."""
    if words.token is None and verb in ("VACUUM", "ANALYZE"):
        return None
    if verb == "VACUUM" and words.peek() != "TABLE":
        name = ".".join(words.name("a table"))
        raise unsupported(
            "VACUUM",
            words.tokens[0],
            f"CALL system.expire_snapshots('{name}', older_than => TIMESTAMP '…') forgets "
            "snapshots and deletes their files, and "
            f"CALL system.remove_orphan_files('{name}', dry_run => true) lists files that the "
            "table does not name",
        )
    start, at, reached = words.index, words.here, -1
    failed: Any = None
    for form, procedure in _FORMS[verb].items():
        words.index, given = start, list[CallArgument]()
        try:
            _follow(words, _nested(iter(re.findall(r"[\[\]]|[^\s\[\]]+", form))), given)
            words.end()
        except SqlSyntaxError as error:
            if words.index > reached:
                reached, failed = words.index, error
            elif words.index == reached:
                expected = dict.fromkeys((*failed.expected, *error.expected))
                failed = syntax_error(error.problem, error.offset, tuple(expected))
        else:
            return CallProcedure(("system", procedure), tuple(given), at)
    raise failed


def _nested(parts: Iterator[str]) -> list[Any]:
    """Return the parts of a form up to the next closing bracket; bracketed parts become lists."""
    made: list[Any] = []
    for part in parts:
        if part == "]":
            break
        made.append(_nested(parts) if part == "[" else part)
    return made


def _follow(words: TokenCursor, parts: Sequence[Any], given: list[CallArgument]) -> None:
    """Read the words that the parts of a form describe. Raises SqlSyntaxError for other words."""
    for part in parts:
        at = words.here
        if isinstance(part, list):
            if words.peek() == part[0].lstrip("!"):
                _follow(words, part, given)
        elif part[0] == "<":
            kind, _, name = part[1:-1].partition(":")
            given.append(CallArgument(name or kind, _READERS[kind](words), at))
        elif part[0] == "!":
            raise unsupported(_REFUSED[part][0], at, _REFUSED[part][1])
        elif part[1:] and "=" in part:
            name, _, constant = part.partition("=")
            given.append(CallArgument(name, constant, at))
        else:
            words.need(part)


# ------------------------------------------------------------------ arguments


def _snapshot(words: TokenCursor) -> int:
    """Read the id of a snapshot, which Dremio puts in quotes."""
    at = words.here
    text = words.text() if words.is_text else str(_version(words))
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise syntax_error(f"{text!r} is no id of a snapshot", at, ("a number",))
    return int(text)


def _version(words: TokenCursor) -> int:
    """Read the id of a snapshot, or -1 for one commit back."""
    return -words.number() if words.skip("-") else words.number()


def _where(words: TokenCursor) -> str:
    """Return the condition as written, up to ZORDER or the end."""
    tokens = words.until("ZORDER")
    if not tokens:
        raise words.unexpected("a condition")
    return words.sql[slice(*span_of(tokens))]


def _zorder(words: TokenCursor) -> str:
    is_open = words.peek() == "("
    columns = words.bracketed(TokenCursor.column) if is_open else words.listed(words.column)
    return f"zorder({','.join(columns)})"


def _dremio_options(words: TokenCursor) -> MapValue:
    def option() -> tuple[Value, Value]:
        at, name = words.here, words.identifier("an option").upper()
        words.need("=")
        number = words.number()
        if name not in _OPTIONS:
            known = ", ".join(_OPTIONS)
            raise unsupported(f"the option {name} of OPTIMIZE", at, f"there are {known}")
        return _OPTIONS[name], number << 20 if name.endswith("_MB") else number

    return MapValue(tuple(words.listed(option)))


def _constant(words: TokenCursor) -> Value:
    at, value = words.here, read_value(words)
    if isinstance(value, Query):
        raise unsupported("an argument that is no constant", at, "ARRAY['a', 'b']")
    return value


_READERS: Final[Mapping[str, Callable[[TokenCursor], Value]]] = {
    "table": read_name,
    "snapshot_id": _snapshot,
    "version": _version,
    "time": TokenCursor.text,
    "retain_last": TokenCursor.number,
    "location": TokenCursor.text,
    "where": _where,
    "sort_order": _zorder,
    "options": _dremio_options,
    "columns": lambda words: list[Value](words.listed(words.column)),
    "constant": _constant,
}


# ------------------------------------------------------------------ Trino's EXECUTE


def read_execute(words: TokenCursor, table: TableName) -> CallProcedure:
    """Read Trino's ALTER TABLE table EXECUTE …, after that word; see ``_EXECUTED``."""
    at = words.here
    name = words.identifier("a procedure").lower()
    given = [CallArgument("table", table, at if table.offset is None else table.offset)]
    arguments: dict[str, CallArgument] = {}
    for each in read_arguments(words) if words.peek() == "(" else ():
        if each.name.lower() in arguments:
            raise syntax_error("an argument is given twice", each.offset)
        arguments[each.name.lower()] = each
    if name not in _EXECUTED:
        hint = "CALL system.name(…) runs icesql's own; SHOW PROCEDURES lists them"
        raise unsupported(f"ALTER TABLE … EXECUTE {name}", at, _NOT_EXECUTED.get(name, hint))
    procedure, *parameters = _EXECUTED[name].split()
    for parameter in parameters:
        # Only the first argument may be positional.
        found = arguments.pop(parameter, None) or (
            arguments.pop("", None) if parameter == parameters[0] else None
        )
        place = at if found is None else found.offset
        if parameter in _MEANT:
            own, read = _MEANT[parameter]
            given.append(CallArgument(own, read(found), place))
        elif found is not None:
            given.append(CallArgument(parameter, found.value, place))
    for each in arguments.values():
        raise unsupported(f"the argument {each.name or 'without a name'} of {name}", each.offset)
    _follow(words, [["WHERE", "<where>"]] if name == "optimize" else [], given)
    return CallProcedure(("system", procedure), tuple(given), at)


def _ago(given: CallArgument | None) -> Duration:
    """Return ``retention_threshold => '7d'`` as a duration; 7 days is the default."""
    if given is None:
        return Duration(7 * _UNITS["d"])
    return Duration(_amount(given, _UNITS, "retention_threshold is a duration", "'7d'", "'12h'"))


def _rewritten(given: CallArgument | None) -> MapValue:
    """Return options for Trino's rule: rewrite two files or more, and every file with deletes."""
    options: list[tuple[Value, Value]] = [("min-input-files", 2), ("delete-file-threshold", 1)]
    if given is not None:
        least = _amount(given, _SIZES, "file_size_threshold is a size", "'128MB'")
        options.append(("min-file-size-bytes", least))
    return MapValue(tuple(options))


def _amount(given: CallArgument, units: Mapping[str, int], problem: str, *examples: str) -> int:
    """Convert a text such as ``'1.5GB'`` to the smallest of its units."""
    pattern = rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(units)})\s*"
    found = re.fullmatch(pattern, given.value) if isinstance(given.value, str) else None
    if found is None:
        raise syntax_error(problem, given.offset, examples)
    return int(float(found[1]) * units[found[2]])


# Trino's procedures: icesql's procedure, and Trino's parameters.
_EXECUTED: Final = {
    "optimize": "rewrite_data_files file_size_threshold",
    "optimize_manifests": "rewrite_manifests",
    "expire_snapshots": "expire_snapshots retention_threshold retain_last clean_expired_metadata",
    "remove_orphan_files": "remove_orphan_files retention_threshold",
    "rollback_to_snapshot": "rollback_to_snapshot snapshot_id",
}
# Trino's parameters with other names in icesql, and their readers, which also get None.
_MEANT: Final[Mapping[str, tuple[str, Callable[[CallArgument | None], Value]]]] = {
    "retention_threshold": ("older_than", _ago),
    "file_size_threshold": ("options", _rewritten),
}
_ADD: Final = "CALL system.add_files('t', '`parquet`.`folder`')"
_NOT_EXECUTED: Final = {
    "drop_extended_stats": "the statistics of a table are of a snapshot; ANALYZE t writes new ones",
    "add_files": _ADD,
    "add_files_from_table": _ADD,
}
