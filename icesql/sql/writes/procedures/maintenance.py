"""Procedures in other systems' words: OPTIMIZE, VACUUM, ROLLBACK TABLE, ALTER TABLE … EXECUTE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from icesql.sql.cursor import Words
from icesql.sql.lexer import TEXT, Token
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query
from icesql.sql.writes.procedures.call import (
    CallArgument,
    CallProcedure,
    Duration,
    MapValue,
    TimestampText,
    Value,
    read_argument,
)
from icesql.sql.writes.statements import TableName

ReadQuery = Callable[[Sequence[Token]], Query]

_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")
_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB)\s*")
_POWERS: Final = {"B": 0, "kB": 10, "MB": 20, "GB": 30, "TB": 40}
_WEEK: Final = Duration(7 * 86_400_000)
# Dremio's options, in MB, and what they are called.
_MEGABYTES: Final = {
    "TARGET_FILE_SIZE_MB": "target-file-size-bytes", "MIN_FILE_SIZE_MB": "min-file-size-bytes",
    "MAX_FILE_SIZE_MB": "max-file-size-bytes",
}  # fmt: skip


def read_optimize(words: Words) -> CallProcedure:
    """The statement after OPTIMIZE, as Athena, Databricks and Dremio have it."""
    at = words.here
    words.skip("TABLE")
    given = [_table(words)]
    if words.skip("REWRITE", "MANIFESTS"):
        words.end()
        return _call("rewrite_manifests", given, at)
    if words.skip("REWRITE", "DATA") and words.skip("USING"):
        words.need("BIN_PACK")
    here = words.here
    if words.skip("ZORDER", "BY"):
        given += _zorder(words, here)
    if words.peek() == "(":
        given.append(_argument("options", _dremio_options(words), here))
    given += _where(words)
    here = words.here
    if words.skip("ZORDER", "BY"):
        given += _zorder(words, here)
    if words.skip("FULL"):
        hint = "CALL system.rewrite_data_files('t', options => map('rewrite-all', 'true'))"
        raise unsupported("OPTIMIZE … FULL", here, hint)
    words.end()
    return _call("rewrite_data_files", given, at)


def read_vacuum(words: Words) -> CallProcedure | None:
    """The statement after VACUUM, as Dremio has it; None for that of a database."""
    at = words.here
    if not words.rest:
        return None
    if not words.skip("TABLE"):
        name = ".".join(words.name("a table"))
        raise unsupported(
            "VACUUM",
            words.tokens[0],
            f"CALL system.expire_snapshots('{name}', older_than => TIMESTAMP '…') forgets "
            "snapshots and deletes their files, and "
            f"CALL system.remove_orphan_files('{name}', dry_run => true) lists files that the "
            "table does not name",
        )
    given = [_table(words)]
    if words.skip("EXPIRE", "SNAPSHOTS"):
        name = "expire_snapshots"
    elif words.skip("REMOVE", "ORPHAN", "FILES"):
        name = "remove_orphan_files"
    else:
        raise words.unexpected("EXPIRE SNAPSHOTS", "REMOVE ORPHAN FILES")
    while words.token is not None:
        here = words.here
        if words.skip("OLDER_THAN"):
            words.skip("=")
            given.append(_argument("older_than", TimestampText(words.text()), here))
        elif name == "expire_snapshots" and words.skip("RETAIN_LAST"):
            words.skip("=")
            given.append(_argument("retain_last", words.number(), here))
        elif name == "remove_orphan_files" and words.skip("LOCATION"):
            words.skip("=")
            given.append(_argument("location", words.text(), here))
        else:
            raise words.unexpected("OLDER_THAN", "the end of the statement")
    return _call(name, given, at)


def read_rollback(words: Words) -> CallProcedure:
    """The statement after ROLLBACK TABLE, as Dremio has it."""
    at = words.here
    given = [_table(words)]
    words.need("TO")
    here = words.here
    if words.skip("SNAPSHOT"):
        token = words.token
        is_text = token is not None and token.kind == TEXT
        text = words.text() if is_text else str(_version(words))
        if not (text.isascii() and text.removeprefix("-").isdigit()):
            raise syntax_error(f"{text!r} is no id of a snapshot", here, ("a number",))
        given.append(_argument("snapshot_id", int(text), here))
        name = "rollback_to_snapshot"
    elif words.skip("VERSION"):
        given.append(_argument("snapshot_id", _version(words), here))
        name = "rollback_to_snapshot"
    else:
        words.need("TIMESTAMP")
        given.append(_argument("timestamp", TimestampText(words.text()), here))
        name = "rollback_to_timestamp"
    words.end()
    return _call(name, given, at)


def read_restore(words: Words) -> CallProcedure:
    """The statement after RESTORE, as Delta Lake has it; -1 is one commit back."""
    at = words.here
    words.skip("TABLE")
    given = [_table(words)]
    words.need("TO")
    here = words.here
    if words.peek() == "TIMESTAMP":
        hint = "CALL system.rollback_to_timestamp('t', TIMESTAMP '…') goes to what was before it"
        raise unsupported("RESTORE … TO TIMESTAMP AS OF", here, hint)
    for word in ("VERSION", "AS", "OF"):
        words.need(word)
    given.append(_argument("snapshot_id", _version(words), here))
    words.end()
    return _call("rollback_to_snapshot", given, at)


def read_undrop(words: Words) -> CallProcedure:
    """The statement after UNDROP, as Snowflake has it: which file it is, the procedure says."""
    at = words.here
    words.skip("TABLE")
    given = [_table(words)]
    words.end()
    return _call("register_table", given, at)


def _version(words: Words) -> int:
    """The id of a snapshot, or -1 for one commit back."""
    return -words.number() if words.skip("-") else words.number()


def read_execute(words: Words, table: TableName, read_query: ReadQuery) -> CallProcedure:
    """Trino's ALTER TABLE table EXECUTE …, after that word."""
    at = words.here
    name = words.identifier("a procedure").lower()
    own = [_argument("table", table, at if table.offset is None else table.offset)]
    arguments = _trino_arguments(words, read_query)
    match name:
        case "optimize":
            return _optimize(words, own, arguments, at)
        case "optimize_manifests":
            _none_left(arguments, name)
            found = _call("rewrite_manifests", own, at)
        case "expire_snapshots":
            own.append(_threshold(arguments))
            found = _call(
                name, [*own, *_named(arguments, "retain_last", "clean_expired_metadata")], at
            )
            _none_left(arguments, name)
        case "remove_orphan_files":
            own.append(_threshold(arguments))
            _none_left(arguments, name)
            found = _call(name, own, at)
        case "rollback_to_snapshot":
            given = [replace(each, name=each.name or "snapshot_id") for each in arguments.values()]
            found = _call(name, [*own, *given], at)
        case "drop_extended_stats":
            hint = "the statistics of a table are of a snapshot; ANALYZE t writes new ones"
            raise unsupported(f"ALTER TABLE … EXECUTE {name}", at, hint)
        case "add_files" | "add_files_from_table":
            hint = "CALL system.add_files('t', '`parquet`.`folder`')"
            raise unsupported(f"ALTER TABLE … EXECUTE {name}", at, hint)
        case _:
            hint = "CALL system.name(…) runs icesql's own; SHOW PROCEDURES lists them"
            raise unsupported(f"ALTER TABLE … EXECUTE {name}", at, hint)
    words.end()
    return found


