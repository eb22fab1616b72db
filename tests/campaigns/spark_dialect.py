"""Spark's dialect on the local engine against PySpark itself.

    python tests/campaigns spark_dialect judge     ask PySpark what new statements give
    python tests/campaigns spark_dialect compare   what icesql makes of the same [--engine spark]
    python tests/campaigns spark_dialect … --berlin      in a zone whose clocks repeat an hour

``judge`` writes ``tests/query/dialects/spark_values.jsonl``: for each statement its rows, or null
where Spark ends by an error; what stands there is not asked again. ``compare`` needs no JVM. The statements of ``--berlin`` stand in
``spark_values_berlin.jsonl`` with their values alone.
"""

from __future__ import annotations

import collections
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Literal

from tests.query.dialects.canonical import lines

HERE = Path(__file__).parents[1] / "query" / "dialects"
STATEMENTS = HERE / "spark_statements.sql"
VALUES = HERE / "spark_values.jsonl"
BERLIN = HERE / "spark_values_berlin.jsonl"


def is_ordered(sql: str) -> bool:
    """Whether the order of the rows is part of the answer."""
    return "ORDER BY" in sql.rpartition(")")[2]


def judge(wanted: list[str], known: dict[str, Any], timezone: str) -> dict[str, Any]:
    """What PySpark gives for each statement."""
    os.environ["TZ"] = "UTC"
    from pyspark.sql import SparkSession

    from tests.query.dialects.spark_rows import rows

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.session.timeZone", timezone)
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC -XX:TieredStopAtLevel=1")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    # PySpark takes times without zone for instants in the session's.
    given = rows()
    columns = [
        f"CAST({name} AS TIMESTAMP_NTZ) AS ts" if name == "ts" else name
        for name in given.column_names
    ]
    table = spark.createDataFrame(given).selectExpr(*columns)
    table.coalesce(1).createOrReplaceTempView("t")
    found = {}
    for sql in wanted:
        if sql in known:
            found[sql] = known[sql]
            continue
        try:
            found[sql] = lines(spark.sql(sql).collect(), ordered=is_ordered(sql))
        except Exception:  # whatever Spark refuses, it refuses
            found[sql] = None
    spark.stop()
    return found


def compare(
    values: dict[str, Any], timezone: str, engine: str
) -> dict[str, list[tuple[str, Any, Any]]]:
    """Each statement under what became of it: same, refused, error, wrong, lax."""
    import icesql
    from tests.query.dialects.spark_rows import write

    found: dict[str, list[tuple[str, Any, Any]]] = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        with icesql.connect(
            warehouse=folder, dialect="spark", timezone=timezone, engine=engine
        ) as connection:
            connection.execute("USE n").close()
            for sql, expected in values.items():
                kind, got = answer(connection, sql, expected)
                found[kind].append((sql, expected, got))
    return found


def answer(connection: Any, sql: str, expected: Any) -> tuple[str, Any]:
    """What became of a statement, and icesql's rows or error."""
    import icesql

    cursor = connection.cursor()
    try:
        got = lines(cursor.execute(sql).fetchall(), ordered=is_ordered(sql))
    except icesql.NotSupportedError as error:
        return ("refused" if expected is not None else "both refuse"), str(error)
    except icesql.Error as error:
        return (
            "error" if expected is not None else "both refuse"
        ), f"{type(error).__name__} {error}"
    except Exception as error:
        return "foreign", f"{type(error).__name__} {error}"
    finally:
        cursor.close()
    if expected is None:
        return "lax", got
    return ("same" if got == expected else "wrong"), got


def main(
    do: Literal["judge", "compare"], *, berlin: bool = False,
    engine: Literal["local", "spark"] = "local",
) -> int:  # fmt: skip
    """Ask PySpark what is not known yet, or compare; how many statements are wrong."""
    file, timezone = (BERLIN, "Europe/Berlin") if berlin else (VALUES, "UTC")
    known = {}
    if file.exists():
        known = dict(map(json.loads, file.read_text(encoding="utf-8").splitlines()))
    wanted = list(known) if berlin else STATEMENTS.read_text(encoding="utf-8").splitlines()
    if do == "judge":
        found = judge(wanted, known, timezone)
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in found.items())
        file.write_text(text, encoding="utf-8")
        return 0
    found = compare({sql: known[sql] for sql in wanted if sql in known}, timezone, engine)
    for kind in ("wrong", "foreign", "lax", "error"):
        for sql, expected, got in found[kind]:
            print(f"== {kind}: {sql}\n   spark  {expected}\n   icesql {got}")
    print({kind: len(each) for kind, each in found.items()})
    return len(found["wrong"]) + len(found["foreign"])
