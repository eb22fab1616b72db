"""rewrite_data_files on Spark: icesql's tasks against Java's procedure, on the same Spark.

    python compaction_spark.py make FOLDER LINEITEM.parquet [--files 2000] [--rows N]  # with icesql
    python compaction_spark.py icesql FOLDER                       # with icesql and PySpark 4.1
    python compaction_spark.py java FOLDER --jars A.jar:B.jar      # with PySpark 4.1, Iceberg 1.12

``make`` writes twin tables of TPC-H lineitem in small files, with position deletes of 1 % of the
rows and equality deletes of 0.1 %. Each of the others compacts its twin on local[2] once to be
warm (a small table) and then on the clock, and prints seconds, files and a checksum of the rows.
Jars: those of ``tests/campaigns/java_session.py``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
CHECK = "count(*), sum(l_orderkey), sum(l_extendedprice), count(DISTINCT l_comment)"
OPTIONS = "'rewrite-all', 'true'"


def make(folder: Path, source: str, files: int, rows: int) -> None:
    import icesql

    folder.mkdir(parents=True)
    with icesql.connect(warehouse=str(folder), files=True) as con:
        con.execute("CREATE SCHEMA s")
        for name, part in (("warm", 20_000), ("by_icesql", rows), ("by_java", rows)):
            size = max(Path(source).stat().st_size // files, 20_000)
            con.execute(
                f"CREATE TABLE s.{name} TBLPROPERTIES ('write.target-file-size-bytes' = '{size}', "
                "'write.delete.mode' = 'merge-on-read', 'format-version' = '2') "
                f"AS SELECT * FROM '{source}' LIMIT {part}"
            )
            con.execute(f"DELETE FROM s.{name} WHERE l_orderkey % 100 = 7")
            delete_by_keys(folder, name)
            con.execute(
                f"ALTER TABLE s.{name} SET TBLPROPERTIES "
                "('write.target-file-size-bytes' = '536870912')"
            )
            print(name, con.execute(f"SELECT count(*) FROM s.{name}.files").fetchall())


def delete_by_keys(folder: Path, name: str) -> None:
    """An equality delete file of every thousandth order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from icesql.catalog.directory import DirectoryCatalog
    from icesql.commit.rows import commit_row_delta
    from icesql.iceberg.manifest.data_file import DataFile, FileContent

    catalog = DirectoryCatalog(str(folder))
    table = catalog.load(("s", name))
    metadata = table.metadata
    (column,) = (each for each in metadata.schema.fields if each.name == "l_orderkey")
    field = pa.field("l_orderkey", pa.int64(), metadata={"PARQUET:field_id": str(column.field_id)})
    path = f"{metadata.location}/data/keys.parquet"
    keys = pa.array(range(1000, 60_000_000, 1000), pa.int64())
    pq.write_table(pa.Table.from_arrays([keys], schema=pa.schema([field])), path)
    file = DataFile(
        FileContent.EQUALITY_DELETES, path, "PARQUET", 0, (), len(keys), Path(path).stat().st_size,
        equality_ids=(column.field_id,),
    )  # fmt: skip
    start_id = metadata.current_snapshot_id
    commit_row_delta(catalog, table, deletes=[file], start_id=start_id, command="delete")


def by_icesql(folder: Path) -> None:
    import icesql

    with icesql.connect(warehouse=str(folder), engine="spark", master="local[2]") as con:
        for name in ("warm", "by_icesql"):
            started = time.perf_counter()
            sql = f"CALL system.rewrite_data_files('s.{name}', options => map({OPTIONS}))"
            found = con.execute(sql).fetchall()
            report(name, time.perf_counter() - started, found)
        con.execute("SET engine = 'local'")
        print(con.execute(f"SELECT {CHECK} FROM s.by_icesql").fetchall())


def by_java(folder: Path, jars: str) -> None:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraClassPath", jars)
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.catalog.c", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.c.type", "hadoop")
        .config("spark.sql.catalog.c.warehouse", str(folder))
        .config(
            "spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .getOrCreate()
    )
    for name in ("warm", "by_java"):
        started = time.perf_counter()
        found: Any = spark.sql(
            f"CALL c.system.rewrite_data_files(table => 's.{name}', options => map({OPTIONS}))"
        ).collect()
        report(name, time.perf_counter() - started, found)
    print(spark.sql(f"SELECT {CHECK} FROM c.s.by_java").collect())


def report(name: str, seconds: float, found: Any) -> None:
    print(f"{name}: {seconds:.2f} s, {found}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("step", choices=["make", "icesql", "java"])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("source", nargs="?")
    arguments.add_argument("--files", type=int, default=2000)
    arguments.add_argument("--rows", type=int, default=100_000_000)
    arguments.add_argument("--jars", default="")
    given = arguments.parse_args()
    match given.step:
        case "make":
            make(given.folder, given.source, given.files, given.rows)
        case "icesql":
            by_icesql(given.folder)
        case _:
            by_java(given.folder, given.jars)


if __name__ == "__main__":
    main()
