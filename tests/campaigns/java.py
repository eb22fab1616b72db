"""Run statements by icesql and by Java on the same state: same answers, rows, files, metadata.

    python tests/campaigns java FOLDER [NAME …] --jars A.jar:B.jar [--seed 1]

The Python has icesql and PySpark 4.1 (``pip install --target``); the jars are those of
``org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0`` and ``org.xerial:sqlite-jdbc:3.47.1.0``
(``mvn dependency:copy -Dartifact=…``). The names are those of files in ``java/``, all by default.
Each statement is run by one side, the lake is restored, and the other side runs it; its lake stays,
so that both continue with what the other wrote. Both read the tables that the statement names after
each of the two runs, and all metadata tables at the end. Prints the differences, and ends with code
1 if there are any.

Statements end with a semicolon at the end of a line. Lines starting with ``--@`` before one mean:

    for NAME …: VALUE … | VALUE …   the file is run once for each, with {NAME} in its statements
    by icesql, by java              only one side runs it
    each                            from here on each statement begins with the lake that is here
    let NAME: QUERY                 a value for {NAME} in this statement and those that follow
    answer: N …                     which columns of the answer are compared
    not: KEY, …                     what else is not compared
    exact                           from here on also files and totals are, which writers may choose
    doctor: FINDING                 the statement is a table; both follow the doctor's advice
    python                          it is Python; ``names`` are the values, ``run`` runs DuckDB's SQL
"""

from __future__ import annotations

import logging
import os
import random
import re
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import icesql
from tests.campaigns.histories.catalogs import Warehouse
from tests.scan.test_java_metadata_tables import canonical, differences

FILES = Path(__file__).with_suffix("")
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
TABLES = (
    "history", "snapshots", "refs", "metadata_log_entries", "manifests", "all_manifests",
    "files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files",
    "entries", "all_entries", "partitions", "position_deletes",
)  # fmt: skip
# Smaller numbers are neither snapshot ids nor times.
LEAST_ID = 10**12
KEPT = (
    "format-version", "last-column-id", "schemas", "current-schema-id", "partition-specs",
    "default-spec-id", "last-partition-id", "sort-orders", "default-sort-order-id", "properties",
    "refs", "next-row-id", "last-sequence-number",
)  # fmt: skip
CHOSEN = ("new", "gone", "next-row-id", "snapshots")
SUMMARY = ("operation", "added-records", "deleted-records", "total-records", "wap.id")
Row = dict[str, Any]


class Step(NamedTuple):
    """A statement, and the annotations before it."""

    text: str
    said: dict[str, str]


