"""Procedures in other systems' words, as tables: OPTIMIZE, VACUUM, ROLLBACK TABLE, EXECUTE …"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import TEXT, Token
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query
from icesql.sql.writes.procedures.call import (
    CallArgument,
    CallProcedure,
    Duration,
    ListValue,
    MapValue,
    TimestampText,
    Value,
    read_argument,
    read_value,
)
from icesql.sql.writes.statements import TableName

ReadQuery = Callable[[Sequence[Token]], Query]

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES: Final = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_WEEK: Final = Duration(7 * 86_400_000)
# Dremio's options, in MB, and what they are called.
_MEGABYTES: Final = {
    "TARGET_FILE_SIZE_MB": "target-file-size-bytes", "MIN_FILE_SIZE_MB": "min-file-size-bytes",
    "MAX_FILE_SIZE_MB": "max-file-size-bytes",
}  # fmt: skip


def read_optimize(words: TokenCursor) -> CallProcedure:
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


def read_vacuum(words: TokenCursor) -> CallProcedure | None:
    """The statement after VACUUM, as Dremio has it; None for that of a database."""
    if not words.rest:
        return None
    if words.peek() != "TABLE":
        name = ".".join(words.name("a table"))
        raise unsupported(
            "VACUUM",
            words.tokens[0],
            f"CALL system.expire_snapshots('{name}', older_than => TIMESTAMP '…') forgets "
            "snapshots and deletes their files, and "
            f"CALL system.remove_orphan_files('{name}', dry_run => true) lists files that the "
            "table does not name",
        )
    return read_form(words, "VACUUM")


def read_form(words: TokenCursor, verb: str) -> CallProcedure:
    """The statement after VACUUM, ROLLBACK TABLE, RESTORE or UNDROP; see ``_FORMS``."""
    at = words.index
    words.skip("TABLE")
    given = [_table(words)]
    if verb in ("ROLLBACK", "RESTORE"):
        words.need("TO")
    here = words.here
    if verb == "RESTORE" and words.peek() == "TIMESTAMP":
        hint = "CALL system.rollback_to_timestamp('t', TIMESTAMP '…') goes to what was before it"
        raise unsupported("RESTORE … TO TIMESTAMP AS OF", here, hint)
    forms = _FORMS[verb]
    if len(forms) == 1:
        (found,) = forms
        for word in found.split():
            words.need(word)
    else:
        found = next((each for each in forms if words.skip(*each.split())), "")
        if not found:
            raise words.unexpected(*forms)
    procedure, *clauses = forms[found].split()
    name, value = _VALUES.get(found.partition(" ")[0], ("", None))
    if value is not None:
        given.append(_argument(name, value(words), here))
    while words.token is not None:
        here, clause = words.here, words.either(*clauses)
        if not clause:
            raise words.unexpected(*clauses[:1], "the end of the statement")
        words.skip("=")
        given.append(_argument(clause.lower(), _CLAUSES[clause](words), here))
    return _call(procedure, given, words.offset(at))


def _snapshot(words: TokenCursor) -> int:
    """The id of a snapshot, which Dremio puts in quotes."""
    at = words.offset(words.index - 1)
    text = words.text() if words.kind(words.index) == TEXT else str(_version(words))
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise syntax_error(f"{text!r} is no id of a snapshot", at, ("a number",))
    return int(text)


def _time(words: TokenCursor) -> TimestampText:
    return TimestampText(words.text())


def _version(words: TokenCursor) -> int:
    """The id of a snapshot, or -1 for one commit back."""
    return -words.number() if words.skip("-") else words.number()


def read_execute(words: TokenCursor, table: TableName, read_query: ReadQuery) -> CallProcedure:
    """Trino's ALTER TABLE table EXECUTE …, after that word; see ``_EXECUTED``."""
    at = words.here
    name = words.identifier("a procedure").lower()
    given = [_argument("table", table, at if table.offset is None else table.offset)]
    arguments = _trino_arguments(words, read_query)
    if name not in _EXECUTED:
        hint = "CALL system.name(…) runs icesql's own; SHOW PROCEDURES lists them"
        raise unsupported(f"ALTER TABLE … EXECUTE {name}", at, _REFUSED.get(name, hint))
    procedure, *parameters = _EXECUTED[name].split()
    for parameter in parameters:
        # The first one may stand without a name.
        found = arguments.pop(parameter, None) or (
            arguments.pop("", None) if parameter == parameters[0] else None
        )
        place = at if found is None else found.offset
        if parameter in _MEANT:
            own, read = _MEANT[parameter]
            given.append(_argument(own, read(found), place))
        elif found is not None:
            given.append(_argument(parameter, found.value, place))
    for each in arguments.values():
        raise unsupported(f"the argument {each.name or 'without a name'} of {name}", each.offset)
    if name == "optimize":
        given += _where(words)
    words.end()
    return _call(procedure, given, at)


def _ago(given: CallArgument | None) -> Duration:
    """``retention_threshold => '7d'``, which is the default."""
    if given is None:
        return _WEEK
    return Duration(_amount(given, _UNITS, "retention_threshold is a duration", "'7d'", "'12h'"))


def _rewritten(given: CallArgument | None) -> MapValue:
    """Trino rewrites two files or more, and every file with deletes."""
    options: list[tuple[Value, Value]] = [("min-input-files", 2), ("delete-file-threshold", 1)]
    if given is not None:
        least = _amount(given, _SIZES, "file_size_threshold is a size", "'128MB'")
        options.append(("min-file-size-bytes", least))
    return MapValue(tuple(options))


