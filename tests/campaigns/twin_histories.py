"""Random histories on twin tables: icesql changes one, Spark SQL with Iceberg's Java the other.

    python twin_histories.py FOLDER --jars A.jar:B.jar [--histories 200] [--seed 1] [--only N]

The Python has icesql and PySpark 4.1; the jars are those of ``java_metadata_tables.py``. A history
is a table of any version and about thirty statements that both take: rows, columns, partitions,
branches, history, maintenance. After each one the rows of both tables have to be equal, and in
version 3 also which statement made each row and which one changed it last; Java reads icesql's
table now and then, with its files, snapshots and refs, and at the end PyIceberg, too. A statement
that only one of them refuses is told, and undone where the other has run it. What is done stands
in FOLDER/results.jsonl, and is not run again. Exits with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ["TZ"] = "UTC"
time.tzset()

from tests.campaigns.java_session import java_session  # noqa: E402
from tests.campaigns.twin_statements import Statement, Table  # noqa: E402

LENGTH = 30
LINEAGE = ", _row_id, _last_updated_sequence_number"
METADATA = {
    "files": "SELECT content, file_path, spec_id, record_count, file_size_in_bytes FROM {}.files",
    "snapshots": "SELECT snapshot_id, parent_id, operation, manifest_list FROM {}.snapshots",
    "refs": "SELECT name, type, snapshot_id FROM {}.refs",
}


# ------------------------------------------------------------------ the two sides


def plain(value: Any) -> Any:
    """A value as both tell it: times in UTC, maps as pairs, NaN and -0.0 by their text."""
    match value:
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat()
        case float():
            return repr(value)
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
    return value


class Own:
    def __init__(self, folder: Path) -> None:
        import icesql

        self.error: type[Exception] = icesql.Error
        self.connection = icesql.connect(
            "c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"), dialect="spark",
            properties={"init_catalog_tables": "true"},
        )  # fmt: skip

    def run(self, sql: str) -> None:
        cursor = self.connection.execute(sql)
        if cursor.description:
            cursor.fetchall()

    def rows(self, sql: str) -> tuple[list[str], list[Any]]:
        cursor = self.connection.execute(sql)
        found = cursor.fetchall()
        return [each[0] for each in cursor.description], [plain(row) for row in found]

    def table(self, sql: str) -> tuple[list[str], list[Any]]:
        return _of_arrow(self.connection.execute(sql).arrow())


class Java:
    error: type[Exception] = Exception

    def __init__(self, folder: Path, jars: str) -> None:
        self.spark = java_session(
            jars, folder / "wh", folder / "c.db",
            settings={
                "spark.master": "local[1]", "spark.driver.memory": "2g",
                "spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false",
                "spark.sql.codegen.wholeStage": "false",
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
                "spark.sql.catalog.c.cache-enabled": "false",
                "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            },
        )  # fmt: skip
        self.spark.sparkContext.setLogLevel("OFF")

    def run(self, sql: str) -> None:
        if found := re.fullmatch(r"ALTER TABLE (\S+) ADD COLUMN (\w+) (\w+) DEFAULT (.*)", sql):
            return self._add_with_default(*found.groups())
        self.spark.sql(sql).collect()
        return None

    def _add_with_default(self, table: str, column: str, kind: str, default: str) -> None:
        """Spark's ALTER TABLE refuses defaults, which Java's own interface takes."""
        iceberg = self.spark._jvm.org.apache.iceberg
        loaded = iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, table)
        names = {"INT": "Integer", "BIGINT": "Long"}
        name = f"{names.get(kind, kind.capitalize())}Type"
        made = getattr(iceberg.types, f"Types${name}").get()
        value = json.loads(default.replace("'", '"'))
        literal = iceberg.expressions.Expressions.lit(value)
        loaded.updateSchema().addColumn(column, made, literal).commit()

    def table(self, sql: str) -> tuple[list[str], list[Any]]:
        return _of_arrow(self.spark.sql(sql).toArrow())


def _emptied(value: Any) -> Any:
    """PyIceberg 0.12 reads a NULL list of structs as an empty one."""
    match value:
        case dict():
            return {key: _emptied(each) for key, each in value.items()}
        case list():
            return [_emptied(each) for each in value] or None
    return value


def _of_arrow(table: Any) -> tuple[list[str], list[Any]]:
    columns = [[plain(each) for each in column.to_pylist()] for column in table.columns]
    return table.column_names, [list(row) for row in zip(*columns, strict=True)]


# ------------------------------------------------------------------ a history


class History:
    def __init__(self, number: int, seed: int, own: Own, java: Java, tell: bool) -> None:
        self.number, self.tell = number, tell
        self.own, self.java = own, java
        self.names = {"own": f"ns.own_{number}", "java": f"ns.java_{number}"}
        self.table = Table(random.Random(f"{seed} {number}"))
        self.heads: dict[str, list[int | None]] = {"own": [], "java": []}
        # Which statement made each row, and which one each sequence number is of.
        self.born: dict[str, dict[int, int]] = {"own": {}, "java": {}}
        self.dated: dict[str, dict[int, int]] = {"own": {}, "java": {}}
        self.rows_at: list[Any] = []
        self.wrong: list[str] = []
        self.refusals: list[str] = []
        self.kinds: Counter[str] = Counter()
        self.told: list[str] = []
        self.over = False

    def run(self, length: int) -> dict[str, Any]:
        started = time.monotonic()
        for name in self.names.values():
            self.own.run(f"DROP TABLE IF EXISTS c.{name}")
        self.step(self.table.create())
        while len(self.told) <= length and not self.over:
            self.step(self.table.draw())
            if not self.over and (len(self.told) % 7 == 0 or len(self.told) > length):
                self.java_reads()
        if not self.over:
            self.at_the_end()
        return {
            "history": self.number, "version": self.table.version, "statements": len(self.told),
            "wrong": self.wrong, "refusals": self.refusals, "kinds": self.kinds,
            "seconds": round(time.monotonic() - started, 1),
            "told": self.told if self.wrong or self.refusals else [],
        }  # fmt: skip

    # -------------------------------------------------------------- a statement

    def step(self, statement: Statement) -> None:
        number = len(self.told)
        if self.tell:
            print(f"-- {number} {'; '.join(statement.texts)}", flush=True)
        self.told.append("; ".join(statement.texts))
        self.kinds[statement.kind] += 1
        errors: dict[str, str | None] = {}
        for name, side in (("own", self.own), ("java", self.java)):
            errors[name] = self.do(name, side, statement)
            if self.tell and errors[name]:
                print(f"   {name}: {errors[name]}", flush=True)
        if errors["own"] and errors["java"]:
            self.kinds["refused by both"] += 1
        elif errors["own"] or errors["java"]:
            self.one_sided(statement, errors)
            if self.over:
                return
        else:
            statement.then()
        self.compare(number, statement)

    def do(self, name: str, side: Own | Java, statement: Statement) -> str | None:
        for text in statement.texts:
            try:
                side.run(self.filled(name, text))
            except Exception as error:
                if not isinstance(error, side.error):
                    self.fail(f"{type(error).__name__} {error} by {text}")
                if statement.kind == "publish":
                    side.run("RESET spark.wap.id")
                return f"{type(error).__name__}: {' '.join(str(error).split()[:60])}"[:400]
        return None

    def filled(self, side: str, text: str) -> str:
        name = self.names[side]
        text = text.replace("{t}", f"c.{name}").replace("{n}", name)
        text = re.sub(r"\{s(\d+)\}", lambda m: str(self.heads[side][int(m[1])]), text)
        return re.sub(r"\{head:(\w+)\}", lambda m: str(self.head(side, m[1])), text)

    def head(self, side: str, ref: str) -> int | None:
        _, found = self.own.rows(
            f"SELECT snapshot_id FROM c.{self.names[side]}.refs WHERE name = '{ref}'"
        )
        return found[0][0] if found else None

    def one_sided(self, statement: Statement, errors: dict[str, str | None]) -> None:
        """Take back what the other has done; a history ends where that is not to be had."""
        who = "own" if errors["own"] else "java"
        told = f"{who} refuses: {errors[who]}: {self.told[-1]}"
        self.refusals.append(told)
        print(f"history {self.number}: {told}", flush=True)
        other = "java" if who == "own" else "own"
        previous = self.heads[other][-1] if self.heads[other] else None
        if statement.kind in _ROWS and statement.branch == "main" and previous is not None:
            text = f"CALL c.system.set_current_snapshot('{self.names[other]}', {previous})"
            (self.own if other == "own" else self.java).run(text)
        else:
            self.over = True

    # -------------------------------------------------------------- comparing

    def fail(self, text: str) -> None:
        told = f"history {self.number}, statement {len(self.told) - 1}: {text}"
        self.wrong.append(told)
        self.over = True
        print(f"WRONG {told}", flush=True)

    def same(self, what: str, own: Any, java: Any) -> None:
        if own == java:
            return
        (names, ours), (others, theirs) = own, java
        if names != others:
            self.fail(f"{what}: columns {names}, Java {others}")
        lost = list((Counter(map(repr, theirs)) - Counter(map(repr, ours))).elements())
        extra = list((Counter(map(repr, ours)) - Counter(map(repr, theirs))).elements())
        if lost or extra:
            self.fail(
                f"{what}: {len(ours)} rows, {len(theirs)} by Java; "
                f"{len(lost)} lost {lost[:2]}, {len(extra)} extra {extra[:2]}"
            )

    def compare(self, number: int, statement: Statement) -> None:
        try:
            found = {side: self.state(side, number, "main") for side in ("own", "java")}
        except Exception as error:
            self.fail(f"reading after {self.told[-1]}: {type(error).__name__} {error}")
            return
        self.rows_at.append(found["own"][0])
        self.table.rows = len(found["own"][1][1])
        if all(self.heads[side][-1] for side in self.heads):
            self.table.heads.append(number)
        what = f"after {self.told[-1]}"
        self.same(what, *(each[0] for each in found.values()))
        # After an upgrade the first commit gives ids, and only Java commits what changes no row.
        if all(_has_ids(each[1]) for each in found.values()):
            self.same(f"lineage {what}", *(each[1] for each in found.values()))
        if statement.branch != "main" and statement.branch in self.table.branches:
            self.same(
                f"branch {statement.branch} {what}",
                *(
                    self.own.rows(f"SELECT * FROM c.{name}.branch_{statement.branch}")
                    for name in self.names.values()
                ),
            )

    def state(self, side: str, number: int, ref: str) -> Any:
        """The rows, and the same with statements for row ids and sequence numbers."""
        name = f"c.{self.names[side]}"
        self.heads[side].append(self.head(side, "main"))
        if self.table.version < 3:
            found = self.own.rows(f"SELECT * FROM {name}")
            return found, found
        names, rows = self.own.rows(f"SELECT *{LINEAGE} FROM {name}")
        ids = [row[-2] for row in rows if row[-2] is not None]
        if len(set(ids)) < len(ids):
            self.fail(f"{side}: {len(ids) - len(set(ids))} row ids twice after {self.told[-1]}")
        born, dated = self.born[side], self.dated[side]
        lived = []
        for row in rows:
            birth = None if row[-2] is None else born.setdefault(row[-2], number)
            date = None if row[-1] is None else dated.setdefault(row[-1], number)
            lived.append([*row[:-2], birth, date])
        return (names[:-2], [row[:-2] for row in rows]), (names, lived)

    # -------------------------------------------------------------- other readers

    def java_reads(self) -> None:
        name = f"c.{self.names['own']}"
        lineage = LINEAGE if self.table.version == 3 else ""
        texts = {"rows": f"SELECT *{lineage} FROM {name}"}
        texts |= {what: text.format(name) for what, text in METADATA.items()}
        for what, text in texts.items():
            try:
                self.same(f"{what} as Java reads them", self.own.table(text), self.java.table(text))
            except Exception as error:
                self.fail(f"Java reading {what}: {type(error).__name__} {str(error)[:600]}")

    def at_the_end(self) -> None:
        """Branches, tags, the past, what PyIceberg reads, and the totals of the summary."""
        name = f"c.{self.names['own']}"
        try:
            for ref in (*self.table.branches, *self.table.tags):
                texts = [f"SELECT * FROM c.{n} VERSION AS OF '{ref}'" for n in self.names.values()]
                self.same(f"ref {ref}", *map(self.own.rows, texts))
                self.same(f"ref {ref} by Java", self.own.table(texts[0]), self.java.table(texts[0]))
            _, kept = self.own.rows(f"SELECT snapshot_id FROM {name}.snapshots")
            heads = self.heads["own"]
            here = [
                n for n in self.table.heads if [heads[n]] in kept and heads.index(heads[n]) == n
            ]
            for number in self.table.chance.sample(here, min(3, len(here))):
                text = f"SELECT * FROM {name} VERSION AS OF {heads[number]}"
                past = self.own.rows(text)[1], self.rows_at[number][1]
                self.same(f"the past at {number}", *(([], rows) for rows in past))
                self.same("the past by Java", self.own.table(text), self.java.table(text))
            if self.table.version < 3:
                self.pyiceberg(name)
            self.totals(name)
        except Exception as error:
            self.fail(f"at the end: {type(error).__name__} {str(error)[:600]}")

    def pyiceberg(self, name: str) -> None:
        from pyiceberg.table import StaticTable

        _, files = self.own.rows(
            f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
        )
        table = StaticTable.from_metadata(files[0][0]).scan().to_arrow()
        found = self.own.table(f"SELECT * FROM {name}")
        both = ((names, _emptied(rows)) for names, rows in (found, _of_arrow(table)))
        self.same("by PyIceberg", *both)

    def totals(self, name: str) -> None:
        _, found = self.own.rows(
            f"SELECT s.summary FROM {name}.snapshots s JOIN {name}.refs r USING (snapshot_id) "
            "WHERE r.name = 'main'"
        )
        if not found:
            return
        summary = dict(map(tuple, found[0][0]))
        _, files = self.own.rows(f"SELECT content, record_count FROM {name}.files")
        data = [count for content, count in files if content == 0]
        counted = {
            "total-data-files": len(data), "total-records": sum(data),
            "total-delete-files": len(files) - len(data),
            "total-position-deletes": sum(n for content, n in files if content == 1),
        }  # fmt: skip
        told = {key: int(summary[key]) for key in counted if key in summary}
        if told != {key: counted[key] for key in told}:
            self.fail(f"the summary tells {told}, the files are {counted}")


def _has_ids(found: tuple[list[str], list[Any]]) -> bool:
    names, rows = found
    return names[-2:] != ["_row_id", "_last_updated_sequence_number"] or any(
        row[-2] is not None for row in rows
    )


_ROWS = {
    "insert", "insert columns", "insert select", "overwrite", "overwrite partition",
    "overwrite select", "delete", "truncate", "update", "merge", "cherrypick",
    "rollback_to_snapshot", "set_current_snapshot",
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jars", required=True)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=LENGTH)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*")
    given = parser.parse_args()
    folder = given.folder
    (folder / "wh").mkdir(parents=True, exist_ok=True)
    results = folder / "results.jsonl"
    lines = results.read_text().splitlines() if results.exists() else []
    done = {each["history"]: each for each in map(json.loads, lines)}
    own = Own(folder)
    own.run("CREATE SCHEMA IF NOT EXISTS ns")
    java = Java(folder, given.jars)
    numbers = given.only or range(given.first, given.first + given.histories)
    for number in numbers:
        if number in done and not given.only:
            continue
        found = History(number, given.seed, own, java, bool(given.only)).run(given.length)
        done[number] = found
        java.run("SET spark.sql.sources.partitionOverwriteMode = static")
        own.run("SET spark.sql.sources.partitionOverwriteMode = static")
        if not given.only:
            with results.open("a") as file:
                file.write(json.dumps(found, default=str) + "\n")
        print(
            f"history {number}: {found['statements']} statements, {found['seconds']} s", flush=True
        )
    told = [done[number] for number in numbers]
    kinds: Counter[str] = sum((Counter(each["kinds"]) for each in told), Counter())
    wrong = [text for each in told for text in each["wrong"]]
    refusals = [text for each in told for text in each["refusals"]]
    print("\n".join([*wrong, *refusals, str(dict(kinds.most_common()))]))
    print(
        f"{len(told)} histories, {sum(each['statements'] for each in told)} statements, "
        f"{len(wrong)} wrong, {len(refusals)} that one alone refuses"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