def steps(path: Path) -> Iterator[Step]:
    """The statements of a file."""
    for part in re.split(r";$", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        lines = part.strip().splitlines()
        said = dict(each[3:].partition(": ")[::2] for each in lines if each.startswith("--@"))
        text = "\n".join(each for each in lines if not each.startswith("--"))
        if text or said:
            yield Step(text, said)


def ways(said: dict[str, str]) -> list[dict[str, str]]:
    """The sets of values with which a file is run."""
    found: list[dict[str, str]] = [{}]
    for key, values in said.items():
        _, *names = key.split()
        if key.startswith("for "):
            rows = [dict(zip(names, row.split(), strict=True)) for row in values.split("|")]
            found = [known | row for known in found for row in rows]
    return found


# ------------------------------------------------------------------ the two sides


class Own:
    """icesql, with a new connection for each statement, as the files below it are replaced."""

    name = "icesql"

    def __init__(self, lake: Lake) -> None:
        self._connect = lambda dialect="spark": icesql.connect(
            **lake.arguments(), dialect=dialect, timezone="UTC", files=True
        )

    def rows(self, text: str, dialect: str = "spark") -> list[Row]:
        with self._connect(dialect) as connection:
            found: list[Row] = []
            for cursor in connection.execute_script(text):
                table = cursor.arrow() if cursor.description else None
                found = table.to_pylist(maps_as_pydicts="strict") if table is not None else []
            return [canonical(row) for row in found]

    def finding(self, table: str, name: str) -> Any:
        """The doctor's finding with this name about a table, None if there is none."""
        with self._connect() as connection:
            found = connection.doctor(table).findings
        return next((each for each in found if each.name == name), None)


class Java:
    """Spark SQL with Iceberg's library."""

    name = "Java"

    def __init__(self, lake: Lake, jars: str) -> None:
        from pyspark.sql import SparkSession

        given = {
            "type": "jdbc", "uri": f"jdbc:sqlite:{lake.database}", "clients": "1",
            "warehouse": str(lake.warehouse), "jdbc.schema-version": "V1", "cache-enabled": "false",
        }  # fmt: skip
        builder = (
            SparkSession.builder.master("local[1]")
            .config("spark.driver.extraClassPath", jars)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.extensions", EXTENSIONS)
            .config("spark.sql.catalog.c", "org.apache.iceberg.spark.SparkCatalog")
        )
        for key, value in given.items():
            builder = builder.config(f"spark.sql.catalog.c.{key}", value)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("OFF")
        self._spark.sql("USE c")

    def rows(self, text: str) -> list[Row]:
        found: list[Row] = []
        for each in text.split("; "):
            grown = re.fullmatch(
                r"INSERT WITH SCHEMA EVOLUTION INTO (\S+) BY NAME (.*)", each, re.S
            )
            if grown:
                self._append(*grown.groups())
                continue
            rows = self._spark.sql(each).collect()
            found = [canonical(row.asDict(recursive=True)) for row in rows]
        return found

    def _append(self, table: str, query: str) -> None:
        """Spark 4.1 has no such INSERT; do the same with its writer."""
        key = "'write.spark.accept-any-schema'"
        self._spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({key} = 'true')")
        options = {"mergeSchema": "true", "check-ordering": "false"}
        self._spark.sql(query).writeTo(table).options(**options).append()
        self._spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ({key})")


class Lake(Warehouse):
    """The warehouse and its catalog, which can be saved and restored."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        super().__init__("sqlite", folder)

    def keep(self, name: str) -> None:
        """Save the current state under a name."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.copytree(self.warehouse, self.folder / name)
        self._copy(self.database, self.folder / f"{name}.db")

    def put_back(self, name: str) -> None:
        """Restore a saved state; its files are old enough to count as orphans."""
        shutil.rmtree(self.warehouse)
        shutil.copytree(self.folder / name, self.warehouse)
        self._copy(self.folder / f"{name}.db", self.database)
        self.make_old("", 9)

    def _copy(self, source: Path, target: Path) -> None:
        """Copy only the rows: other processes have the file open."""
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)

    def files(self) -> set[str]:
        """All files except for the checksums that Hadoop writes."""
        found = (each for each in self.warehouse.rglob("*") if each.is_file())
        return {str(each.relative_to(self.warehouse)) for each in found if each.suffix != ".crc"}

    def tables(self) -> dict[str, dict[str, Any]]:
        """The metadata of each table."""
        asked = (
            "SELECT table_namespace, table_name FROM iceberg_tables WHERE iceberg_type = 'TABLE'"
        )
        with closing(sqlite3.connect(self.database)) as database:
            found = database.execute(asked).fetchall()
        return {each[1]: document[1] for each in found if (document := self.document(*each))}


# ------------------------------------------------------------------ results of a statement


def kind(name: str) -> str:
    """The kind of a file."""
    if name.endswith(".metadata.json"):
        return "metadata"
    if name.endswith(".avro"):
        return "list" if "/snap-" in name else "manifest"
    return Path(name).suffix


def plain(value: Any, known: set[int]) -> Any:
    """A value without parts that differ between sides: new ids and times, and lists in files."""
    match value:
        case dict():
            # Spark makes nested fields required if it adds them from constants.
            kept = {key: each for key, each in value.items() if not key.endswith("required")}
            return {key: plain(each, known) for key, each in kept.items()}
        case list():
            return [plain(each, known) for each in value]
        case int() if value >= LEAST_ID and value not in known:
            return "new"
        case str() if "file-list" in value:
            parts = Path(value.removeprefix("file:")).parent.glob("file-list*")
            texts = [each.read_text(encoding="utf-8") for each in parts if each.is_file()]
            lines = [line.split(",") for text in texts for line in text.splitlines()]
            return sorted([new, "staging" in old] for old, new in lines)
        case str():
            return value.removeprefix("file:")
    return value


