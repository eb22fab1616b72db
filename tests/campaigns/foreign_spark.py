"""Spark's own SQL tests in Spark's dialect, over Iceberg copies of the tables that they make.

    python tests/campaigns foreign_spark CHECKOUT [--judge-by golden|spark] [--engines local spark]

CHECKOUT holds ``sql-tests/results`` somewhere below it, as Spark's repository does. PySpark runs the
statements that make tables; before each query the tables that it names are copied to Iceberg. With
``--judge-by golden`` the expected rows are those of the ``.out`` files, with ``--judge-by spark`` PySpark
answers itself. ``--statements N`` draws N queries of all files. Statements that only say
something under a setting that is not Spark's default are left out. The other options are those of
``foreign_duckdb.py``, and so is what is counted.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Literal

import icesql
from tests.campaigns.foreign.answers import Answer, answer_of
from tests.campaigns.foreign.command import OUT, drawn, finish
from tests.campaigns.foreign.findings import Finding, done, keep_in
from tests.campaigns.foreign.spark_copies import SparkCopies
from tests.campaigns.foreign.spark_golden import Golden, as_spark_prints, read_golden
from tests.campaigns.foreign.verdicts import Failure, Verdict, judge

SECONDS = 30
ZONE = "America/Los_Angeles"
_QUERY = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*\(*\s*(select|with|from|values|table)\b",
    re.IGNORECASE | re.DOTALL,
)
_SETTING = re.compile(r"\s*set\s+(spark\.sql\.[\w.]+)\s*=\s*([^;]+)", re.IGNORECASE)
_ORDERED = re.compile(r"\border\s+by\b|\bsort\s+by\b", re.IGNORECASE)
_CHANGES = re.compile(r"\binsert\s+(into|overwrite)\b", re.IGNORECASE)
# What these folders and files ask is another language, Java classes, or another setting.
_LEFT_OUT = re.compile(
    r"nonansi|/udf|/udaf|/udtf|scripting|legacy|collation|variant|describe|explain|show[-_]|view-"
    r"|avro|protobuf|/st-func|keywords|identifier-clause|execute-immediate|session-variable"
    r"|binary_|sketch|hll|xml|transform\.sql|change-column|tblproperties|parse-query"
)


class SparkCourt:
    """One Spark session, the copies of its tables, and icesql on each engine."""

    def __init__(self, spark: Any, folder: Path, engines: tuple[str, ...]) -> None:
        self.spark = spark.newSession()
        self.copies = SparkCopies(folder, self.spark)
        self.settings: dict[str, str] = {}
        self.icesql = {
            engine: icesql.connect(
                uri=self.copies.iceberg.uri,
                dialect="spark",
                engine=engine,
                timezone=ZONE,
                settings={"query_timeout": SECONDS},
                **({"spark": spark} if engine == "spark" else {}),
            )
            for engine in engines
        }
        for each in self.icesql.values():
            each.execute("USE default")

    def prepare(self, sql: str) -> None:
        """Run what makes or changes tables; what fails, fails there too."""
        if found := _SETTING.match(sql):
            self.settings[found[1].lower()] = found[2].strip().lower()
        with suppress(Exception):
            self.spark.sql(sql).collect()
        self.copies.changed()

    @property
    def has_defaults(self) -> bool:
        """Whether every setting that changes answers has the value that Spark gives it."""
        return all(
            value == ("false" if "legacy" in name else "true")
            for name, value in self.settings.items()
            if "optimizer" not in name and "codegen" not in name
        )

    def ask_spark(self, sql: str) -> Answer | Failure:
        """PySpark's own answer."""
        try:
            return answer_of(self.spark.sql(sql).toArrow())
        except Exception as error:
            return Failure(error)

    def ask_icesql(self, engine: str, sql: str) -> Answer | Failure:
        """The answer of icesql on an engine."""
        try:
            cursor = self.icesql[engine].execute(sql)
            if cursor.description is None:
                return Answer((), ())
            return answer_of(cursor.arrow())
        except Exception as error:
            return Failure(error)

    def verdicts(self, golden: Golden, by: str) -> Iterator[tuple[str, Verdict]]:
        """Each engine's verdict on a query."""
        sql = golden.sql
        try:
            self.copies.bring(sql)
        except Exception as error:
            yield "", Verdict("uncopied", f"{error}"[:200])
            return
        if by == "spark":
            expected = self.ask_spark(sql)
            again: Callable[[], Answer | Failure] = lambda: self.ask_spark(sql)  # noqa: E731
        else:
            expected = golden.answer()
            again = golden.answer
        for engine in self.icesql:
            found = self.ask_icesql(engine, sql)
            if by == "golden" and isinstance(found, Answer) and isinstance(expected, Answer):
                found = as_spark_prints(found, golden.kinds)
                if not golden.output and found.rows == (("",),):
                    expected = found  # printed as no row is
            found_here = judge(again_first(expected, again), lambda f=found: f)
            if found_here.word == "ties" and not _ORDERED.search(sql):
                found_here = Verdict("same")
            yield engine, found_here

    def close(self) -> None:
        """Close icesql's connections and forget the session's tables."""
        for each in self.icesql.values():
            each.close()
        with suppress(Exception):
            self.spark.catalog.setCurrentDatabase("default")
        for table in self.spark.catalog.listTables():
            with suppress(Exception):
                kind = "VIEW" if table.tableType in ("VIEW", "TEMPORARY") else "TABLE"
                self.spark.sql(f"DROP {kind} IF EXISTS `{table.name}`")
        self.copies.iceberg.remove()


