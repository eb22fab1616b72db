"""What SHOW lists beside tables, namespaces, snapshots and refs, in the words of other systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.config import setting_key
from icesql.errors import ProgrammingError, similar_names
from icesql.sql.lexer import TEXT
from icesql.sql.positions import syntax_error
from icesql.sql.statement import (
    ShowCatalogs,
    ShowOfTable,
    ShowSession,
    ShowViews,
    Statement,
)

if TYPE_CHECKING:
    from icesql.sql.commands import Commands

SHOWN: Final = (
    "TABLES", "VIEWS", "NAMESPACES", "CATALOGS", "SNAPSHOTS", "REFS", "BRANCHES", "TAGS", "COLUMNS",
    "PARTITIONS", "HISTORY", "CREATE TABLE", "CREATE VIEW", "TBLPROPERTIES", "FUNCTIONS",
    "PROCEDURES", "ALL", "a setting",
)  # fmt: skip
_OF_A_TABLE: Final = ("BRANCHES", "TAGS", "PARTITIONS", "HISTORY")


def read_show(reader: Commands, word: str, at: int) -> Statement:
    """The statement after SHOW and ``word``, which stands at ``at``. Raises SqlSyntaxError."""
    match word:
        case _ if word in _OF_A_TABLE:
            reader.either("FROM", "IN", "OF", "FOR")
            return ShowOfTable(word, reader.table(f"SHOW {word}"))
        case "COLUMNS" | "FIELDS":
            return _columns(reader)
        case "CREATE" if reader.skip("TABLE"):
            return ShowOfTable("CREATE TABLE", reader.table("SHOW CREATE TABLE"))
        case "CREATE" if reader.skip("VIEW"):
            return ShowOfTable("CREATE VIEW", reader.table("SHOW CREATE VIEW"))
        case "TBLPROPERTIES":
            return _properties(reader)
        case "USER" | "SYSTEM" if reader.skip("FUNCTIONS"):
            return _functions(reader)
        case "FUNCTIONS":
            return _functions(reader)
        case "PROCEDURES":
            return _procedures(reader)
        case "ALL":
            return _all(reader)
        case "CATALOGS":
            catalogs = ShowCatalogs(reader.like())
            reader.end()
            return catalogs
        case "VIEWS":
            namespace = reader.name() if reader.either("FROM", "IN") else None
            views = ShowViews(namespace, reader.like())
            reader.end()
            return views
        case "SESSION" | "PARAMETERS" | "VARIABLES":
            shown = ShowSession("ALL", reader.like())
        case "TIME" if reader.skip("ZONE"):
            shown = ShowSession("SETTING", name="timezone")
        case "SNAPSHOT" if reader.skip("TIME"):
            shown = ShowSession("SETTING", name="snapshot_time")
        case _:
            shown = ShowSession("SETTING", name=_setting(word, reader, at))
    reader.end()
    return shown


def _all(reader: Commands) -> Statement:
    if reader.skip("FUNCTIONS"):
        return _functions(reader)
    what = "ALL TABLES" if reader.skip("TABLES") else "ALL"
    shown = ShowSession(what, reader.like())
    reader.end()
    return shown


def _functions(reader: Commands) -> Statement:
    pattern = None
    if len(reader.rest) == 1 and reader.rest[0].text.upper() != "LIKE":
        pattern = reader.rest[0].text  # as Spark has it: SHOW FUNCTIONS trim
        reader.take()
    shown = ShowSession("FUNCTIONS", pattern or reader.like())
    reader.end()
    return shown


def _procedures(reader: Commands) -> Statement:
    """SHOW PROCEDURES [FROM [catalog.]system] [LIKE pattern]: all catalogs have the same."""
    if reader.either("FROM", "IN"):
        at = reader.rest[0].start if reader.rest else None
        if reader.name()[-1].lower() != "system":
            raise syntax_error("procedures are in system", at, ("system",))
    shown = ShowSession("PROCEDURES", reader.like())
    reader.end()
    return shown


def _columns(reader: Commands) -> Statement:
    """SHOW COLUMNS FROM table [FROM namespace] [LIKE pattern]."""
    reader.either("FROM", "IN", "OF")
    rest, like = reader.rest, None
    if len(rest) > 2 and rest[-2].word in ("LIKE", "ILIKE"):
        if rest[-1].kind != TEXT:
            raise syntax_error(f'unexpected "{rest[-1].text}"', rest[-1], ("a text",))
        like, rest = rest[-1].text, rest[:-2]
    words = [token.word for token in rest]
    place = next((index for index, word in enumerate(words) if word in ("FROM", "IN")), None)
    outer: tuple[str, ...] = ()
    if place is not None:
        outer = tuple(token.text for token in rest[place + 1 :] if token.text != ".")
        rest = rest[:place]
    cut = len(rest) - len(reader.rest)
    reference = reader.table("SHOW COLUMNS", cut or None)
    if outer:
        reference = replace(reference, parts=(*outer, *reference.parts))
    return ShowOfTable("COLUMNS", reference, like)


def _properties(reader: Commands) -> Statement:
    """SHOW TBLPROPERTIES table [('key')]."""
    reader.either("FROM", "IN", "OF")
    rest, key, cut = reader.rest, None, 0
    words = [token.word for token in rest]
    if words[-1:] == [")"] and "(" in words:
        opened = len(words) - 1 - words[::-1].index("(")
        if opened and words[opened - 1] != "ICEBERG_SCAN":
            key = "".join(token.text for token in rest[opened + 1 : -1])
            cut = opened - len(rest)
    return ShowOfTable("TBLPROPERTIES", reader.table("SHOW TBLPROPERTIES", cut or None), key)


def _setting(word: str, reader: Commands, at: int) -> str:
    name = word.lower()
    while reader.either(".", "-"):
        name += "." + reader.take().lower()
    try:
        return setting_key(name)
    except ProgrammingError:
        near = similar_names(word, SHOWN[:-1], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        problem = f'unexpected "{word}" after SHOW{hint}'
        raise syntax_error(problem, at, () if hint else SHOWN) from None
