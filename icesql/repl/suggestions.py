"""Suggestions at the cursor: keywords, tables, columns, versions, times, values, commands.

Three steps: which kinds may come here, which names are of that kind, in what order.
``suggestions`` is a function of text and names alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from icesql.config import SWITCHES, WORDS
from icesql.errors import SqlSyntaxError
from icesql.frozen import Frozen
from icesql.quoting import literal, quoted
from icesql.repl.commands import COMMANDS
from icesql.repl.completion_names import Known, Names
from icesql.repl.results import TEXT_FORMATS
from icesql.sql.grammar import completions, keywords
from icesql.sql.lexer import tokens_in

# ------------------------------------------------------------------ in a backslash command


_SWITCH: Final = ("on", "off")
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "x": ("on", "off", "auto"),
    "timing": _SWITCH,
    "pager": _SWITCH,
    "engine": ("local", "spark", "auto"),
    "format": TEXT_FORMATS,
}
_HELP: Final = frozenset({"?", "h", "help"})
_FILES: Final = frozenset({"i", "o", "s"})
_TIMES: Final = (Known("off", "tables as they are"), Known("'yesterday 12:00'", "a time"))
# ``\at`` takes a branch or tag: those of this many tables are offered.
_MOST_TABLES: Final = 8


def as_command(text: str) -> str | None:
    r"""The text before the cursor as a command; ``help mer`` is one, and None is SQL."""
    text = text.lstrip()
    if re.match(r"help\s", text, re.IGNORECASE):
        return f"\\{text}"
    return text if text.startswith("\\") else None


def word_of_command(text: str) -> str:
    """The piece of a command, at its end, that a suggestion replaces."""
    name, space, argument = text.partition(" ")
    if not space:
        return name
    if name[1:] in _FILES:
        return argument.lstrip()
    return argument.rpartition(" ")[2]


def of_command(text: str, names: Names) -> tuple[str, str, Iterable[Known]]:
    """The typed part of a word, the kind of name that fits there, and its suggestions."""
    name, space, argument = text.removeprefix("\\").partition(" ")
    word = word_of_command(text)
    if not space:
        return word, "command", [Known(f"\\{each}", COMMANDS[each].help) for each in COMMANDS]
    before = argument.lstrip().removesuffix(word).split()
    if name in _FILES:
        return word, "file", map(Known, names.source.paths(word))
    if name == "at" and not before:
        return word, "time", (*_TIMES, *_refs(names))
    if name in _HELP and not before:
        return word, "value", _topics()
    if name in _WORDS and not before:
        return word, "value", map(Known, _WORDS[name])
    if name not in COMMANDS or "TABLE" not in COMMANDS[name].argument:
        return word, "", ()
    if not before:
        return word, "table", map(Known, names.known("tables"))
    if name in ("diff", "changes"):
        return word, "version", names.known("versions", before[0])
    return word, "", ()


def _topics() -> Iterable[Known]:
    """The chapters of the manual."""
    from icesql.manual.lookup import chapter_title, chapters

    return [Known(topic, chapter_title(topic)) for topic in chapters()]


def _refs(names: Names) -> Iterable[Known]:
    """Branches and tags of the first tables, without main."""
    found: dict[str, str] = {}
    for table in names.known("tables")[:_MOST_TABLES]:
        for each in names.known("versions", table):
            if each.about in ("branch", "tag") and each.text != "'main'":
                name = each.text[1:-1].replace("''", "'")
                found.setdefault(name, f"{each.about} of {table}")
    return [Known(name, about) for name, about in found.items()]


# ------------------------------------------------------------------ in SQL


_WORD: Final = re.compile(r'(?<![\w."$@])[\w."$@]*+\Z')
# A text or number that is being written, after AS OF or a comparison.
_VALUE: Final = re.compile(r"(?:'[^']*|(?<![\w.-])[\w.-]*+)\Z")
_PLAIN_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*\Z")
_NAME: Final = r'(?<![\w$.])((?:[\w$]++|"[^"]*+")(?:\.(?:[\w$]++|"[^"]*+"))*+)'
_TABLE_AFTER: Final = frozenset(
    {"FROM", "JOIN", "DESCRIBE", "DESC", "SNAPSHOTS", "TABLE", "DIFF", "SUMMARY", "BLAME",
     "INTO", "UPDATE"}
)  # fmt: skip
_TABLES_NAMED: Final = re.compile(
    rf"\b(?:from|join|diff|blame|into|update)\s+{_NAME}"
    r"(?:\s+(?:as\s+)?(?!on\b|where\b|join\b|between\b|keyed\b|set\b|version\b|for\b|group\b"
    r"|order\b|left\b|inner\b|timestamp\b|limit\b|cross\b|values\b)([a-z_]\w*))?",
    re.IGNORECASE,
)
_VERSION: Final = re.compile(
    rf"{_NAME}\s+(?:for\s+)?(?:system_)?version\s+as\s+of\s*\Z", re.IGNORECASE
)
_TIME: Final = re.compile(
    rf"{_NAME}\s+(?:for\s+)?(?:timestamp|system_time)\s+as\s+of\s*\Z", re.IGNORECASE
)
_STATES: Final = re.compile(
    rf"\bdiff\s+(?:summary\s+)?{_NAME}\s+between\s+(?:\S+\s+and\s+)?\Z", re.IGNORECASE
)
_CHANGES: Final = re.compile(
    rf"{_NAME}\s+changes\s+from\s+(?:version\s+\S+\s+to\s+)?version\s+\Z", re.IGNORECASE
)
# Where a version or a time of a table is written.
_PAST: Final = {_VERSION: "version", _STATES: "version", _CHANGES: "version", _TIME: "time"}
_EQUALS: Final = re.compile(rf"\b{_NAME}\s*=\s*\Z", re.IGNORECASE)
_SETTING: Final = re.compile(r"^\s*(?:set|reset|show)\s+\Z", re.IGNORECASE)
_SETTING_VALUE: Final = re.compile(r"^\s*set\s+(\w+)\s*=\s*\Z", re.IGNORECASE)
_CALL: Final = re.compile(r"^\s*(?:explain\s+)?call\s+\Z", re.IGNORECASE)
_PARAMETER: Final = re.compile(
    r"^\s*(?:explain\s+)?call\s+([\w.]+)\s*\((?:[^()']|'[^']*'|\([^()]*\))*?(?:(?<=\()|,)\s*\Z",
    re.IGNORECASE,
)
_NAMESPACE: Final = re.compile(
    r"\b(?:show\s+(?:tables|views|schemas|namespaces)\s+(?:in|from)|use|drop\s+(?:schema|namespace))"
    r"\s+\Z",
    re.IGNORECASE,
)
_WORDS_OF_SETTINGS: Final = {**WORDS, **dict.fromkeys(SWITCHES, ("on", "off"))}
_METADATA_TABLES: Final = (
    "snapshots", "history", "refs", "files", "data_files", "delete_files", "entries", "manifests",
    "partitions", "position_deletes", "metadata_log_entries", "all_files", "all_data_files",
    "all_delete_files", "all_entries", "all_manifests",
)  # fmt: skip


class Suggestion(Frozen):
    """One completion: ``text`` replaces ``word_at`` the cursor; ``about`` is shown beside it.

    ``kind`` is table, catalog, column, keyword, command, version, time, value, function or
    setting.
    """

    text: str
    kind: str
    about: str = ""


def word_at(before: str) -> str:
    """The piece of text at the cursor that a suggestion replaces."""
    if (command := as_command(before)) is not None:
        return word_of_command(command)
    this = before[_statement_start(before) :]
    value = _VALUE.search(this)
    if value and _values_of(this[: value.start()], "", None) is not None:
        return value[0]
    found = _WORD.search(this)
    return found[0] if found else ""


def suggestions(before: str, names: Names, after: str = "") -> list[Suggestion]:
    """Suggestions to replace ``word_at(before)``; ``after`` is the text behind the cursor."""
    if (command := as_command(before)) is not None:
        word, kind, may_follow = of_command(command, names)
        return _matching(word, _suggested(kind, may_follow))
    word = word_at(before)
    head = before[: len(before) - len(word)]
    this = head[_statement_start(head) :]
    rest = after[: next(_ends(after), len(after) + 1) - 1]
    known = _values_of(this, rest, names)
    if known:
        if _EQUALS.search(this):  # a column may be compared with another one
            known += _column_suggestions(this, word, rest, names)
        return _matching(word, known)
    if _CALL.search(this):
        return _matching(word, _calls("procedure", names))
    if found := _PARAMETER.search(this):
        return _matching(word, _parameters(found[1], names))
    if _NAMESPACE.search(this):
        return _matching(word, _suggested("namespace", map(Known, names.known("namespaces"))))
    last = (re.findall(r"\w+", this) or [""])[-1].upper()
    if last in _TABLE_AFTER and not this.rstrip().endswith(","):
        offered = _table_suggestions(word, names)
        if last == "DIFF":
            offered.append(Suggestion("SUMMARY", "keyword"))
    else:
        words, may_be_name = completions(this)
        named = may_be_name or not words
        # Text that the grammar cannot parse still gets suggestions: all keywords and columns.
        columns = _column_suggestions(this, word, rest, names) if named else ()
        offered = [*columns, *(Suggestion(each, "keyword") for each in words or keywords())]
        if named and word and "." not in word:
            offered += _calls("function", names)
    return _matching(word, offered)


def _values_of(head: str, rest: str, names: Names | None) -> list[Suggestion] | None:
    """Suggestions of values: versions, times, partition values, settings; None elsewhere.

    Without ``names`` the list is empty where there would be suggestions.
    """
    for pattern, kind in _PAST.items():
        if found := pattern.search(head):
            return _suggested(kind, names.known(f"{kind}s", found[1]) if names else ())
    if found := _SETTING_VALUE.search(head):
        offered = _WORDS_OF_SETTINGS.get(found[1].lower())
        if offered:
            return _suggested("value", map(Known, offered))
    if _SETTING.search(head):
        return _suggested("setting", names.known("settings")) if names else None
    if found := _EQUALS.search(head):
        if names is None:
            return []
        qualifier, _, column = found[1].rpartition(".")
        for table, alias in _tables(head + rest):
            if qualifier.lower() in ("", alias.lower(), table.lower()):
                values = names.known("values", table, column)
                if values:
                    return _suggested("value", values)
    return None


def _suggested(kind: str, known: Iterable[Known]) -> list[Suggestion]:
    return [Suggestion(each.text, kind, each.about) for each in known]


def _parameters(procedure: str, names: Names) -> Iterator[Suggestion]:
    """``table => `` and the others of a procedure, and the names of tables as texts."""
    wanted = procedure.lower().rpartition(".")[2]
    for each in names.known("procedures"):
        if each.text.rpartition(".")[2] != wanted:
            continue
        signature = each.about.partition(" · ")[0].strip("()")
        for parameter in re.findall(r"\[[^\]]*+\]?|[^,\[\]]+", signature):
            name, _, about = parameter.strip(" []").partition(" ")
            if name:
                yield Suggestion(f"{name} => ", "parameter", about)
    for table in names.known("tables"):
        yield Suggestion(literal(table), "table")


def _table_suggestions(word: str, names: Names) -> list[Suggestion]:
    """Tables of the connection's catalog; other catalogs by name, with their tables after a dot."""
    tables = names.known("tables")
    offered = [Suggestion(name, "table") for name in tables]
    first, dot, _ = word.partition(".")
    for name in names.known("catalogs"):
        if dot and first.lower() == name.lower():
            offered += [Suggestion(table, "table") for table in names.known("tables", name)]
        elif not dot:
            offered.append(Suggestion(f"{name}.", "catalog"))
    table = word.rpartition(".")[0].lower()
    if dot and any(each.lower() == table for each in tables):
        offered += [
            Suggestion(f"{word.rpartition('.')[0]}.{each}", "metadata table")
            for each in _METADATA_TABLES
        ]
    return offered


