"""Replace the files in a tree: ``read_csv('x')`` and ``'x.csv'`` become ``"__file_<i>"``.

Paths and options are literals and are passed on as values; nothing here accesses a file.
"""

from __future__ import annotations

from typing import Final

from icesql.sql.acceptance import function_name
from icesql.sql.engine_functions import is_file_function
from icesql.sql.keywords import FILES_HINT, FORMATS_HINT, word_map
from icesql.sql.positions import of_files, offset_of, syntax_error, unsupported
from icesql.sql.references import rename_table
from icesql.sql.statement import FileReference
from icesql.sql.trees import exp
from icesql.sql.user_text import Edit

_SUFFIXES: Final = word_map("""
.parquet = read_parquet
.parq = read_parquet
.csv = read_csv_auto
.tsv = read_csv_auto
.json = read_json_auto
.jsonl = read_json_auto
.ndjson = read_json_auto
""")

_COMMON: Final = "filename hive_partitioning hive_types hive_types_autocast union_by_name"
# The options of each kind of reader that are harmless.
_OPTIONS: Final = {
    "csv": """
all_varchar allow_quoted_nulls auto_detect auto_type_candidates column_names column_types columns
comment compression date_format dateformat decimal_separator delim delimiter dtypes encoding escape
force_not_null header ignore_errors names new_line normalize_names null null_padding nullstr
parallel quote sample_size sep skip strict_mode thousands timestamp_format timestampformat types
""",
    "parquet": "binary_as_string file_row_number",
    "json": """
auto_detect columns compression convert_strings_to_integers date_format dateformat
field_appearance_threshold format ignore_errors map_inference_threshold maximum_depth records
sample_size timestamp_format timestampformat
""",
}
_LITERALS: Final = (
    exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Array, exp.Struct, exp.PropertyEQ,
    exp.Identifier, exp.Paren,
)  # fmt: skip


def reader_of(path: str) -> str | None:
    """Return the function that reads a file, also a compressed one, by its suffix; or None."""
    name = path.lower().removesuffix(".gz").removesuffix(".zst")
    return next((reader for suffix, reader in _SUFFIXES.items() if name.endswith(suffix)), None)


def take_files(tree: exp.Expr, edits: list[Edit]) -> tuple[FileReference, ...]:
    """Rewrite ``tree`` in place; return the files that it reads and add their edits to ``edits``.

    Raises SqlSyntaxError for a path that is not text, UnsupportedSqlError for an option that is
    not known to be harmless or whose value is not a literal.
    """
    found: list[FileReference] = []
    for table in list(tree.find_all(exp.Table)):
        inner = table.this
        if not isinstance(inner, exp.Func) or not is_file_function(function_name(inner)):
            continue
        reference = _reference(len(found), table, inner)
        found.append(reference)
        alias = inner.meta.get("alias") or function_name(inner)
        span = inner.meta.get("start"), inner.meta.get("stop")
        rename_table(table, reference.name, alias, span, edits)
    return tuple(found)


def _reference(index: int, table: exp.Table, inner: exp.Func) -> FileReference:
    name, offset = function_name(inner), offset_of(table)
    arguments = [each for each in (inner.args.get("this"),) if isinstance(each, exp.Expression)]
    if isinstance(inner, exp.Anonymous):
        arguments = []
    arguments += inner.expressions
    if not arguments:
        raise syntax_error(f"{name}() needs a path", offset, ("a text",))
    first = arguments[0]
    paths = first.expressions if isinstance(first, exp.Array) else [first]
    if not paths or not all(isinstance(p, exp.Literal) and p.is_string and p.this for p in paths):
        raise syntax_error(
            f"the path of {name}() is a text in single quotes, a list of them or a parameter",
            offset,
        )
    options = tuple(_option(name, each, offset) for each in arguments[1:])
    return FileReference(index, name, tuple(str(p.this) for p in paths), options, offset)


def _option(name: str, given: exp.Expr, offset: int | None) -> tuple[str, str]:
    kind = next((each for each in _OPTIONS if each in name), "json")
    named = isinstance(given, exp.Kwarg | exp.PropertyEQ | exp.EQ)
    option = given.this.name.lower() if named else given.sql(dialect="duckdb")
    if not named or option not in f"{_COMMON} {_OPTIONS[kind]}".split():
        raise unsupported(f"the option {option} of {name}()", offset)
    value = given.expression
    if not all(isinstance(node, _LITERALS) for node in value.walk()):
        raise unsupported(
            f"the option {option} of {name}()", offset, "its value has to be a literal"
        )
    return option, value.sql(dialect="duckdb", comments=False)


def read_file(table: exp.Table, text: str, *, files: bool) -> None:
    """Turn ``FROM 'data.parquet'`` into a call. Raises UnsupportedSqlError for other texts."""
    start = table.meta["start"]
    reader = reader_of(text)
    if reader is None or not files:
        hint = FILES_HINT if reader else FORMATS_HINT
        if _is_metadata(text) or "://" in text or not (reader or files):
            hint = f"a table's folder or its metadata file is read with iceberg_scan('{text}')"
        raise of_files(f"a file as a table: '{text}'", start, hint)
    function = exp.Anonymous(this=reader, expressions=[exp.Literal.string(text)])
    # As in DuckDB, the alias is the file's name up to its first dot.
    stem = text.rsplit("/", 1)[-1].partition(".")[0] or text
    function.meta.update(start=start, stop=table.parts[0].meta["end"] + 1, alias=stem)
    table.set("this", function)


def _is_metadata(path: str) -> bool:
    """True for a table's metadata file, which has the suffix of a JSON file."""
    return path.removesuffix(".gz").endswith(".metadata.json")
