"""Spark's own SQL tests in Spark's dialect, over Iceberg copies of the tables that they make.

    python tests/campaigns/foreign_spark.py CHECKOUT [--judge golden|spark] [--engines local,spark]

CHECKOUT holds ``sql-tests/results`` somewhere below it, as Spark's repository does. PySpark runs the
statements that make tables; before each query the tables that it names are copied to Iceberg. With
``--judge golden`` the expected rows are those of the ``.out`` files, with ``--judge spark`` PySpark
answers itself. ``--statements N`` draws N queries of all files. Statements that only say
something under a setting that is not Spark's default are left out. The other options are those of
``foreign_duckdb.py``, and so is what is counted.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import icesql
from tests.campaigns.foreign.answers import Answer, answer_of
from tests.campaigns.foreign.command import add_options, finish
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

    def __init__(self, spark: Any, folder: Path, engines: list[str]) -> None:
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


def main(arguments: list[str] | None = None) -> int:
    """Judge the files that are asked for and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--files", default="**/sql-tests/results/**/*.sql.out")
    parser.add_argument("--judge", choices=("golden", "spark"), default="golden")
    parser.add_argument("--engines", default="local", help="local, spark or both with a comma")
    parser.add_argument("--statements", type=int, help="draw so many queries of all files")
    add_options(parser)
    chosen = parser.parse_args(arguments)
    root = chosen.checkout.resolve()
    files = [each for each in sorted(root.glob(chosen.files)) if not _LEFT_OUT.search(str(each))]
    if chosen.limit is not None:
        files = sorted(random.Random(chosen.seed).sample(files, min(chosen.limit, len(files))))
    if not chosen.report:
        judge_all(chosen, root, files)
    return finish(chosen)


def judge_all(chosen: argparse.Namespace, root: Path, files: list[Path]) -> None:
    """Judge the files, one Spark for all."""
    wanted = {file: [g for g in read_golden(file) if _is_query(g)] for file in files}
    drawn = {(file, golden.line) for file in files for golden in wanted[file]}
    if chosen.statements is not None:
        most = min(chosen.statements, len(drawn))
        drawn = set(random.Random(chosen.seed).sample(sorted(drawn), most))
    finished = done(chosen.out)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        spark = start_spark(Path(folder))
        stack.callback(spark.stop)
        for number, file in enumerate(files):
            if str(file) in finished or not any(place[0] == file for place in drawn):
                continue
            place = Path(folder) / str(number)
            place.mkdir()
            with (
                keep_in(chosen.out, file) as keep,
                closing(SparkCourt(spark, place, chosen.engines.split(","))) as court,
            ):
                for golden in read_golden(file):
                    where = f"{file.relative_to(root)}:{golden.line}"
                    if not _is_query(golden):
                        court.prepare(golden.sql)
                    elif (file, golden.line) in drawn and court.has_defaults:
                        for engine, verdict in court.verdicts(golden, chosen.judge):
                            said = f"{engine} {where}"
                            if verdict.word == "same":
                                keep(Finding(said, "same"))
                            else:
                                keep(Finding(said, verdict.word, golden.sql, verdict.note))


def _is_query(golden: Golden) -> bool:
    return bool(_QUERY.match(golden.sql)) and not _CHANGES.search(golden.sql)


if __name__ == "__main__":
    sys.exit(main())
