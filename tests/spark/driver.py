"""A program that uses Spark as a user would, for the tests of clusters and of Spark Connect.

    python -m tests.spark.driver master|remote <address>

Each line of standard input is a command, ``[name, arguments]`` in JSON: a method of ``Program``.
Each gets a line of standard output: ``{"value": …}``, or ``{"error": traceback}``.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import icesql
from icesql.engine.spark.scans import FRAGMENTS, Scans
from tests.slt.runner import read_script, run_record
from tests.spark.conftest import has_release, is_of_newer_release
from tests.spark.statements import QUERIES
from tests.spark.test_differences import same

SLT = sorted((Path(__file__).parents[1] / "slt").glob("*.slt"))
# Tasks have a few files each, so that a task returns several batches.
SPLIT_SIZE = 12 << 20
# Over the tables of ``conftest.cluster_tables``: each way to read and each exchange at least once.
CORE = """
SELECT * FROM t ORDER BY id
SELECT k, count(*), sum(x), min(x), avg(x), count(DISTINCT x) FROM numbers GROUP BY k ORDER BY k
SELECT DISTINCT k, x % 3 AS r FROM numbers ORDER BY k, r
SELECT a.k, count(*), sum(b.x) FROM numbers a JOIN numbers b ON a.x = b.x + 1 GROUP BY a.k ORDER BY 1
SELECT x, sum(x) OVER (PARTITION BY k ORDER BY x) AS s FROM numbers QUALIFY s < 1000 ORDER BY x
SELECT x, k FROM numbers ORDER BY x DESC LIMIT 7 OFFSET 3
SELECT count(*) FROM numbers WHERE k IN (SELECT k FROM numbers WHERE x < 2)
SELECT count(*), sum(x), count(k) FROM numbers FOR VERSION AS OF 'half'
SELECT now.k, count(*) - count(past.x) FROM numbers now LEFT JOIN numbers VERSION AS OF 'half' past ON now.x = past.x GROUP BY now.k ORDER BY 1
SELECT x, k FROM deleted ORDER BY x
SELECT k, count(*), sum(x) FROM deleted GROUP BY k ORDER BY k
SELECT x, k FROM deleted VERSION AS OF 1000 WHERE x < 30 ORDER BY x
SELECT * FROM evolved ORDER BY x
SELECT added, count(*), sum(x) FROM evolved GROUP BY added ORDER BY added NULLS FIRST
SELECT * FROM evolved VERSION AS OF 1000 ORDER BY 1
""".strip().splitlines()


class Program:
    """The commands. The tables are registered by ``tables`` under their names, on both engines."""

    def __init__(self, kind: str, address: str) -> None:
        self._kind, self._address = kind, address
        self.spark = icesql.connect(engine="spark", **{kind: address})
        self.local = icesql.connect()
        self._paths: dict[str, str] = {}
        self._outcome: dict[str, Any] = {}
        self._thread: threading.Thread | None = None
        self._cursor: Any = None
        self._raw: Any = None

    def session(self) -> Any:
        """A PySpark user's own session, in which icesql's data source is registered."""
        from pyspark.sql import SparkSession

        if self._raw is None:
            builder = SparkSession.builder
            if self._kind == "remote":
                self._raw = builder.remote(self._address).create()
            else:
                self.spark.execute("SELECT 1").fetchall()
                self._raw = builder.getOrCreate()
            if has_release(4, 0):
                icesql.register_spark(self._raw)
        return self._raw

    # ------------------------------------------------------------------ commands

    def tables(self, **paths: str) -> None:
        self._paths |= paths
        for name, path in paths.items():
            for each in (self.spark, self.local):
                each.register_table(name, path)
        self.spark.execute(f"SET split_target_size = {SPLIT_SIZE}")

    def executors(self) -> int:
        """The number of executors."""
        self.session()
        return int(self._context().getExecutorMemoryStatus().size()) - 1

    def running_tasks(self) -> int:
        """The number of running tasks, as reported by Spark."""
        return sum(each.numRunningTasks() for each in self._context().statusTracker()
                   .getExecutorInfos())  # fmt: skip

    def _context(self) -> Any:
        return self._raw.sparkContext._jsc.sc()

    def core(self, *, types: bool) -> list[str]:
        """The differences between the engines; with ``types`` also for statements on all types."""
        wrong = []
        for sql in [*CORE, *(QUERIES if types else ())]:
            try:
                found, expected = self.spark.execute(sql), self.local.execute(sql)
                rows = found.fetchall(), expected.fetchall()
                if not same(*rows) or found.description != expected.description:
                    wrong.append(f"{sql}: {str(rows)[:500]}")
            except icesql.Error as error:
                if not is_of_newer_release(error):
                    wrong.append(f"{sql}: {error!r}"[:500])
        return wrong

    def scripts(self, warehouse: str) -> list[str]:
        """The results that differ from the .slt files."""
        wrong = []
        options: Any = {self._kind: self._address}
        for path in SLT:
            script = read_script(path)
            if script.needs_corpus:
                continue
            with icesql.connect(warehouse=warehouse, engine="spark", **options) as connection:
                for record in script.records:
                    try:
                        run_record(connection, record, None)
                    except (AssertionError, icesql.Error) as error:
                        if not isinstance(error, icesql.UnsupportedSqlError):
                            wrong.append(f"{path.name}:{record.line} {str(error)[:500]}")
        return wrong

    def rows(self, way: str, sql: str) -> dict[str, Any]:
        """The rows of a statement read one way, compared with the local engine's."""
        if way == "format":
            for name, path in self._paths.items():
                reader = self.session().read.format("icesql").option("split-size", str(SPLIT_SIZE))
                reader.load(path).createOrReplaceTempView(name)
            rows = [tuple(row) for row in self.session().sql(sql).collect()]
        elif way == "write":
            rows = self._written(sql)
        else:
            Scans.ways = frozenset({FRAGMENTS} if way == "partial" else ())
            self._cursor = self.spark.execute(sql)
            groups = set(self._cursor._result.groups)
            assert (groups == {FRAGMENTS}) == (way == "partial"), groups
            rows = self._cursor.fetchall()
        expected = self.local.execute(sql).fetchall()
        return {"count": len(rows), "expected": len(expected), "distinct": len(set(rows)),
                "same": same(sorted(rows), sorted(expected))}  # fmt: skip

    def _written(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a table written by Spark's tasks; checks that its snapshot has all files."""
        Scans.ways = frozenset()
        with self._writing() as connection:
            self._cursor = connection.execute(f"CREATE TABLE w.copy AS {sql}")
            connection.execute("SET engine = 'local'")
            named = connection.execute("SELECT file_path FROM w.copy.files").fetchall()
            attempts = {Path(path).name.split("-")[1] for (path,) in named}
            assert len(attempts) == len(named), "one file for each task, and only of one try"
            return connection.execute("SELECT * FROM w.copy").fetchall()

    @contextmanager
    def _writing(self) -> Iterator[icesql.Connection]:
        """A connection to a warehouse with a schema ``w``, with the tables registered."""
        options: Any = {self._kind: self._address}
        with (
            tempfile.TemporaryDirectory() as folder,
            icesql.connect(warehouse=folder, engine="spark", **options) as connection,
        ):
            for name, path in self._paths.items():
                connection.register_table(name, path)
            connection.execute(f"SET split_target_size = {SPLIT_SIZE}")
            connection.execute("CREATE SCHEMA w")
            yield connection

    def compacted(self, sql: str, key: str) -> list[Any]:
        """Files before and after a compaction of a bucketed table, and whether rows were lost."""
        with self._writing() as connection:
            connection.execute(f"CREATE TABLE w.t PARTITIONED BY (bucket(3, {key})) AS {sql}")
            connection.execute(f"INSERT INTO w.t {sql}")
            told = connection.execute(
                "CALL system.rewrite_data_files('w.t', options => map('min-input-files', '2'))"
            ).fetchone()
            connection.execute("SET engine = 'local'")
            rows = connection.execute("SELECT * FROM w.t").fetchall()
        expected = self.local.execute(sql).fetchall() * 2
        return [told[0], told[1], same(sorted(rows), sorted(expected))]

    def changed(self, statements: list[str], mode: str) -> list[Any]:
        """The count and the resulting rows of each statement on a table ``w.t`` of eight files, on
        Spark and on this machine."""
        told: list[Any] = []
        for engine in ("spark", "local"):
            own: list[Any] = []
            with self._writing() as connection:
                connection.execute("SET engine = 'local'")
                modes = ", ".join(
                    f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge")
                )
                connection.execute(
                    "CREATE TABLE w.t (x BIGINT, k VARCHAR) PARTITIONED BY (bucket(4, x)) "
                    f"TBLPROPERTIES ('format-version' = '2', {modes})"
                )
                for low in (0, 5000):
                    connection.execute(
                        f"INSERT INTO w.t SELECT x, k FROM numbers WHERE x >= {low} AND x < {low + 5000}"
                    )
                connection.execute(
                    "CREATE TABLE w.source AS SELECT x + 4000 AS x, upper(k) AS k FROM numbers "
                    "WHERE x >= 4000 AND x < 8000"
                )
                for each in statements:
                    connection.execute(f"SET engine = '{engine}'")
                    own.append(connection.execute(each).rowcount)
                    connection.execute("SET engine = 'local'")
                    own += connection.execute(
                        "SELECT count(*), sum(x)::BIGINT, count(DISTINCT k), sum(hash(x, k) % 1000)::BIGINT FROM w.t"
                    ).fetchall()
            told.append([[*each] if isinstance(each, tuple) else each for each in own])
        return told

    def start(self, way: str, sql: str) -> None:
        """Call ``rows`` in a thread; ``finish`` returns its outcome."""

        def run() -> None:
            try:
                self._outcome = self.rows(way, sql)
            except BaseException as error:
                self._outcome = {"error": type(error).__name__, "text": str(error)}

        self._outcome = {}
        self._thread = threading.Thread(target=run)
        self._thread.start()

    def outcome(self) -> dict[str, Any]:
        """The outcome of ``start``; empty while it runs."""
        return self._outcome

    def finish(self) -> dict[str, Any]:
        assert self._thread is not None
        self._thread.join(600)
        assert not self._thread.is_alive()
        return self._outcome

    def cancel(self) -> dict[str, Any]:
        """Cancel the query of ``start``: its outcome, and the seconds that this took."""
        begin = time.monotonic()
        self._cursor.cancel()
        return self.finish() | {"seconds": time.monotonic() - begin}

    def error(self, sql: str) -> list[str]:
        """Class and text of a statement's error."""
        try:
            self.spark.execute(sql).fetchall()
        except icesql.Error as error:
            return [type(error).__name__, str(error)]
        return ["", ""]

    def progress(self, sql: str) -> list[Any]:
        """Done, total and bytes of each progress report."""
        seen: list[Any] = []
        cursor = self.spark.cursor()
        cursor.progress = seen.append
        cursor.execute(sql).fetchall()
        return [[each.done, each.total, each.bytes_done] for each in seen if each.stage == "spark"]

    def load(self, path: str, **options: str) -> list[Any]:
        """Columns and rows of ``format("icesql")``."""
        frame = self.session().read.format("icesql").options(**options).load(path)
        return [frame.columns, sorted(([*row] for row in frame.collect()), key=repr)]

    def stream(self, path: str, **options: str) -> int:
        """The number of rows of a stream with all available data."""
        reader = self.session().readStream.format("icesql").options(**options)
        writer = reader.load(path).writeStream.format("memory").queryName("streamed")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(100)
        return int(self.session().table("streamed").count())

    def framed(self, path: str) -> list[int]:
        """The views left in icesql's session: with two DataFrames alive, and without."""

        def views() -> int:
            names = [each.name for each in kept.sparkSession.catalog.listTables()]
            return sum(name.startswith("__scan_") for name in names)

        def asked() -> Any:
            return icesql.sql(
                self.session(), "SELECT x, k FROM iceberg_scan($1) WHERE x < 7", [path],
                warehouse=str(Path(path).parent), tables_by_path=True,
            )  # fmt: skip

        kept = asked()
        rest = asked().limit(3)
        for _ in range(4):
            assert asked().count() == 7
        gc.collect()
        assert len(asked().collect()) == 7
        assert (kept.count(), rest.count()) == (7, 3)
        before = views()
        del rest
        gc.collect()
        assert len(asked().collect()) == 7
        gc.collect()
        assert asked().columns == ["x", "k"]
        return [before, views()]

    def has_context(self) -> bool:
        """True if this process has started a Spark of its own."""
        from pyspark import SparkContext

        return SparkContext._active_spark_context is not None or SparkContext._gateway is not None

    def close(self) -> None:
        self.spark.close()
        self.local.close()


def main() -> None:
    # Any printed text goes to standard error; answers go to the original standard output.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    program = Program(sys.argv[1], sys.argv[2])
    for line in sys.stdin:
        name, arguments = json.loads(line)
        named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        try:
            answer = {"value": getattr(program, name)(*arguments, **named)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