def _tables(text: str) -> Iterator[tuple[str, str]]:
    """Tables that a statement names, and their aliases."""
    for table, alias in _TABLES_NAMED.findall(text):
        yield table, alias or table.rpartition(".")[2]


def _column_suggestions(head: str, word: str, rest: str, names: Names) -> Iterator[Suggestion]:
    qualifier, dot, _ = word.rpartition(".")
    for table, short in _tables(f"{head} {rest}"):
        if dot and qualifier.lower() not in (short.lower(), table.lower()):
            continue
        for column in names.known("columns", table):
            text = f"{qualifier}.{spelled(column)}" if dot else spelled(column)
            yield Suggestion(text, "column", table)


def _calls(kind: str, names: Names) -> Iterator[Suggestion]:
    for each in names.known(f"{kind}s"):
        yield Suggestion(f"{each.text}(", kind, each.about)


def spelled(name: str) -> str:
    """The name as SQL spells it: in double quotes unless it is a plain word."""
    return name if _PLAIN_NAME.match(name) else quoted(name)


def _statement_start(text: str) -> int:
    """Where the statement at the end of the text begins: behind the last ``;`` outside quotes."""
    return max(_ends(text), default=0)


def _ends(text: str) -> Iterator[int]:
    """Behind each ``;`` outside quotes and comments."""
    with suppress(SqlSyntaxError):
        yield from (each.stop for each in tokens_in(text) if each.word == ";")


def _matching(word: str, offered: Iterable[Suggestion]) -> list[Suggestion]:
    wanted = word.lower().lstrip("\"'")
    starts, holds = [], []
    seen = set()
    for suggestion in offered:
        # A name with control characters is not shown.
        if suggestion.text in seen or not suggestion.text.isprintable():
            continue
        seen.add(suggestion.text)
        text = suggestion.text.lower().lstrip("\"'")
        if text.startswith(wanted):
            starts.append(suggestion)
        elif suggestion.kind == "table" and f".{wanted}" in text:
            holds.append(suggestion)  # `orders` finds sales.orders
    return starts + holds
