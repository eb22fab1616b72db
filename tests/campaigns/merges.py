"""Random MERGEs by icesql, by a model in plain Python, and by Spark with Iceberg's Java.

    python merges.py model FIRST LAST                   # seeds: icesql against the model, four ways
    python merges.py make FOLDER [COUNT]                # icesql runs statements and notes the rows
    python merges.py check FOLDER --jars A.jar:B.jar    # PySpark 4.1 and Iceberg 1.12 run the same

``check`` also reads the tables that icesql has merged into, row ids included. The jars are those of
``java_metadata_tables.py``. Each run prints what differs and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.modify.merge.model import Refused, merged, random_case, random_rows, values

WAYS = [(2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read")]
_REFUSED = "refused"


def model(first: int, last: int) -> int:
    from tests.modify.merge.test_random_merges import run

    for seed in range(first, last):
        for version, mode in WAYS:
            folder = Path(tempfile.mkdtemp())
            try:
                print(seed, version, mode, run(folder, seed, 25, version, mode), flush=True)
            finally:
                shutil.rmtree(folder)
    return 0


def make(folder: Path, count: int) -> int:
    """The statements go round the tables of all ways; each ends with its own rows."""
    import icesql

    warehouse = folder / "wh"
    warehouse.mkdir(parents=True)
    chance = random.Random(count)
    told: list[dict[str, Any]] = []
    with icesql.connect(warehouse=str(warehouse)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.u (k INT, a INT, w VARCHAR)")
        tables: dict[str, Any] = {}
        for number, (version, mode) in enumerate(WAYS):
            con.execute(
                f"CREATE TABLE s.t{number} (k INT, a INT, w VARCHAR) PARTITIONED BY (truncate(1, w)) "
                f"TBLPROPERTIES ('format-version' = '{version}', 'write.merge.mode' = '{mode}')"
            )
            tables[f"t{number}"] = []
        for number in range(count):
            name = f"t{number % len(WAYS)}"
            if not tables[name]:
                tables[name] = random_rows(chance, 12)
                con.execute(f"INSERT INTO s.{name} VALUES {values(tables[name])}")
            source = random_rows(chance, chance.randint(1, 8), distinct=chance.random() < 0.7)
            con.execute(f"INSERT OVERWRITE s.u VALUES {values(source)}")
            case = random_case(chance)
            before = tables[name]
            try:
                expected, _ = merged(case, before, source)
            except Refused:
                expected = None
            after: Any = _REFUSED
            try:
                con.execute(case.sql.format(t=f"s.{name}", s="s.u"))
                after = con.execute(f"SELECT k, a, w FROM s.{name}").fetchall()
                tables[name] = after
            except icesql.ProgrammingError:
                if expected is not None:
                    raise
            told.append({"sql": case.sql, "before": before, "source": source, "after": after})
    (folder / "statements.json").write_text(json.dumps({"told": told, "tables": tables}))
    return 0


def check(folder: Path, jars: str) -> int:
    spark = session(folder, jars)
    noted = json.loads((folder / "statements.json").read_text())
    wrong = stricter = 0
    # Rewriting files without a MATCHED clause, Spark writes a row twice that matches twice.
    by_deletes = "TBLPROPERTIES ('write.merge.mode' = 'merge-on-read')"
    for table in ("twin", "source"):
        spark.sql(f"CREATE TABLE c.x.{table} (k INT, a INT, w STRING) USING iceberg {by_deletes}")
    for number, each in enumerate(noted["told"]):
        for table, rows in (("twin", each["before"]), ("source", each["source"])):
            filling = f"VALUES {values(rows)}" if rows else "SELECT 1, 1, '' WHERE false"
            spark.sql(f"INSERT OVERWRITE c.x.{table} {filling}")
        found: Any = _REFUSED
        try:
            spark.sql(each["sql"].format(t="c.x.twin", s="c.x.source"))
            found = ordered(spark.sql("SELECT k, a, w FROM c.x.twin").collect())
        except Exception as error:
            if "MERGE_CARDINALITY_VIOLATION" not in str(error):
                found = str(error)[:300]
        wanted = each["after"] if each["after"] == _REFUSED else ordered(each["after"])
        if found == _REFUSED != wanted:
            stricter += 1  # Spark refuses rows that match twice though no clause takes them
            print(f"stricter {number}: {each['sql']}", flush=True)
            continue
        wrong += found != wanted
        print("ok   " if found == wanted else "WRONG", number, each["sql"], flush=True)
        if found != wanted:
            print(f"  {each}\n  Spark: {found}")
    for name, rows in noted["tables"].items():
        found = ordered(spark.sql(f"SELECT k, a, w FROM c.s.{name}").collect())
        same = found == ordered(rows)
        if int(name[1:]) > 1:
            ids = [row[0] for row in spark.sql(f"SELECT _row_id FROM c.s.{name}").collect()]
            same = same and None not in ids and len(set(ids)) == len(ids)
        wrong += not same
        print("ok   " if same else "WRONG", f"s.{name} as Java reads it")
    print(f"{len(noted['told'])} statements, {wrong} wrong, {stricter} that only Spark refuses")
    return min(wrong, 1)


def ordered(rows: Any) -> list[list[Any]]:
    return sorted(([*row] for row in rows), key=repr)


def session(folder: Path, jars: str) -> Any:
    from tests.campaigns.java_session import java_session

    return java_session(jars, folder / "wh")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["model", "make", "check"])
    parser.add_argument("arguments", nargs="+")
    parser.add_argument("--jars", default="")
    given = parser.parse_args()
    if given.step == "model":
        return model(*map(int, given.arguments))
    folder = Path(given.arguments[0])
    if given.step == "make":
        return make(folder, int([*given.arguments, "60"][1]))
    return check(folder, given.jars)


if __name__ == "__main__":
    raise SystemExit(main())
