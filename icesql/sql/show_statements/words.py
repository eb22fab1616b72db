"""Read SHOW by a table: words select rows of ``query.show.ANSWERS`` and the reader of the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from icesql.config import setting_key
from icesql.errors import ProgrammingError, nearest
from icesql.sql.lexer import TEXT
from icesql.sql.positions import syntax_error
from icesql.sql.statement import Shown

if TYPE_CHECKING:
    from icesql.sql.commands import Commands

_KINDS: Final = (
    "TABLES", "VIEWS", "NAMESPACES", "CATALOGS", "SNAPSHOTS", "REFS", "BRANCHES", "TAGS", "COLUMNS",
    "PARTITIONS", "HISTORY", "CREATE TABLE", "CREATE VIEW", "TBLPROPERTIES", "FUNCTIONS",
    "PROCEDURES", "ALL", "a setting",
)  # fmt: skip


def read_show(reader: Commands) -> Shown:
    """Read the statement after SHOW. Raises SqlSyntaxError."""
    at, first = reader.here, reader.take()
    if not first:
        raise syntax_error("nothing follows SHOW", at, _KINDS)
    for words, (what, then) in _SHOW.items():
        head, _, second = words.partition(" ")
        if head == first and (not second or reader.skip(second)):
            return then(reader, Shown(what))
    shown = Shown("SETTING", name=_setting(first, reader, at))
    reader.end()
    return shown


# ------------------------------------------------------------ what follows


def _names(reader: Commands, shown: Shown) -> Shown:
    """Read ``[FROM namespace] [LIKE pattern]``."""
    namespace = reader.name() if reader.either("FROM", "IN") else None
    return _like(reader, replace(shown, namespace=namespace))


def _like(reader: Commands, shown: Shown) -> Shown:
    """Read ``[LIKE pattern]`` or ``[ILIKE pattern]``, both case-insensitive."""
    if reader.either("LIKE", "ILIKE"):
        shown = replace(shown, like=reader.text("a text"))
    reader.end()
    return shown


def _functions(reader: Commands, shown: Shown) -> Shown:
    """Read ``[LIKE pattern]``, or the pattern alone, as in Spark."""
    shown = replace(shown, name=reader.parse.translated)
    if len(reader.rest) == 1 and reader.rest[0].text.upper() != "LIKE":
        return replace(shown, like=reader.rest[0].text or None)
    return _like(reader, shown)


def _procedures(reader: Commands, shown: Shown) -> Shown:
    """Read ``[FROM [catalog.]system] [LIKE pattern]``: all catalogs have the same procedures."""
    if reader.either("FROM", "IN"):
        at = reader.rest[0].start if reader.rest else None
        if reader.name()[-1].lower() != "system":
            raise syntax_error("procedures are in system", at, ("system",))
    return _like(reader, shown)


def _named(name: str, reader: Commands, shown: Shown) -> Shown:
    reader.end()
    return replace(shown, name=name)


def _table(before: tuple[str, ...], reader: Commands, shown: Shown) -> Shown:
    """Read ``[FROM] table``, optionally after one of the words ``before``."""
    reader.either(*before)
    return replace(shown, reference=reader.table(shown.label))


def _snapshots(reader: Commands, shown: Shown) -> Shown:
    """Read ``[EXTENDED] [FROM] table``."""
    if reader.is_word("EXTENDED"):
        reader.take()
        shown = replace(shown, what="SNAPSHOTS EXTENDED")
    reader.either(*_OF)
    return replace(shown, reference=reader.table("SHOW SNAPSHOTS"))


def _columns(reader: Commands, shown: Shown) -> Shown:
    """Read ``FROM table [FROM namespace] [LIKE pattern]``."""
    reader.either(*_OF)
    rest, like = reader.rest, None
    if len(rest) > 2 and rest[-2].word in ("LIKE", "ILIKE"):
        if rest[-1].kind != TEXT:
            raise syntax_error(f'unexpected "{rest[-1].text}"', rest[-1], ("a text",))
        like, rest = rest[-1].text, rest[:-2]
    place = next((index for index, each in enumerate(rest) if each.word in ("FROM", "IN")), None)
    outer: tuple[str, ...] = ()
    if place is not None:
        outer = tuple(token.text for token in rest[place + 1 :] if token.text != ".")
        rest = rest[:place]
    cut = len(rest) - len(reader.rest)
    reference = reader.table("SHOW COLUMNS", cut or None)
    if outer:
        reference = replace(reference, parts=(*outer, *reference.parts))
    return replace(shown, reference=reference, like=like)


def _properties(reader: Commands, shown: Shown) -> Shown:
    """Read ``table [('key')]``."""
    reader.either(*_OF)
    rest, key, cut = reader.rest, None, 0
    words = [token.word for token in rest]
    if words[-1:] == [")"] and "(" in words:
        opened = len(words) - 1 - words[::-1].index("(")
        if opened and words[opened - 1] != "ICEBERG_SCAN":
            written = rest[opened + 1 : -1]
            if len(written) > 1 and any(token.kind == TEXT for token in written):
                raise syntax_error(f'unexpected "{written[1].text}"', written[1], (")",))
            key = "".join(token.text for token in written)
            cut = opened - len(rest)
    return replace(shown, reference=reader.table(shown.label, cut or None), like=key)


def _setting(word: str, reader: Commands, at: int) -> str:
    name = word.lower()
    while reader.either(".", "-"):
        name += "." + reader.take().lower()
    try:
        return setting_key(name)
    except ProgrammingError:
        hint = nearest(word, _KINDS[:-1])
        problem = f'unexpected "{word}" after SHOW{hint}'
        raise syntax_error(problem, at, () if hint else _KINDS) from None


_OF: Final = ("FROM", "IN", "OF")
_Then: TypeAlias = Callable[["Commands", Shown], Shown]
_of_any: _Then = partial(_table, (*_OF, "FOR"))
_Row: TypeAlias = tuple[str, _Then]
# One or two words: the rows that they select, and the reader of the rest. Longer ones come first.
_SHOW: Final[dict[str, _Row]] = {
    "TABLES": ("TABLES", _names),
    "VIEWS": ("VIEWS", _names),
    **dict.fromkeys(("SCHEMAS", "NAMESPACES", "DATABASES"), ("NAMESPACES", _names)),
    "CATALOGS": ("CATALOGS", _like),
    "SNAPSHOTS": ("SNAPSHOTS", _snapshots),
    "REFS": ("REFS", partial(_table, _OF)),
    **{each: (each, _of_any) for each in ("BRANCHES", "TAGS", "PARTITIONS", "HISTORY")},
    **dict.fromkeys(("COLUMNS", "FIELDS"), ("COLUMNS", _columns)),
    **{each: (each, partial(_table, ())) for each in ("CREATE TABLE", "CREATE VIEW")},
    "TBLPROPERTIES": ("TBLPROPERTIES", _properties),
    **dict.fromkeys(
        ("USER FUNCTIONS", "SYSTEM FUNCTIONS", "ALL FUNCTIONS", "FUNCTIONS"),
        ("FUNCTIONS", _functions),
    ),
    "PROCEDURES": ("PROCEDURES", _procedures),
    "ALL TABLES": ("ALL TABLES", _like),
    **dict.fromkeys(("ALL", "SESSION", "PARAMETERS", "VARIABLES"), ("ALL", _like)),
    "TIME ZONE": ("SETTING", partial(_named, "timezone")),
    "SNAPSHOT TIME": ("SETTING", partial(_named, "snapshot_time")),
}
