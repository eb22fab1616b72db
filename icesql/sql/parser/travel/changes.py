"""Changes of a table, and calls that replace a table, read from tokens as clauses.

    CHANGES FROM (VERSION | TIMESTAMP) value [INCLUSIVE | EXCLUSIVE]
        [TO (VERSION | TIMESTAMP) value [INCLUSIVE | EXCLUSIVE]]
        [KEYED BY (column, …)]
        [WITH (deduplicationMode = none | dropCarryovers | netChanges, computeUpdates = true)]

    CHANGES (INFORMATION => DEFAULT | APPEND_ONLY) AT (kind => value) [END (kind => value)]

    table_changes('table', first [, last])
    TABLE(system.table_changes(schema_name => 's', table_name => 't', start_snapshot_id => …, …))
    TABLE(table_history('table'))

Sources: Spark 4.2, ``CHANGES`` of a table (``KEYED BY`` is icesql's own); Snowflake's clause of the
same name, whose DEFAULT is the net change; ``table_changes`` of Databricks, which includes both
ends, and of Trino; Dremio's ``table_history``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from icesql.errors import Error, SqlSyntaxError
from icesql.sql.lexer import TEXT
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.table_name import Parts, name_parts
from icesql.sql.time_travel import OPTIONS
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from icesql.sql.parser.travel.cutter import TravelCutter

    # The properties of one end of the range (kind, start, text, included), and its value.
    End = tuple[dict[str, Any], exp.Expr]
    # The parts of the table's name, and the clause, or None for a metadata table.
    FoundCall = tuple[Parts, exp.Version | None]

_KINDS: Final = ("VERSION", "TIMESTAMP")
_INFORMATION: Final[dict[str, dict[str, str]]] = {
    "DEFAULT": {"deduplicationmode": "netChanges"},
    "APPEND_ONLY": {"appends": "true"},
}
_MOMENTS: Final = ("TIMESTAMP", "OFFSET", "VERSION")
# A text that begins with a date is not the name of a branch.
_TIME: Final = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}")


def read_changes(words: TravelCutter, index: int) -> exp.Version | None:
    """Read the clause at ``index`` and move the cursor behind it; None if there is no clause."""
    words.index = index
    if words.skip("CHANGES ( INFORMATION"):
        return _snowflake(words)
    if not words.skip("CHANGES FROM") or words.peek() not in _KINDS:
        return None
    start = _end(words, "FROM")
    end = _end(words, "TO") if words.skip("TO") else _open()
    return change_clause(start, end, _keys(words), _options(words))


def read_arguments(words: TravelCutter) -> exp.Version:
    """Read ``, first [, last])`` of ``table_changes('table', first [, last])``."""
    words.need(",")
    first = _argument(words)
    first[0]["included"] = True
    last = _argument(words) if words.skip(",") else _open()
    words.need(")")
    return change_clause(first, last, [], {})


def read_difference(words: TravelCutter) -> exp.Version:
    """Read ``BETWEEN a AND b [KEYED BY (column, …)]``."""
    words.need("BETWEEN")
    first = _version(words)
    words.need("AND")
    return change_clause(first, _version(words), _keys(words), {"direct": "true"})


def read_blame(words: TravelCutter) -> exp.Version:
    """Read ``[VERSION AS OF value] [KEYED BY (column, …)]``."""
    last, is_named = _open(), words.skip("FOR")
    kind = words.peek()
    if kind in _KINDS and words.skip(f"{kind} AS OF"):
        last = ended(words, kind)
    elif is_named:
        raise words.unexpected(*_KINDS)
    return change_clause(_open(), last, _keys(words), {"blame": "true"})


def ended(words: TravelCutter, kind: str, missing: Error | None = None) -> End:
    """Read the next value as an end of the range, of this kind."""
    first = words.index
    value, words.index = words.value(first)
    if value is None:
        raise missing or words.unexpected("a snapshot id, a branch, a tag or a time")
    start, text = words.tokens[first].start, words.written(first, words.index)
    return {"kind": kind, "start": start, "text": text}, value


def _open() -> End:
    return {}, exp.Null()


def _version(words: TravelCutter) -> End:
    """Read a version or a time in any spelling, alone or after VERSION or TIMESTAMP."""
    word, after = words.peek(), words.peek(1)
    if word in _KINDS and after != "AND" and words.index + 1 < len(words.tokens):
        quoted = words.kind(words.index + 1) == TEXT
        if word == "VERSION" or not quoted:
            words.index += 1
            return ended(words, word)
    return ended(words, "TEXT")


def _argument(words: TravelCutter) -> End:
    """Read a version (a number or a ref) or a time (a text that begins with a date or a CAST)."""
    bound, value = ended(words, "VERSION")
    is_time = isinstance(value, exp.Literal) and value.is_string and _TIME.match(value.this)
    if is_time or isinstance(value, exp.Cast):
        bound["kind"] = "TIMESTAMP"
    return bound, value


def _snowflake(words: TravelCutter) -> exp.Version:
    """Read ``=> DEFAULT) AT (kind => value) [END (kind => value)]`` after INFORMATION."""
    words.need("=>")
    wanted = words.peek()
    if wanted not in _INFORMATION:
        hint = "use DEFAULT for the net changes, APPEND_ONLY for what was appended"
        raise unsupported(f"CHANGES (INFORMATION => {wanted})", words.offset(words.index - 4), hint)
    words.index += 1
    words.need(")")
    first = _moment(words, "AT")
    last = _moment(words, "END") if words.peek() == "END" else _open()
    return change_clause(first, last, [], _INFORMATION[wanted])


def _moment(words: TravelCutter, word: str) -> End:
    """Read ``AT (kind => value)``."""
    words.need(word)
    words.need("(")
    kind = words.peek()
    if kind not in _MOMENTS:
        shown = f"{word} ({kind or words.tokens[-1].text} => …)"
        raise unsupported(shown, words.here, "use TIMESTAMP, OFFSET or VERSION")
    words.index += 1
    words.need("=>")
    found = ended(words, kind)
    words.need(")")
    return found


def _end(words: TravelCutter, word: str) -> End:
    """Read one end of the range: its properties and its value."""
    kind = words.either(*_KINDS)
    if not kind:
        raise words.unexpected(*_KINDS)
    wanted = "a time" if kind == "TIMESTAMP" else "a snapshot id, a branch or a tag"
    missing = syntax_error(f"nothing follows {word} {kind}", words.here, (wanted,))
    bound, value = ended(words, kind, missing)
    included = words.either("INCLUSIVE", "EXCLUSIVE")
    if included:
        bound["included"] = included == "INCLUSIVE"
    return bound, value


def _keys(words: TravelCutter) -> list[str]:
    if not words.skip("KEYED"):
        return []
    words.need("BY")
    words.need("(")
    return words.listed(words.text_or_name, ")")


def _options(words: TravelCutter) -> dict[str, str]:
    if not words.skip("WITH ("):
        return {}

    def option() -> tuple[str, str]:
        at, name = words.here, words.text_or_name().lower()
        if name not in {each.lower() for each in OPTIONS}:
            raise syntax_error(f'unknown option "{name}" of CHANGES', at, OPTIONS)
        words.need("=")
        return name, words.text_or_name()

    return dict(words.listed(option, ")"))


def change_clause(start: End, end: End, keys: list[str], options: dict[str, str]) -> exp.Version:
    """Return the clause for a range of commits from ``start`` to ``end``."""
    clause = exp.Version(
        this="CHANGES", kind="CHANGES", expression=exp.Tuple(expressions=[start[1], end[1]])
    )
    clause.meta.update({"from": start[0], "to": end[0], "keys": keys, "options": options})
    return clause


# ------------------------------------------------------------------ calls
# A call becomes the name of its table, at the offset of the call, and a clause for its arguments.


# Dremio's functions, and the metadata tables that they read.
_METADATA: Final = {
    "TABLE_HISTORY": "history",
    "TABLE_MANIFESTS": "manifests",
    "TABLE_PARTITIONS": "partitions",
    "TABLE_SNAPSHOT": "snapshots",
    "TABLE_FILES": "files",
}
_NAMES: Final = ("schema_name", "table_name", "start_snapshot_id", "end_snapshot_id")
_CHANGES_HINT: Final = "use CHANGES FROM VERSION a TO VERSION b behind the table"


def read_table_call(words: TravelCutter, index: int) -> FoundCall | None:
    """Read the call at ``index`` and move the cursor behind it; None if there is no call."""
    words.index = index
    if words.skip("APPENDS ( TABLE"):
        raise unsupported("APPENDS (TABLE …)", words.tokens[index], _CHANGES_HINT)
    if words.skip("TABLE_CHANGES ("):
        return _table_changes(words) if words.is_text else None
    if not words.skip("TABLE ("):
        return None
    while words.peek(1) == ".":  # catalog.system.table_changes
        words.index += 2
    name, place = words.peek(), words.index
    if words.peek(1) != "(":
        return None
    words.index += 2
    if name in _METADATA:
        return _metadata(words, place)
    return _trino(words, index) if name == "TABLE_CHANGES" else None


def _table_changes(words: TravelCutter) -> FoundCall:
    parts = name_parts(words.text())
    if words.peek() != ",":
        at = words.token or words.tokens[-1]
        raise syntax_error("table_changes() needs the first version", at, (",",))
    return parts, read_arguments(words)


def _metadata(words: TravelCutter, place: int) -> FoundCall:
    is_text, name = words.is_text, words.word(place)
    words.index += 1
    if not (is_text and words.skip(") )")):
        raise syntax_error(f"{name.lower()}() takes the name of a table", words.tokens[place])
    return (*name_parts(words.tokens[place + 2].text), _METADATA[name]), None


def _trino(words: TravelCutter, index: int) -> FoundCall:
    """Read Trino's call: it excludes the first snapshot and includes the last one."""
    given: dict[str, End] = {}

    def wrong() -> SqlSyntaxError:
        problem = "table_changes() takes a schema, a table and two snapshots"
        return syntax_error(problem, words.here, _NAMES)

    def argument() -> None:
        name = _NAMES[len(given)] if len(given) < len(_NAMES) else ""
        if words.peek(1) == "=>":
            name = words.identifier().lower()
            words.need("=>")
        if name not in _NAMES or name in given:
            raise wrong()
        given[name] = ended(words, "VERSION", wrong())

    words.listed(argument)
    names = [given.get(each) for each in _NAMES]
    texts = [each[1].name for each in names[:2] if each and each[1].is_string]
    if not words.skip(") )") or len(texts) < 2:
        raise wrong()
    first, last = names[2:]
    if first is None or last is None:
        raise syntax_error("table_changes() needs both snapshots", words.tokens[index])
    return (*name_parts(texts[0]), texts[1]), change_clause(first, last, [], {})