def again_first(
    first: Answer | Failure, again: Callable[[], Answer | Failure]
) -> Callable[[], Answer | Failure]:
    """A reference whose first answer is known already."""
    waiting = [first]
    return lambda: waiting.pop() if waiting else again()


def start_spark(folder: Path) -> Any:
    """A quiet Spark of two cores whose tables lie in ``folder``."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", ZONE)
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def main(
    checkout: Path, files: str = "**/sql-tests/results/**/*.sql.out", *,
    judge_by: Literal["golden", "spark"] = "golden", engines: tuple[str, ...] = ("local",),
    statements: int = 0, limit: int = 0, seed: int = 1, out: Path = OUT,
) -> int:  # fmt: skip
    """Judge the files of a glob, one Spark for all, and print what came out."""
    root = checkout.resolve()
    found = [each for each in root.glob(files) if not _LEFT_OUT.search(str(each))]
    files_drawn = drawn(found, limit, seed)
    places = sorted(
        (f, each.line) for f in files_drawn for each in read_golden(f) if _is_query(each)
    )
    if 0 < statements < len(places):
        places = random.Random(seed).sample(places, statements)
    finished, wanted = done(out), set(places)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        spark = start_spark(Path(folder))
        stack.callback(spark.stop)
        for number, file in enumerate(files_drawn):
            if str(file) in finished or not any(place[0] == file for place in wanted):
                continue
            place = Path(folder) / str(number)
            place.mkdir()
            with (
                keep_in(out, file) as keep,
                closing(SparkCourt(spark, place, engines)) as court,
            ):
                for golden in read_golden(file):
                    where = f"{file.relative_to(root)}:{golden.line}"
                    if not _is_query(golden):
                        court.prepare(golden.sql)
                    elif (file, golden.line) in wanted and court.has_defaults:
                        for engine, verdict in court.verdicts(golden, judge_by):
                            said = f"{engine} {where}"
                            if verdict.word == "same":
                                keep(Finding(said, "same"))
                            else:
                                keep(Finding(said, verdict.word, golden.sql, verdict.note))
    return finish(out)


def _is_query(golden: Golden) -> bool:
    return bool(_QUERY.match(golden.sql)) and not _CHANGES.search(golden.sql)