def told(metadata: dict[str, Any], known: set[int]) -> dict[str, Any]:
    """The compared parts of a table's metadata."""
    found = {key: plain(metadata.get(key), known) for key in KEPT}
    found["properties"].pop("owner", None)
    found["required"] = [
        [each["name"] for each in schema["fields"] if each["required"]]
        for schema in metadata["schemas"]
    ]
    found["snapshots"] = [
        [plain(each["snapshot-id"], known), plain(each.get("parent-snapshot-id"), known),
         each.get("schema-id"), *map(each["summary"].get, SUMMARY)]
        for each in sorted(metadata["snapshots"], key=lambda each: each.get("sequence-number", 0))
    ]  # fmt: skip
    found["operations"] = [each[3] for each in found["snapshots"]]
    return found


class Trial:
    """The files of ``java/`` on one lake."""

    def __init__(self, folder: Path, jars: str, seed: int) -> None:
        self.lake = Lake(folder)
        self.own = Own(self.lake)
        self.own.rows("CREATE SCHEMA ns")
        self.java = Java(self.lake, jars)
        self.chance = random.Random(seed)
        self.lake.keep("empty")
        self.statements = self.wrong = 0

    def run(self, path: Path) -> None:
        """Run a file with all its sets of values."""
        found = list(steps(path))
        for names in ways(found[0].said):
            self.lake.put_back("empty")
            print(f"-- {path.stem} {names}", flush=True)
            names |= {"warehouse": str(self.lake.warehouse)}
            state, self.exact = "before", False
            for step in found:
                if "each" in step.said:
                    state = "each"
                    self.lake.keep(state)
                self.exact |= "exact" in step.said
                if step.text:
                    self.step(step, names, state)
            self.metadata_tables()

    def step(self, step: Step, names: dict[str, str], state: str) -> None:
        """Run a statement on both sides, or on one."""
        said = step.said
        if "python" in said:
            exec(step.text, {"names": names, "run": partial(self.own.rows, dialect="duckdb")})
            return
        if state == "each":
            self.lake.put_back(state)
        for key in said:
            if key.startswith("let "):
                ((value,),) = (row.values() for row in self.own.rows(self.filled(said[key], names)))
                names[key.removeprefix("let ")] = str(value)
        text = self.filled(step.text, names)
        self.statements += 1
        texts = {self.own: text, self.java: text}
        if "doctor" in said:
            finding = self.own.finding(text, said["doctor"])
            said = said | {"table": text, "measure": finding.measure}
            texts[self.own] = finding.statement
            texts[self.java] = finding.spark_statement.replace("catalog.", "c.")
        one = {"by icesql": self.own, "by java": self.java}
        order = [one[each] for each in said if each in one] or self.chance.sample([*texts], 2)
        if state != "each":
            self.lake.keep(state)
        outcomes = {}
        for number, side in enumerate(order):
            if number:
                self.lake.put_back(state)
            outcomes[side.name] = self.outcome(side, texts[side], said)
        problems = [each for outcome in outcomes.values() for each in outcome.pop("problems")]
        problems += self.compared(outcomes, said)
        self.wrong += bool(problems)
        print("WRONG" if problems else "ok   ", " ".join(text.split())[:150], flush=True)
        for problem in problems:
            print("     ", problem[:1500], flush=True)

    def filled(self, text: str, names: dict[str, str]) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: names[found[1]], text)

    def outcome(self, side: Own | Java, text: str, said: dict[str, str]) -> dict[str, Any]:
        """The result of a statement on one side, as both sides read it."""
        found: dict[str, Any] = {"problems": []}
        files, tables = self.lake.files(), self.lake.tables()
        known = {each["snapshot-id"] for one in tables.values() for each in one["snapshots"]}
        try:
            # The doctor's statements for icesql are in its own dialect.
            own = {"dialect": "duckdb"} if "doctor" in said and side is self.own else {}
            rows = [[*plain(row, known).values()] for row in side.rows(text, **own)]
        except Exception as error:
            found["error"] = f"{type(error).__name__} {str(error)[:300]}"
            return found
        if text.startswith(("SELECT", "CALL")):
            chosen = [int(each) for each in said.get("answer", "").split()]
            found["answer"] = sorted(
                ([row[each] for each in chosen] if chosen else row for row in rows), key=str
            )
        after = self.lake.files()
        found["gone"] = sorted(files - after)
        found["new"] = dict(sorted(Counter(map(kind, after - files)).items()))
        for name, metadata in self.lake.tables().items():
            if not re.search(rf"\bns\.`?{name}\b", text):
                continue
            old = tables.get(name, {}).get("next-row-id", 0)
            found |= {f"{name} {key}": value for key, value in told(metadata, known).items()}
            found[f"{name} rows"] = self.read(name, metadata, old, found["problems"])
        if "doctor" in said:
            again = self.own.finding(said["table"], said["doctor"])
            if again and again.now is not None and again.measure == said["measure"]:
                found["problems"].append(f"{side.name} leaves it: {again}")
        return found

    def read(self, name: str, metadata: dict[str, Any], old: int, problems: list[str]) -> Any:
        """The rows of a table, read by both sides; row ids of new rows are replaced by "new"."""
        lineage = ", _row_id, _last_updated_sequence_number" * (metadata["format-version"] > 2)
        sql = f"SELECT *{lineage} FROM ns.`{name}`"
        try:
            own, java = (sorted(each.rows(sql), key=str) for each in (self.own, self.java))
        except Exception as error:
            problems.append(f"reading {name}: {error}")
            return None
        if own != java:
            problems.append(f"{name} is read differently: icesql {own}, Java {java}")
        for row in own:
            if (row.get("_row_id") or 0) >= old and lineage:
                row["_row_id"] = "new"
        return sorted(own, key=str)

    def compared(self, outcomes: dict[str, Any], said: dict[str, str]) -> Iterator[str]:
        """The differences between the two sides."""
        if len(outcomes) < 2:
            yield from (
                f"{name}: {each['error']}" for name, each in outcomes.items() if "error" in each
            )
            return
        errors = [name for name, each in outcomes.items() if "error" in each]
        if len(errors) == 1:
            yield f"{errors[0]} alone refuses: {outcomes[errors[0]]['error']}"
        if errors:
            return
        own, java = outcomes["icesql"], outcomes["Java"]
        skipped = [*said.get("not", "-").split(", "), *(() if self.exact else CHOSEN)]
        keys = {*own, *java}
        if "doctor" in said or not (own["new"] or self.exact):  # Java commits without changes
            keys = {each for each in keys if each.endswith(("rows", "answer"))}
        for key in sorted(keys):
            both = own.get(key), java.get(key)
            if both[0] == both[1] or key.endswith(tuple(skipped)):
                continue
            if all(isinstance(each, list) for each in both):
                one, other = (Counter(map(repr, each)) for each in both)
                both = [*(one - other).elements()], [*(other - one).elements()]
            yield f"{key}: icesql {both[0]}, Java {both[1]}"

    def metadata_tables(self) -> None:
        """Compare all metadata tables of all tables, read by both sides."""
        for name in self.lake.tables():
            for table in TABLES:
                sql = f"SELECT * FROM ns.`{name}`.{table}"
                try:
                    java = self.java.rows(sql)
                except Exception:  # such as for deleted lists of variants
                    continue
                problems = [*differences(java, self.own.rows(sql))]
                self.wrong += bool(problems)
                for problem in problems:
                    print(f"WRONG {name}.{table}: {problem}", flush=True)


def main(folder: Path, names: tuple[str, ...] = (), *, jars: str, seed: int = 1) -> int:
    """Run the files; return how many statements and tables differ."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    logging.disable()  # PySpark logs each refusal
    trial = Trial(folder.absolute(), jars, seed)
    for name in names or sorted(each.stem for each in FILES.glob("*.sql")):
        trial.run(FILES / f"{name}.sql")
    print(f"{trial.statements} statements, {trial.wrong} wrong")
    return trial.wrong
