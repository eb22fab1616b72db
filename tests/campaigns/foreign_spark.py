"""Run Spark's own SQL tests in Spark's dialect over Iceberg copies of their tables.

    python tests/campaigns foreign_spark CHECKOUT [--engines local spark] [--statements N]

CHECKOUT holds ``sql-tests/results`` somewhere below it, as Spark's repository does. PySpark runs the
statements that make tables; before each query the tables that it names are copied to Iceberg, and
PySpark and icesql answer it. ``--statements N`` draws N queries of all files. Statements that only say
something under a setting that is not Spark's default are left out. The other options are those of
``foreign_duckdb.py``, and so is what is counted.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import icesql
from tests.campaigns.foreign.answers import Answer, Failure, Verdict, answer_of, ask_icesql, judge
from tests.campaigns.foreign.copies import MOST_ROWS, Copies, Name
from tests.campaigns.foreign.findings import OUT, Finding, done, drawn, keep, report

SECONDS, ZONE, NAMESPACE = 30, "America/Los_Angeles", "default"
_QUERY = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*\(*\s*(select|with|from|values|table)\b",
    re.IGNORECASE | re.DOTALL,
)
_SETTING = re.compile(r"\s*set\s+(spark\.sql\.[\w.]+)\s*=\s*([^;]+)", re.IGNORECASE)
_ORDERED = re.compile(r"\border\s+by\b|\bsort\s+by\b", re.IGNORECASE)
_CHANGES = re.compile(r"\binsert\s+(into|overwrite)\b", re.IGNORECASE)
# These folders and files test another language, Java classes, or another setting.
_LEFT_OUT = re.compile(
    r"nonansi|/udf|/udaf|/udtf|scripting|legacy|collation|variant|describe|explain|show[-_]|view-"
    r"|avro|protobuf|/st-func|keywords|identifier-clause|execute-immediate|session-variable"
    r"|binary_|sketch|hll|xml|transform\.sql|change-column|tblproperties|parse-query"
)


class SparkCopies(Copies):
    """Copies of the tables and temporary views of a Spark session."""

    def __init__(self, folder: Path, spark: Any) -> None:
        super().__init__(folder, "spark_catalog", NAMESPACE)
        self._spark = spark

    def names(self) -> list[Name]:
        return [(NAMESPACE, table.name) for table in self._spark.catalog.listTables()]

    def columns(self, key: Name) -> dict[str, str]:
        return dict.fromkeys(self._spark.table(key[1]).columns, "")

    def rows(self, key: Name, columns: list[str]) -> pa.Table:
        frame = self._spark.table(key[1])
        return (
            frame.select(*(frame[f"`{each}`"] for each in columns)).limit(MOST_ROWS + 1).toArrow()
        )


class SparkCourt:
    """One Spark session, the copies of its tables, and icesql on each engine."""

    def __init__(self, spark: Any, folder: Path, engines: tuple[str, ...]) -> None:
        self.spark = spark.newSession()
        self.copies = SparkCopies(folder, self.spark)
        self._settings: dict[str, str] = {}
        more = {"settings": {"query_timeout": SECONDS}, "dialect": "spark", "timezone": ZONE}
        self.icesql = {
            engine: icesql.connect(
                **self.copies.arguments, **more, engine=engine,
                **({"spark": spark} if engine == "spark" else {}),
            )
            for engine in engines
        }  # fmt: skip
        for each in self.icesql.values():
            each.execute(f"USE {NAMESPACE}")

    def prepare(self, sql: str) -> None:
        """Run a statement that creates or changes tables; errors are expected here, too."""
        if found := _SETTING.match(sql):
            self._settings[found[1].lower()] = found[2].strip().lower()
        with suppress(Exception):
            self.spark.sql(sql).collect()
        self.copies.changed()

    @property
    def has_defaults(self) -> bool:
        """True if every setting that changes answers has Spark's default value."""
        return all(
            value == ("false" if "legacy" in name else "true")
            for name, value in self._settings.items()
            if "optimizer" not in name and "codegen" not in name
        )

    def _ask_spark(self, sql: str) -> Answer | Failure:
        try:
            return answer_of(self.copies.mirror, self.spark.sql(sql).toArrow())
        except Exception as error:
            return Failure(error)

    def findings(self, place: str, sql: str) -> Iterator[Finding]:
        """Each engine's verdict on a query."""
        try:
            self.copies.bring(sql)
        except Exception as error:
            yield Finding(place, "uncopied", sql, f"{error}"[:200])
            return
        for engine, connection in self.icesql.items():
            asked = partial(ask_icesql, self.copies.mirror, connection, sql)
            found = judge(partial(self._ask_spark, sql), asked)
            if found.word == "ties" and not _ORDERED.search(sql):
                found = Verdict("same")
            text = sql * (found.word != "same")
            yield Finding(f"{engine} {place}", found.word, text, found.note)

    def close(self) -> None:
        """Close icesql's connections and forget the session's tables."""
        for each in (*self.icesql.values(), self.copies):
            each.close()
        with suppress(Exception):
            self.spark.catalog.setCurrentDatabase("default")
        for table in self.spark.catalog.listTables():
            with suppress(Exception):
                kind = "VIEW" if table.tableType in ("VIEW", "TEMPORARY") else "TABLE"
                self.spark.sql(f"DROP {kind} IF EXISTS `{table.name}`")


def read_statements(path: Path) -> list[tuple[int, str]]:
    """The statements of one ``.sql.out`` file, each after its line."""
    found, line = [], 1
    for block in path.read_text(encoding="utf-8", errors="replace").split("-- !query\n"):
        sql, mark, _ = block.partition("\n-- !query schema\n")
        found += [(line, sql)] * bool(mark)
        line += block.count("\n") + 1
    return found


def is_query(sql: str) -> bool:
    """True if a statement is one to judge."""
    return bool(_QUERY.match(sql)) and not _CHANGES.search(sql)


def start_spark(folder: Path) -> Any:
    """A Spark of two cores without log output, with its tables in ``folder``."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false", "spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": ZONE, "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }  # fmt: skip
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def main(
    checkout: Path, files: str = "**/sql-tests/results/**/*.sql.out", *,
    engines: tuple[str, ...] = ("local",), statements: int = 0, limit: int = 0, seed: int = 1,
    out: Path = OUT,
) -> int:  # fmt: skip
    """Judge the files of a glob, with one Spark for all, and print the outcome."""
    root = checkout.resolve()
    found = drawn((f for f in root.glob(files) if not _LEFT_OUT.search(str(f))), limit, seed)
    texts = {file: read_statements(file) for file in found if str(file) not in done(out)}
    places = [(file, line) for file in texts for line, sql in texts[file] if is_query(sql)]
    if 0 < statements < len(places):
        places = random.Random(seed).sample(places, statements)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        spark = start_spark(Path(folder))
        stack.callback(spark.stop)
        for file in dict.fromkeys(file for file, _ in sorted(places)):
            place, lines = Path(tempfile.mkdtemp(dir=folder)), list[Finding]()
            try:
                with closing(SparkCourt(spark, place, engines)) as court:
                    for line, sql in texts[file]:
                        if not is_query(sql):
                            court.prepare(sql)
                        elif (file, line) in places and court.has_defaults:
                            lines += court.findings(f"{file.relative_to(root)}:{line}", sql)
            except Exception as error:
                lines.append(Finding(str(file), "died", note=f"{type(error).__name__}: {error}"))
            keep(out, file, map(json.dumps, lines))
    return report(out)
