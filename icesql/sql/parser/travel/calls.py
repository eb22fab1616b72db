"""Calls that replace a table: Databricks' and Trino's table_changes, Dremio's table_history.

    table_changes('table', first [, last])
    TABLE(system.table_changes(schema_name => 's', table_name => 't', start_snapshot_id => …, …))
    TABLE(table_history('table'))

A call becomes the name of its table, at the offset of the call, and a clause for its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icesql.errors import SqlSyntaxError
from icesql.sql.parser.travel.changes import change_clause, ended, read_arguments
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.table_name import Parts, name_parts
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from icesql.sql.parser.travel.changes import End
    from icesql.sql.parser.travel.cutter import TravelCutter

    # The parts of the table's name, and the clause, or None for a metadata table.
    FoundCall = tuple[Parts, exp.Version | None]

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
