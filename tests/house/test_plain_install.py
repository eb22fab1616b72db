"""The command of a plain ``pip install .`` runs a statement of each kind, and what it advises."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path

from tests.catalog.rest_server import Server

# One process: each statement in a fork that has imported nothing but the command's own start.
IN_FORKS = """\
import json, os, sys
from icesql.cli import main
from icesql.postponed import postpone_imports
postpone_imports()
for arguments in json.load(sys.stdin):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    print("exit", os.waitstatus_to_exitcode(status), "of", arguments[-1], flush=True)
"""

MADE = [
    "CREATE SCHEMA m",
    "CREATE TABLE m.t (a BIGINT, b VARCHAR, ts TIMESTAMP) PARTITIONED BY (b) "
    "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')",
    *(
        f"INSERT INTO m.t SELECT {n} * 10 + i, 'p' || (i % 3), TIMESTAMP '2026-01-01' "
        "FROM range(9) r(i)"
        for n in range(6)
    ),
    "DELETE FROM m.t WHERE a % 10 = 1",
]
KINDS = [
    "SELECT b, count(*), max(ts) FROM m.t GROUP BY b ORDER BY b",
    "SELECT * FROM m.t VERSION AS OF -1 WHERE a < 5",
    "SELECT * FROM m.t CHANGES FROM VERSION -1 TO VERSION 'main'",
    "SELECT * FROM m.t.files",
    "SELECT t.a FROM m.t t JOIN m.t o ON t.a = o.a WHERE o.b = 'p1'",
    "SELECT * FROM read_csv('rows.csv')",
    "EXPLAIN SELECT * FROM m.t WHERE a = 3",
    "EXPLAIN ANALYZE SELECT * FROM m.t WHERE a = 3",
    "EXPLAIN (ENGINE) SELECT * FROM m.t",
    "EXPLAIN (FORMAT html) SELECT * FROM m.t",
    "SUMMARIZE m.t",
    "DESCRIBE m.t",
    "DIFF m.t BETWEEN -1 AND 'main'",
    "SHOW TABLES; SHOW SNAPSHOTS FROM m.t; SHOW CREATE TABLE m.t; SHOW PARTITIONS m.t",
    "SHOW FUNCTIONS LIKE 'date%'",
    "COPY (SELECT * FROM m.t) TO 'out.parquet'",
    "COPY (SELECT a, b FROM m.t) TO 'out.csv'; COPY (SELECT a FROM m.t) TO 'out.json'",
    "CREATE TEMP TABLE k AS SELECT * FROM m.t; SELECT count(*) FROM k",
    "CREATE TEMP VIEW k AS SELECT * FROM m.t; SELECT count(*) FROM k",
    "PREPARE p AS SELECT * FROM m.t WHERE a = ?; EXECUTE p(3)",
    "SET local_reader = 'arrow'; SELECT * FROM m.t WHERE a > 3 ORDER BY a",
    "INSERT INTO m.t VALUES (100, 'p0', NULL)",
    "COPY m.t FROM 'rows.csv'",
    "INSERT OVERWRITE m.t SELECT * FROM m.t",
    "UPDATE m.t SET a = a + 1000 WHERE b = 'p2'",
    "DELETE FROM m.t WHERE a = 1002",
    "DELETE FROM m.t WHERE a IN (SELECT a FROM m.t WHERE a > 1050)",
    "MERGE INTO m.t USING (SELECT 3 AS n) o ON t.a = o.n WHEN MATCHED THEN UPDATE SET a = 4 "
    "WHEN NOT MATCHED THEN INSERT (a, b) VALUES (n, 'p0')",
    "BEGIN; DELETE FROM m.t WHERE a = 5; INSERT INTO m.t VALUES (5, 'p0', NULL); COMMIT",
    "CREATE TABLE m.u AS SELECT * FROM m.t",
    "CREATE OR REPLACE TABLE m.u (a BIGINT)",
    "ALTER TABLE m.u ADD COLUMN c VARCHAR; ALTER TABLE m.t WRITE ORDERED BY a",
    "ALTER TABLE m.t CREATE BRANCH side",
    "INSERT INTO m.t.branch_side VALUES (7, 'p0', NULL)",
    "TRUNCATE TABLE m.u",
    "DROP TABLE m.u PURGE",
    "EXPLAIN CALL system.rewrite_data_files('m.t', options => map('rewrite-all', 'true'))",
    "CALL system.rewrite_position_delete_files('m.t', options => map('rewrite-all', 'true'))",
    "CALL system.rewrite_data_files('m.t', options => map('rewrite-all', 'true'))",
    "CALL system.rewrite_data_files('m.t', strategy => 'sort', sort_order => 'zorder(a, ts)', "
    "options => map('rewrite-all', 'true'))",
    "CALL system.rewrite_manifests('m.t')",
    "CALL system.compute_table_stats('m.t')",
    "CALL system.compute_partition_stats('m.t')",
    "CALL system.expire_snapshots(table => 'm.t', older_than => now())",
    "CALL system.remove_orphan_files(table => 'm.t', dry_run => true)",
]


def run(plain: Path, place: Path, statements: list[list[str]]) -> str:
    done = subprocess.run(
        [str(plain), "-c", IN_FORKS],
        input=json.dumps(statements),
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def warehouse(plain: Path, folder: Path) -> list[str]:
    (folder / "wh").mkdir()
    (folder / "rows.csv").write_text("a,b,ts\n900,p1,2026-01-02 03:04:05\n")
    options = ["--warehouse", "wh", "--files", ".", "--format", "csv"]
    told = run(plain, folder, [[*options, "-c", "; ".join(MADE)]])
    assert "exit 0 of" in told, told
    return options


def failures(told: str) -> list[str]:
    lines = told.splitlines()
    return [
        "\n".join(lines[max(number - 3, 0) : number + 1])
        for number, line in enumerate(lines)
        if line.startswith("exit ") and not line.startswith("exit 0 ")
    ]


def test_nothing_but_what_the_project_asks_for_is_there(plain: Path, tmp_path: Path) -> None:
    program = (
        "import importlib.util as u, icesql, duckdb, pyarrow\n"
        "names = ('pandas', 'polars', 'pyiceberg', 'pytest', 'sqlalchemy', 'pyspark', 'mcp', 'boto3')\n"
        "print([each for each in names if u.find_spec(each)], icesql.__file__)"
    )
    done = subprocess.run(
        [str(plain), "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("[] "), done.stdout + done.stderr
    assert str(plain.parents[1]) in done.stdout


def test_a_statement_of_each_kind_runs(plain: Path, tmp_path: Path) -> None:
    options = warehouse(plain, tmp_path)
    copying = ["--copy-to", "."]
    told = run(plain, tmp_path, [[*options, *copying, "-c", each] for each in KINDS])
    assert failures(told) == []
    assert told.count("exit 0 of") == len(KINDS)


def test_what_the_doctor_advises_runs(plain: Path, tmp_path: Path) -> None:
    options = warehouse(plain, tmp_path)
    count = "SELECT count(*) FROM m.t"
    asked = [*options[:-1], "json", "doctor", "m.t"]
    told = run(plain, tmp_path, [asked, [*options, "-c", count]])
    findings = json.loads(told[told.index("{") : told.rindex("}") + 1])["findings"]
    advised = [each["statement"] for each in findings if each["statement"]]
    assert any("rewrite_data_files" in each for each in advised)
    told += run(plain, tmp_path, [[*options, "-c", each] for each in [*advised, count]])
    assert failures(told) == []
    assert told.split("count_star()\n")[1].split()[0] == told.split("count_star()\n")[2].split()[0]


CONFIGURED = """\
catalog:
  lite:
    type: sql
    uri: sqlite:///{place}/new.db
    warehouse: {place}/files
  server:
    type: rest
    uri: {uri}
  proven:
    type: rest
    uri: {uri}
    auth: {{type: custom, impl: some.Manager}}
  lake:
    type: glue
  meta:
    type: hive
    uri: thrift://localhost:9083
  memory:
    type: in-memory
