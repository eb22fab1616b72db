"""IF [NOT] EXISTS in ALTER TABLE: nothing is done, and nothing committed, where nothing is to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql

# What is done to s.t (id INT, a INT, o STRUCT(x INT)) PARTITIONED BY (bucket(4, id)), and whether
# that changes it.
FORMS = [
    ("ADD COLUMN IF NOT EXISTS a BIGINT", False),
    ("ADD COLUMN IF NOT EXISTS A VARCHAR", False),
    ("ADD COLUMN IF NOT EXISTS z INT", True),
    ("ADD IF NOT EXISTS z INT", True),
    ("ADD COLUMNS IF NOT EXISTS (a INT, z INT)", True),
    ("ADD COLUMN IF NOT EXISTS a INT, IF NOT EXISTS id INT", False),
    ("ADD COLUMN IF NOT EXISTS o.x INT", False),
    ("ADD COLUMN IF NOT EXISTS o.y INT", True),
    ("DROP COLUMN IF EXISTS nope", False),
    ("DROP COLUMN IF EXISTS a", True),
    ("DROP COLUMNS IF EXISTS (nope, a)", True),
    ("RENAME COLUMN IF EXISTS nope TO b", False),
    ("RENAME COLUMN IF EXISTS a TO b", True),
    ("ALTER COLUMN IF EXISTS nope TYPE BIGINT", False),
    ("ALTER COLUMN IF EXISTS a TYPE BIGINT", True),
    ("ALTER COLUMN IF EXISTS nope SET DEFAULT 3", False),
    ("ADD PARTITION FIELD IF NOT EXISTS bucket(4, id)", False),
    ("ADD PARTITION FIELD IF NOT EXISTS a", True),
    ("ADD PARTITION FIELD IF NOT EXISTS truncate(3, a) AS id_bucket", False),
    ("DROP PARTITION FIELD IF EXISTS nope", False),
    ("DROP PARTITION FIELD IF EXISTS days(id)", False),
    ("DROP PARTITION FIELD IF EXISTS id_bucket", True),
    ("DROP PARTITION FIELD IF EXISTS bucket(4, id)", True),
]


@pytest.mark.parametrize("dialect", [None, "spark", "trino", "snowflake"])
def test_each_form_is_done_once_and_then_nothing(tmp_path: Path, dialect: str | None) -> None:
    wrong = []
    with icesql.connect(warehouse=tmp_path, dialect=dialect) as con:
        con.execute("CREATE SCHEMA s")
        for number, (form, changes) in enumerate(FORMS):
            table = f"s.t{number}"
            ddl = f"CREATE TABLE {table} (id INT, a INT, o STRUCT<x INT>)"
            con.execute(f"{ddl} PARTITIONED BY (bucket(4, id))")
            before = versions(tmp_path, number)
            con.execute(f"ALTER TABLE IF EXISTS {table} {form}")
            after = versions(tmp_path, number)
            con.execute(f"ALTER TABLE {table} {form}") if "RENAME" not in form else None
            twice = versions(tmp_path, number) != after
            if (after > before) != changes or twice:
                wrong.append((form, before, after, versions(tmp_path, number)))
            note = con.execute(f"ALTER TABLE IF EXISTS s.nope {form}").notes
            assert note == ["there is no s.nope; nothing was done"]
    assert wrong == []


def versions(warehouse: Path, number: int) -> int:
    return len(list((warehouse / f"s/t{number}/metadata").glob("v*.metadata.json")))


def test_what_is_not_about_columns(tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (a INT)")
        for form in (
            "RENAME TO s.u", "SET TBLPROPERTIES ('x' = 'y')", "UNSET TBLPROPERTIES ('x')",
            "SET PROPERTIES format_version = 3", "WRITE ORDERED BY a", "CREATE BRANCH b",
            "SET IDENTIFIER FIELDS a", "EXECUTE expire_snapshots",
        ):  # fmt: skip
            done = con.execute(f"ALTER TABLE IF EXISTS s.nope {form}")
            assert done.notes == ["there is no s.nope; nothing was done"], form
        con.execute("ALTER TABLE IF EXISTS s.t SET TBLPROPERTIES ('x' = 'y')")
        con.execute("BEGIN")
        con.execute("ALTER TABLE IF EXISTS s.nope ADD COLUMN b INT")
        con.execute("ALTER TABLE IF EXISTS s.t ADD COLUMN b INT")
        con.execute("COMMIT")
        assert con.execute("SHOW COLUMNS FROM s.t").fetchall()[1][0] == "b"


def test_who_only_reads_is_refused_first(tmp_path: Path) -> None:
    con = icesql.connect(warehouse=tmp_path, read_only=True)
    with pytest.raises(icesql.AccessDeniedError):
        con.execute("ALTER TABLE IF EXISTS s.nope ADD COLUMN b INT")
    con.close()