def _optimize(
    words: Words, own: list[CallArgument], arguments: dict[str, CallArgument], at: int
) -> CallProcedure:
    """Trino rewrites two files or more, and every file with deletes."""
    options: list[tuple[Value, Value]] = [("min-input-files", 2), ("delete-file-threshold", 1)]
    given = arguments.pop("file_size_threshold", arguments.pop("", None))
    if given is not None:
        found = _SIZE.fullmatch(given.value) if isinstance(given.value, str) else None
        if found is None:
            raise syntax_error("file_size_threshold is a size", given.offset, ("'128MB'",))
        options.append(("min-file-size-bytes", int(float(found[1]) * (1 << _POWERS[found[2]]))))
    _none_left(arguments, "optimize")
    own.append(_argument("options", MapValue(tuple(options)), at))
    own += _where(words)
    words.end()
    return _call("rewrite_data_files", own, at)


# ------------------------------------------------------------------ pieces


def _call(name: str, given: Sequence[CallArgument], at: int) -> CallProcedure:
    return CallProcedure(("system", name), tuple(given), at)


def _argument(name: str, value: Value, at: int) -> CallArgument:
    return CallArgument(name, value, at)


def _table(words: Words) -> CallArgument:
    at = words.here
    return _argument("table", TableName(words.name("a table"), at), at)


