"""COPY (query) TO 'file' (options), in DuckDB's spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.errors import ProgrammingError, UnsupportedSqlError, near_or_all
from icesql.file_format import FileFormat, compressed_by_ending, format_of_path, named_format
from icesql.sql.commands import Commands
from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import CLOSING, OPENING, TEXT, Token, Tokens, closing
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Copy

if TYPE_CHECKING:
    from icesql.sql.parse import Parse

_ENDINGS: Final = ("csv", "tsv", "json", "jsonl", "parquet", "arrow")


def read_copy(tokens: Tokens, parse: Parse) -> Copy:
    """Read the COPY statement in ``tokens``, the first of which is COPY.

    Raises SqlSyntaxError, UnsupportedSqlError, and ProgrammingError for the value of an option.
    """
    to = _to(tokens)
    source = tokens[1:to]
    if not source:
        raise syntax_error("nothing follows COPY", tokens[0].stop, ("a query", "a table"))
    path, rest = tokens[to + 1], tokens[to + 2 :]
    if source[0].text == "(" and closing(source, 0) == len(source) - 1:
        query = parse.any_query(source[1:-1])
    elif source[-1].text == ")" and source[0].text != "(" and not _is_call(source[0]):
        raise unsupported("COPY table (columns)", source[0].start, "COPY (SELECT columns …) TO")
    else:
        # An engine does not run the bare name of a table as a text.
        query = Commands(source, parse.sql, parse).table_query("COPY")
        query = replace(query, user_text=None, spark=None)
    form, overwrite = _options(path.text, rest, tokens[-1].stop)
    return Copy(query, path.text, form, overwrite)


def _is_call(token: Token) -> bool:
    return token.text.lower().startswith("iceberg_")


def _to(tokens: Tokens) -> int:
    """Return the index of the last TO outside brackets that precedes a string literal."""
    depth, found, other = 0, None, None
    for place, token in enumerate(tokens):
        depth += (token.word in OPENING) - (token.word in CLOSING)
        if depth == 0 and token.word == "TO":
            after = tokens[place + 1] if place + 1 < len(tokens) else None
            if after is not None and after.kind == TEXT:
                found = place
            else:
                other = token if after is None else after
        is_from = depth == 0 and token.word == "FROM" and tokens[place - 1].word != "CHANGES"
        if is_from and tokens[1].word not in ("(", "SELECT"):
            if [each.kind for each in tokens[place + 1 : place + 2]] == [TEXT]:
                raise unsupported("COPY … FROM", tokens[0].start)
            raise syntax_error("COPY … FROM takes the path of a file", token.stop, ("a text",))
        if place == 1 and token.word == "INTO":
            raise unsupported("COPY INTO", tokens[0].start, "write COPY (query) TO 'file'")
    if found is not None:
        return found
    if other is not None:
        raise syntax_error("COPY … TO takes the path of a file", other.start, ("a text",))
    raise syntax_error("COPY names no file", tokens[-1].stop, ("TO 'file'",))


def _options(path: str, tokens: Tokens, end: int) -> tuple[FileFormat, bool]:
    given = list(tokens)
    if given and given[0].word == "WITH":
        given = given[1:]
    if not given:
        return _format(path, None, end), False
    if given[0].text != "(" or closing(given, 0) != len(given) - 1:
        bad = given[0] if given[0].text != "(" else given[-1]
        raise syntax_error(f'unexpected "{bad.text}" after the file', bad.start, ("(",))
    read = _pairs(given[1:-1])
    named = [(value, at) for name, value, at in read if name == "format"]
    form = _format(path, *(named[-1] if named else (None, end)))
    overwrite = False
    for name, value, at in read:
        try:
            if name == "overwrite":
                overwrite = FileFormat("csv").with_option("header", value).option("header")
            elif name != "format":
                form = form.with_option(name, value)
        except UnsupportedSqlError as error:
            error.offset = at
            raise
    return compressed_by_ending(form, path), overwrite


def _format(path: str, name: Any, at: int) -> FileFormat:
    if name is None:
        by_ending = format_of_path(path)
        # As in DuckDB, where json is one object per line.
        name = by_ending if by_ending in _ENDINGS else "csv"
    if str(name).lower() == "json":
        name = "jsonl"
    if not isinstance(name, str) or name.lower() not in _ENDINGS:
        hint = near_or_all(str(name).lower(), _ENDINGS)
        raise UnsupportedSqlError(f"COPY … TO in the format {name}", hint=hint, offset=at)
    return compressed_by_ending(named_format(name), path)


def _pairs(tokens: Tokens) -> list[tuple[str, Any, int]]:
    """Return name, value and offset of each option."""
    pairs: list[tuple[str, Any, int]] = []
    words = TokenCursor(tokens, "")
    for part in words.listed(words.until):
        if not part:
            raise syntax_error("an option is missing", tokens[-1].stop if tokens else None)
        name, value = part[0], part[1:]
        if value and value[0].text == "=":
            value = value[1:]
        pairs.append((name.text.lower(), _value(name, value), name.start))
    return pairs


def _value(name: Token, tokens: Tokens) -> Any:
    match list(tokens):
        case []:
            return True
        case [Token(kind="number", text=text)] if text.isdigit():
            return int(text)
        case [Token(word="*")]:
            return ("*",)
        case [Token(word="TRUE" | "FALSE", text=text)]:
            return text.lower() == "true"
        case [Token(word=word, text=text)] if word not in ("$", "?"):
            return text
        case [Token(text="("), *inner, Token(text=")")]:
            return tuple(token.text for token in inner if token.text != ",")
    raise ProgrammingError(f"the option {name.text.upper()}: its value has to be a literal")
