"""COPY (query) TO 'file': its clauses and options, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from icesql.errors import Error, ProgrammingError, SqlSyntaxError, UnsupportedSqlError
from icesql.file_format import format_of_path
from icesql.sql.parse import parse
from icesql.sql.statement import Copy


def copy(sql: str, **how: Any) -> Copy:
    (statement,) = parse(sql, copies=True, **how)
    assert isinstance(statement, Copy)
    return statement


@pytest.mark.parametrize(
    ("target", "name", "options"),
    [
        ("'x.csv'", "csv", {}),
        ("'x'", "csv", {}),
        ("'x.tsv'", "csv", {"delimiter": "\t"}),
        ("'x.json'", "json", {}),
        ("'x.ndjson'", "json", {}),
        ("'x.parquet'", "parquet", {}),
        ("'x.PARQUET'", "parquet", {}),
        ("'x.arrow'", "arrow", {}),
        ("'x.csv.gz'", "csv", {"compression": "gzip"}),
        ("'x.jsonl.zst'", "json", {"compression": "zstd"}),
        ("'x' (FORMAT parquet)", "parquet", {}),
        ("'x.csv' (format 'json', ARRAY)", "json", {"array": True}),
        ("'x.csv' WITH (HEADER false)", "csv", {"header": False}),
        ("'x.csv' (HEADER, DELIM '|')", "csv", {"header": True, "delimiter": "|"}),
        (
            "'x.csv' (SEP ';', NULL 'n', QUOTE '''')",
            "csv",
            {"delimiter": ";", "nullstr": "n", "quote": "'"},
        ),
        ("'x.csv' (DELIMITER = ',', HEADER = 1)", "csv", {"delimiter": ",", "header": True}),
        ("'x.csv' (FORCE_QUOTE *)", "csv", {"force_quote": ("*",)}),
        ("'x.csv' (FORCE_QUOTE (a, \"B c\"))", "csv", {"force_quote": ("a", "B c")}),
        ("'x.csv.gz' (COMPRESSION none)", "csv", {"compression": "none"}),
        ("'x.csv' (DATEFORMAT '%d.%m.%Y')", "csv", {"dateformat": "%d.%m.%Y"}),
        (
            "'x.parquet' (COMPRESSION ZSTD, COMPRESSION_LEVEL 9, ROW_GROUP_SIZE 1000, PARQUET_VERSION V2)",
            "parquet",
            {
                "compression": "zstd",
                "compression_level": 9,
                "row_group_size": 1000,
                "parquet_version": "v2",
            },
        ),
    ],
)
def test_formats_and_options(target: str, name: str, options: dict[str, Any]) -> None:
    found = copy(f"COPY (SELECT 1) TO {target}").format
    assert (found.name, dict(found.options)) == (name, options)


@pytest.mark.parametrize(
    "source",
    [
        "(SELECT 1)",
        "((SELECT 1) UNION ALL (SELECT 2))",
        "(FROM a.t SELECT x)",
        "(WITH c AS (SELECT ')' AS x) SELECT * FROM c)",
        "(VALUES (1), (2))",
        "a.t",
        '"COPY".t',
        "a.t VERSION AS OF 'TO'",
        "a.t FOR TIMESTAMP AS OF '2026-01-01'",
        "a.t CHANGES FROM VERSION 'x' TO VERSION 'y'",
        "iceberg_scan('path')",
    ],
)
def test_what_may_be_copied(source: str) -> None:
    found = copy(f"COPY {source} TO 'x''y.csv' (HEADER);")
    assert found.path == "x'y.csv"


def test_a_query_is_parsed_as_any_other() -> None:
    found = copy("COPY (SELECT ? AS a FROM t WHERE b = ?) TO 'x'", parameters=[1, "TO"])
    assert (
        found.query.tree.sql()
        == parse("SELECT ? AS a FROM t WHERE b = ?", parameters=[1, "TO"])[0].tree.sql()
    )
    assert found.query.text == "SELECT ? AS a FROM t WHERE b = ?"
    assert copy("COPY `a`.`t` TO 'x'", dialect="spark").query.references[0].parts == ("a", "t")
    assert not copy("COPY t TO 'x' (OVERWRITE false)").overwrite
    assert copy("COPY t TO 'x' (OVERWRITE, HEADER)").overwrite


@pytest.mark.parametrize(
    ("sql", "kind", "said"),
    [
        ("COPY", SqlSyntaxError, "names no file"),
        ("COPY t", SqlSyntaxError, "names no file"),
        ("COPY TO 'x'", SqlSyntaxError, "nothing follows COPY"),
        ("COPY (SELECT 1) TO", SqlSyntaxError, "takes the path"),
        ("COPY (SELECT 1) TO ?", SqlSyntaxError, "takes the path"),
        ("COPY (SELECT 1) TO x", SqlSyntaxError, "takes the path"),
        ("COPY (SELECT 1) TO STDOUT", SqlSyntaxError, "takes the path"),
        ("COPY (SELECT 1) TO 'x' HEADER", SqlSyntaxError, 'unexpected "HEADER"'),
        ("COPY (SELECT 1) TO 'x' (HEADER", SqlSyntaxError, "never closed|unexpected"),
        ("COPY (SELECT 1) TO 'x' (HEADER,)", SqlSyntaxError, "option is missing"),
        ("COPY (SELECT 1) TO 'x' (HEADER) y", SqlSyntaxError, "unexpected"),
        ("COPY (SELECT) TO 'x'", SqlSyntaxError, "."),
        ("COPY (SELECT 1; SELECT 2) TO 'x'", Error, "."),
        ("COPY (DELETE FROM t) TO 'x'", UnsupportedSqlError, "DELETE"),
        ("COPY (COPY t TO 'y') TO 'x'", Error, "."),
        ("COPY (SELECT * FROM read_csv('/etc/passwd')) TO 'x'", UnsupportedSqlError, "read_csv"),
        ("COPY (SELECT getenv('HOME')) TO 'x'", UnsupportedSqlError, "getenv"),
        ("COPY t a TO 'x'", SqlSyntaxError, "no column or alias"),
        ("COPY t (a) TO 'x'", UnsupportedSqlError, r"COPY table \(columns\)"),
        ("COPY t FROM 'x'", UnsupportedSqlError, "COPY … FROM"),
        ("COPY INTO t FROM 'x'", UnsupportedSqlError, "COPY INTO"),
        ("COPY t TO 'x' (FORMAT xlsx)", UnsupportedSqlError, "in the format xlsx"),
        ("COPY t TO 'x' (FORMAT parqet)", UnsupportedSqlError, "did you mean parquet"),
        ("COPY t TO 'x' (PARTITION_BY (a))", UnsupportedSqlError, "PARTITION_BY of format csv.*one file"),
        ("COPY t TO 'x' (HEADR)", UnsupportedSqlError, "did you mean HEADER"),
        ("COPY t TO 'x.parquet' (HEADER)", UnsupportedSqlError, "HEADER of format parquet"),
        ("COPY t TO 'x.arrow' (HEADER)", UnsupportedSqlError, "it has none"),
        ("COPY t TO 'x' (HEADER 7)", ProgrammingError, "HEADER: 7 is not true or false"),
        ("COPY t TO 'x' (QUOTE 'ab')", ProgrammingError, "QUOTE: 'ab' is not one character"),
        ("COPY t TO 'x' (DELIMITER '')", ProgrammingError, "DELIMITER"),
        ("COPY t TO 'x' (DELIMITER upper('a'))", ProgrammingError, "has to be a literal"),
        ("COPY t TO 'x' (QUOTE ?)", Error, "."),
        ("COPY t TO 'x' (COMPRESSION zip)", ProgrammingError, "zip' is not one of none, gzip, zstd"),
        ("COPY t TO 'x.parquet' (ROW_GROUP_SIZE 0)", ProgrammingError, "ROW_GROUP_SIZE: 0"),
        ("COPY t TO 'x.parquet' (ROW_GROUP_SIZE -5)", ProgrammingError, "literal"),
        ("EXPLAIN COPY t TO 'x'", Error, "."),
    ],
)  # fmt: skip
def test_what_is_refused(sql: str, kind: type[Error], said: str) -> None:
    with pytest.raises(kind, match=said):
        parse(sql, copies=True)


def test_without_leave_there_is_no_copy() -> None:
    with pytest.raises(UnsupportedSqlError, match=r"COPY \(line 1, column 1\).*--copy-to"):
        parse("COPY (SELECT 1) TO 'x'")


def test_endings() -> None:
    assert format_of_path("a.b/c.pq") == "parquet"
    assert format_of_path("x.CSV.GZ") == "csv"
    assert [format_of_path(path) for path in ("x", "x.", "a.csv/x", "x.gz", ".csv")] == [
        None, None, None, None, "csv",
    ]  # fmt: skip