"""


def test_pyiceberg_comes_with_the_kinds_that_need_it(plain: Path, tmp_path: Path) -> None:
    with closing(Server()) as server:
        see_which_catalogs_open(plain, tmp_path, server.uri)


def see_which_catalogs_open(plain: Path, tmp_path: Path, uri: str) -> None:
    text = CONFIGURED.format(place=tmp_path, uri=uri)
    (tmp_path / ".pyiceberg.yaml").write_text(text)
    made = "CREATE SCHEMA m; CREATE TABLE m.t AS SELECT 7 AS a; SELECT a FROM m.t"
    works = [
        ["--uri", f"sqlite:///{tmp_path}/new.db", "--warehouse", "files", "-c", made],
        ["--catalog", "lite", "-c", "SELECT a FROM m.t"],
        ["--catalog", "server", "-c", "SHOW SCHEMAS"],
        ["demo"],
    ]
    told = run(plain, tmp_path, works)
    assert failures(told) == []
    missing = {"lake": "glue", "meta": "hive", "memory": "pyiceberg", "proven": "pyiceberg"}
    for catalog, extra in missing.items():
        told = run(plain, tmp_path, [["--catalog", catalog, "-c", "SHOW SCHEMAS"]])
        assert "exit 1 of" in told, told
        assert f"pip install '.[{extra}]'" in told, told
