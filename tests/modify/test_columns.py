"""ALTER TABLE of columns, and DROP TABLE … PURGE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ("DROP COLUMN p", "ProgrammingError", "partitioned by it"),
        ("DROP COLUMN nope", "Error", "nope"),
        ("ALTER COLUMN a TYPE VARCHAR", "TypeMismatchError", "only widen"),
        ("ALTER COLUMN a SET NOT NULL", "ProgrammingError", "may be NULL"),
        ("ADD COLUMN a INT", "ProgrammingError", '"?a"?'),
        ("ADD COLUMN b INT NOT NULL", "ProgrammingError", "without a DEFAULT"),
        ("ADD COLUMN b INT DEFAULT 3", "Error", "3"),
        ("RENAME COLUMN a TO p", "ProgrammingError", "already"),
        ('ADD COLUMN "s.X" INT', "ProgrammingError", 'two columns are called "s.X"'),
        ('RENAME COLUMN a TO "l.element"', "ProgrammingError", "two columns are called"),
        ("ALTER COLUMN a", "SqlSyntaxError", "expected TYPE"),
        ("ADD COLUMN", "SqlSyntaxError", "expected a column"),
        ("ADD PARTITION FIELD p", "ProgrammingError", "two partition fields"),
        ("EXCHANGE PARTITION (p = 1)", "UnsupportedSqlError", "EXCHANGE PARTITION"),
    ],
)
def test_what_no_table_can_become(
    lasting: tuple[icesql.Connection, Path], change: str, kind: str, message: str
) -> None:
    con, _ = lasting
    con.execute(
        "CREATE TABLE IF NOT EXISTS s.t (a INT, p INT, s STRUCT<x INT>, l INT[]) PARTITIONED BY (p)"
    )
    before = con.execute("DESCRIBE s.t").fetchall()
    with pytest.raises(getattr(errors, kind), match=message):
        con.execute(f"ALTER TABLE s.t {change}")
    assert con.execute("DESCRIBE s.t").fetchall() == before


@pytest.mark.parametrize("catalog", ["sqlite"], indirect=True)
def test_purge(con: icesql.Connection, catalog: dict[str, Any]) -> None:
    for name in ("kept", "gone"):
        con.execute(f"CREATE TABLE s.{name} AS SELECT 1 AS a")
    con.execute("DROP TABLE s.kept")
    con.execute("DROP TABLE s.gone PURGE")
    (left,) = Path(catalog["warehouse"]).parent.rglob("*.parquet")
    assert "/kept/" in str(left)


def test_a_limited_connection_changes_no_column(
    con: icesql.Connection, catalog: dict[str, Any]
) -> None:
    con.execute("CREATE TABLE s.t (a INT)")
    with icesql.connect(**catalog, read_only=True) as other:
        for sql in ("ALTER TABLE s.t ADD COLUMN b INT", "DROP TABLE s.t PURGE"):
            with pytest.raises(errors.AccessDeniedError):
                other.execute(sql)