def _amount(given: CallArgument, units: Mapping[str, int], problem: str, *examples: str) -> int:
    """A text such as ``'1.5GB'`` in the smallest of its units."""
    pattern = rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(units)})\s*"
    found = re.fullmatch(pattern, given.value) if isinstance(given.value, str) else None
    if found is None:
        raise syntax_error(problem, given.offset, examples)
    return int(float(found[1]) * units[found[2]])


# ------------------------------------------------------------------ pieces


def _call(name: str, given: Sequence[CallArgument], at: int) -> CallProcedure:
    return CallProcedure(("system", name), tuple(given), at)


def _argument(name: str, value: Value, at: int) -> CallArgument:
    return CallArgument(name, value, at)


def _table(words: TokenCursor) -> CallArgument:
    at = words.here
    return _argument("table", TableName(words.name("a table"), at), at)


def _where(words: TokenCursor) -> list[CallArgument]:
    """The condition as it is written, up to ZORDER or the end."""
    if not words.skip("WHERE"):
        return []
    at = words.here
    tokens = words.until("ZORDER")
    if not tokens:
        raise words.unexpected("a condition")
    return [_argument("where", words.sql[at : tokens[-1].stop], at)]


def _zorder(words: TokenCursor, at: int) -> list[CallArgument]:
    inner = words.in_brackets() if words.peek() == "(" else words
    columns = [".".join(inner.name("a column"))]
    while inner.skip(","):
        columns.append(".".join(inner.name("a column")))
    if inner is not words:
        inner.end()
    order = f"zorder({','.join(columns)})"
    return [_argument("strategy", "sort", at), _argument("sort_order", order, at)]


def _dremio_options(words: TokenCursor) -> MapValue:
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


def _trino_arguments(words: TokenCursor, read_query: ReadQuery) -> dict[str, CallArgument]:
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


# TokenCursor behind the table, and the procedure with the clauses that it takes.
_FORMS: Final[Mapping[str, Mapping[str, str]]] = {
    # Dremio's.
    "VACUUM": {
        "EXPIRE SNAPSHOTS": "expire_snapshots OLDER_THAN RETAIN_LAST",
        "REMOVE ORPHAN FILES": "remove_orphan_files OLDER_THAN LOCATION",
    },
    "ROLLBACK": {
        "SNAPSHOT": "rollback_to_snapshot",
        "VERSION": "rollback_to_snapshot",
        "TIMESTAMP": "rollback_to_timestamp",
    },
    # Delta Lake's; -1 is one commit back.
    "RESTORE": {"VERSION AS OF": "rollback_to_snapshot"},
    # Snowflake's: which file it is, the procedure says.
    "UNDROP": {"": "register_table"},
}
# What follows the words of a form.
_VALUES: Final[Mapping[str, tuple[str, Callable[[TokenCursor], Value]]]] = {
    "SNAPSHOT": ("snapshot_id", _snapshot),
    "VERSION": ("snapshot_id", _version),
    "TIMESTAMP": ("timestamp", _time),
}
_CLAUSES: Final[Mapping[str, Callable[[TokenCursor], Value]]] = {
    "OLDER_THAN": _time, "RETAIN_LAST": TokenCursor.number, "LOCATION": TokenCursor.text,
}  # fmt: skip
# Trino's procedures: ours, and the parameters that they have there.
_EXECUTED: Final = {
    "optimize": "rewrite_data_files file_size_threshold",
    "optimize_manifests": "rewrite_manifests",
    "expire_snapshots": "expire_snapshots retention_threshold retain_last clean_expired_metadata",
    "remove_orphan_files": "remove_orphan_files retention_threshold",
    "rollback_to_snapshot": "rollback_to_snapshot snapshot_id",
}
# Parameters that are others here, and what they are without a value.
_MEANT: Final[Mapping[str, tuple[str, Callable[[CallArgument | None], Value]]]] = {
    "retention_threshold": ("older_than", _ago),
    "file_size_threshold": ("options", _rewritten),
}
_ADD: Final = "CALL system.add_files('t', '`parquet`.`folder`')"
_REFUSED: Final = {
    "drop_extended_stats": "the statistics of a table are of a snapshot; ANALYZE t writes new ones",
    "add_files": _ADD,
    "add_files_from_table": _ADD,
}


# ANALYZE: the statistics of a table, in Spark's and Trino's words.


def read_analyze(words: TokenCursor) -> CallProcedure | None:
    """The statement after ANALYZE, as Spark and Trino have it; None for that of a database."""
    at = words.here
    is_named = words.skip("TABLE")
    if words.token is None:
        if is_named:
            raise words.unexpected("a table")
        return None
    place = words.here
    given = [CallArgument("table", TableName(words.name("a table"), place), place)]
    here = words.here
    if words.peek() == "PARTITION" or words.skip("DELETE"):
        hint = "the statistics of a table are of a snapshot, and go with it"
        raise unsupported("ANALYZE of partitions, and without STATISTICS", here, hint)
    if words.skip("COMPUTE", "STATISTICS"):
        words.skip("NOSCAN")
        words.skip("FOR", "ALL", "COLUMNS")
        if words.skip("FOR", "COLUMNS"):
            names = [".".join(words.name("a column"))]
            while words.skip(","):
                names.append(".".join(words.name("a column")))
            given.append(CallArgument("columns", ListValue(tuple(names)), here))
    elif words.skip("WITH"):
        inner = words.in_brackets()
        inner.need("COLUMNS")
        inner.need("=")
        here = inner.here
        value = read_value(inner, _no_query)
        inner.end()
        given.append(CallArgument("columns", value, here))
    words.end()
    return CallProcedure(("system", "compute_table_stats"), tuple(given), at)


def _no_query(tokens: Sequence[Token]) -> Query:
    raise unsupported("an argument that is no constant", tokens[0], "ARRAY['a', 'b']")