def _where(words: Words) -> list[CallArgument]:
    """The condition as it is written, up to ZORDER or the end."""
    if not words.skip("WHERE"):
        return []
    at = words.here
    tokens = words.until("ZORDER")
    if not tokens:
        raise words.unexpected("a condition")
    return [_argument("where", words.sql[at : tokens[-1].stop], at)]


def _zorder(words: Words, at: int) -> list[CallArgument]:
    inner = words.in_brackets() if words.peek() == "(" else words
    columns = [".".join(inner.name("a column"))]
    while inner.skip(","):
        columns.append(".".join(inner.name("a column")))
    if inner is not words:
        inner.end()
    order = f"zorder({','.join(columns)})"
    return [_argument("strategy", "sort", at), _argument("sort_order", order, at)]


def _dremio_options(words: Words) -> MapValue:
    inner = words.in_brackets()
    found: list[tuple[Value, Value]] = []
    while True:
        at = inner.here
        name = inner.identifier("an option").upper()
        inner.need("=")
        number = inner.number()
        if name in _MEGABYTES:
            found.append((_MEGABYTES[name], number << 20))
        elif name == "MIN_INPUT_FILES":
            found.append(("min-input-files", number))
        else:
            known = ", ".join((*_MEGABYTES, "MIN_INPUT_FILES"))
            raise unsupported(f"the option {name} of OPTIMIZE", at, f"there are {known}")
        if not inner.skip(","):
            break
    inner.end()
    return MapValue(tuple(found))


def _trino_arguments(words: Words, read_query: ReadQuery) -> dict[str, CallArgument]:
    """The arguments by name, "" for the one that may stand without."""
    if words.peek() != "(" or words.skip("(", ")"):
        return {}
    inner = words.in_brackets()
    found: dict[str, CallArgument] = {}
    while True:
        argument = read_argument(inner, read_query)
        if argument.name.lower() in found:
            raise syntax_error("an argument is given twice", argument.offset)
        found[argument.name.lower()] = argument
        if not inner.skip(","):
            break
    inner.end()
    return found


def _named(arguments: dict[str, CallArgument], *names: str) -> list[CallArgument]:
    return [arguments.pop(each) for each in names if each in arguments]


def _threshold(arguments: dict[str, CallArgument]) -> CallArgument:
    """``retention_threshold => '7d'``, which is the default."""
    given = arguments.pop("retention_threshold", arguments.pop("", None))
    if given is None:
        return _argument("older_than", _WEEK, 0)
    found = _DURATION.fullmatch(given.value) if isinstance(given.value, str) else None
    if found is None:
        raise syntax_error("retention_threshold is a duration", given.offset, ("'7d'", "'12h'"))
    span = Duration(int(float(found[1]) * _UNITS[found[2]]))
    return _argument("older_than", span, given.offset)


def _none_left(arguments: dict[str, CallArgument], name: str) -> None:
    for each in arguments.values():
        raise unsupported(f"the argument {each.name or 'without a name'} of {name}", each.offset)
