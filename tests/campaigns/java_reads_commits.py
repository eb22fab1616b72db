"""Java reads, changes and hands back the tables that icesql commits.

Three runs, since the Java side needs a PySpark and an Iceberg runtime that match each other:

    python java_reads_commits.py make FOLDER                    # with icesql
    python java_reads_commits.py check FOLDER --jars A.jar:B.jar   # with PySpark 4.1, Iceberg 1.12
    python java_reads_commits.py again FOLDER                   # with icesql

The jars are those of ``java_metadata_tables.py``. Each run prints what differs and exits with 1
if anything does.
"""

from __future__ import annotations

import argparse
import functools
import json
import operator
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
COUNTED = {"data_files": "data_files", "delete_files": "delete_files", "snapshots": "snapshots"}


# ------------------------------------------------------------------ icesql writes


def make(folder: Path) -> None:
    from icesql.catalog.sqlite import SqliteCatalog

    (folder / "wh").mkdir(parents=True)
    catalog = SqliteCatalog(
        str(folder / "c.db"), "c",
        properties={"warehouse": str(folder / "wh"), "init_catalog_tables": "true"},
    )  # fmt: skip
    catalog.create_namespace(("ns",))
    expected = {}
    for version in (1, 2, 3):
        expected[f"appended{version}"] = appended(catalog, version)
        expected[f"replaced{version}"] = replaced(catalog, version)
    for version in (2, 3):
        expected[f"deleted{version}"] = deleted(catalog, version)
    expected["upgraded"] = upgraded(catalog)
    for version in (2, 3):
        expected[f"odd{version}"] = odd(catalog, version)
    (folder / "expected.json").write_text(json.dumps(expected))


def appended(catalog: Any, version: int) -> Any:
    """Appends, merged manifests, a branch and a tag."""
    from icesql.commit.append import commit_append
    from icesql.commit.change import change_table
    from icesql.iceberg.metadata.changes.updates import SetSnapshotRef
    from icesql.iceberg.metadata.snapshot import SnapshotRef
    from tests.commit.tables import create, written

    table = create(
        catalog, version=version, partitioned=True, name=f"appended{version}",
        **{"commit.manifest.min-count-to-merge": "3", "write.metadata.compression-codec": "gzip"},
    )  # fmt: skip
    rows = [[(1, "a"), (2, "a")], [(3, "é/ =")], [(4, None)], [(5, "a")], [(6, "z" * 40)]]
    for number, part in enumerate(rows):
        file = written(table, f"f{number}", part, (part[0][1],))
        table = commit_append(catalog, table, [file]).table
    done = commit_append(catalog, table, [written(table, "b", [(7, "a")], ("a",))], branch="audit")
    head = done.table.metadata.current_snapshot_id
    change_table(catalog, done.table, lambda base: [SetSnapshotRef("v1", SnapshotRef(head, "tag"))])
    return {"rows": sorted(functools.reduce(operator.iadd, rows, []), key=str), "audit": 7}


def replaced(catalog: Any, version: int) -> Any:
    from icesql.commit.append import commit_append
    from icesql.commit.rows import commit_overwrite
    from tests.commit.tables import create, written
    from tests.commit.test_rows import in_table

    table = create(catalog, version=version, name=f"replaced{version}")
    files = [written(table, "a", [(1, "a"), (2, "b")]), written(table, "b", [(3, "c")])]
    table = commit_append(catalog, table, files).table
    new = [written(table, "c", [(1, "a"), (2, "B")])]
    start = table.metadata.current_snapshot_id
    commit_overwrite(catalog, table, removed=in_table(table, "a"), added=new, start_id=start)
    return {"rows": [(1, "a"), (2, "B"), (3, "c")]}


def vector(table: Any, data: Any, name: str, positions: list[int]) -> Any:
    """A deletion vector in a Puffin file of its own."""
    from msgspec.structs import replace

    from icesql.iceberg.manifest.data_file import FileContent
    from icesql.iceberg.puffin.writer import deletion_vector_blob, puffin_bytes

    data_bytes, (place,), _ = puffin_bytes([deletion_vector_blob(data.path, positions)], "icesql")
    path = f"{table.metadata.location}/data/{name}-deletes.puffin"
    Path(path).write_bytes(data_bytes)
    return replace(
        data, content=FileContent.POSITION_DELETES, path=path, file_format="PUFFIN",
        record_count=len(positions), file_size_in_bytes=len(data_bytes),
        referenced_data_file=data.path, content_offset=place.offset,
        content_size_in_bytes=place.length, split_offsets=None, lower_bounds=None,
        upper_bounds=None, first_row_id=None,
    )  # fmt: skip


def position_file(table: Any, data: Any, name: str, positions: list[int]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from msgspec.structs import replace

    from icesql.iceberg.manifest.data_file import FileContent

    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
        ]
    )
    path = f"{table.metadata.location}/data/{name}-deletes.parquet"
    rows = {"file_path": [data.path] * len(positions), "pos": positions}
    pq.write_table(pa.table(rows, schema=schema), path)
    bound = {2147483546: data.path.encode()}
    return replace(
        data, content=FileContent.POSITION_DELETES, path=path, record_count=len(positions),
        file_size_in_bytes=Path(path).stat().st_size, referenced_data_file=data.path,
        lower_bounds=bound, upper_bounds=bound, first_row_id=None,
    )  # fmt: skip


def deleted(catalog: Any, version: int) -> Any:
    """Merge-on-read deletes, then some more of the same file, and compaction."""
    from icesql.commit.append import commit_append
    from icesql.commit.rows import commit_rewrite, commit_row_delta
    from tests.commit.tables import create, written
    from tests.commit.test_rows import in_table

    table = create(
        catalog, version=version, partitioned=True, name=f"deleted{version}",
        **{"write.delete.mode": "merge-on-read"},
    )  # fmt: skip
    rows = [(number, "a") for number in range(10)]
    others = [(number, "b") for number in range(10, 14)]
    files = [written(table, "a", rows, ("a",)), written(table, "b", others, ("b",))]
    table = commit_append(catalog, table, files).table
    one = vector if version == 3 else position_file
    a, b = in_table(table, "a", "b")

    def delta(table: Any, deletes: list[Any], removed: list[Any] = ()) -> Any:
        return commit_row_delta(
            catalog, table, deletes=deletes, removed=removed, command="delete",
            referenced=[each.referenced_data_file for each in deletes],
            start_id=table.metadata.current_snapshot_id,
        ).table  # fmt: skip

    first = one(table, a, "d1", [3])
    table = delta(table, [first])
    second = one(table, a, "d2", [3, 5])
    old = [each for each in live_files(table) if each.path == first.path]
    table = delta(table, [second, one(table, b, "d3", [0])], old)
    kept = [row for row in rows if row[0] not in (3, 5)]
    if version == 3:
        # What is compacted loses its vector; the rows of the other file keep theirs.
        start = table.metadata.current_snapshot_id
        new = [written(table, "compacted", kept, ("a",))]
        gone = [
            each for each in live_files(table) if a.path in (each.path, each.referenced_data_file)
        ]
        commit_rewrite(catalog, table, added=new, removed=gone, start_id=start)
    return {"rows": [*kept, *others[1:]], "deletes": 1 if version == 3 else 2}


def live_files(table: Any) -> list[Any]:
    from tests.commit.tables import entries

    return [
        each.data_file(index)
        for each in entries(table)
        for index in range(each.count)
        if each.status[index] != 2
    ]


def upgraded(catalog: Any) -> Any:
    """Version 1 to 3 by steps, rows added between them."""
    from icesql.commit.append import commit_append
    from icesql.commit.change import change_table
    from icesql.iceberg.metadata.changes.updates import UpgradeFormatVersion
    from tests.commit.tables import create, written

    table = create(catalog, version=1, partitioned=True, name="upgraded")
    for version in (1, 2, 3):
        if version > 1:
            table = change_table(catalog, table, lambda base: [UpgradeFormatVersion(version)]).table  # noqa: B023
        file = written(table, f"v{version}", [(version, "a")], ("a",))
        table = commit_append(catalog, table, [file]).table
    return {"rows": [(1, "a"), (2, "a"), (3, "a")]}


def odd(catalog: Any, version: int) -> Any:
    """Partition values of types that Avro stores in ways of their own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from icesql.commit.append import commit_append
    from icesql.commit.create import create_table, stage_table
    from icesql.commit.rows import commit_overwrite
    from icesql.iceberg import types as t
    from icesql.iceberg.manifest.data_file import DataFile, FileContent
    from icesql.iceberg.new_spec import PartitionRequest
    from icesql.iceberg.schema import Schema
    from tests.commit.test_rows import in_table

    columns = {
        "id": (t.LONG, pa.int64()), "dec": (t.DecimalType(20, 3), pa.decimal128(20, 3)),
        "bin": (t.BINARY, pa.binary()), "day": (t.DATE, pa.date32()),
        "ts": (t.TIMESTAMPTZ, pa.timestamp("us", "UTC")), "x": (t.DOUBLE, pa.float64()),
        "flag": (t.BOOLEAN, pa.bool_()), "fix": (t.FixedType(3), pa.binary(3)),
    }  # fmt: skip
    fields = [
        t.NestedField(n, name, kind) for n, (name, (kind, _)) in enumerate(columns.items(), 1)
    ]
    parts = ["dec", "bin", "day", "ts", "x", "flag"]
    requests = [PartitionRequest(name) for name in parts] + [
        PartitionRequest("id", "bucket[4]", "9 é")
    ]
    staged = stage_table(
        catalog, ("ns", f"odd{version}"), Schema(tuple(fields)), partitioning=requests,
        properties={"format-version": str(version)},
    )  # fmt: skip
    table = create_table(catalog, staged).table
    import datetime as dt

    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)
    values = {
        "id": 34, "dec": Decimal("-12.345"), "bin": b"\x80\x00", "day": dt.date(1969, 12, 31),
        "ts": moment, "x": -0.5, "flag": True, "fix": b"abc",
    }  # fmt: skip
    tuples = [(Decimal("-12.345"), b"\x80\x00", -1, -1, -0.5, True, 3), (None,) * 7]
    files = []
    for number, (row, partition) in enumerate(
        [(values, tuples[0]), (dict.fromkeys(values), tuples[1])]
    ):
        schema = pa.schema(
            [
                pa.field(name, kind, metadata={"PARQUET:field_id": str(n)})
                for n, (name, (_, kind)) in enumerate(columns.items(), 1)
            ]
        )
        path = f"{table.metadata.location}/data/{number}.parquet"
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist([row], schema=schema), path)
        files.append(
            DataFile(FileContent.DATA, path, "PARQUET", 0, partition, 1, Path(path).stat().st_size)
        )
    table = commit_append(catalog, table, files).table
    # Manifests with these values are read and written again.
    copy = f"{table.metadata.location}/data/copy.parquet"
    Path(copy).write_bytes(Path(files[1].path).read_bytes())
    from msgspec.structs import replace

    new = [replace(files[1], path=copy)]
    start = table.metadata.current_snapshot_id
    commit_overwrite(catalog, table, removed=in_table(table, "1"), added=new, start_id=start)
    return {"ids": [34, None]}


# ------------------------------------------------------------------ Java reads and changes


def session(folder: Path, jars: str) -> Any:
    from tests.campaigns.java_session import java_session

    return java_session(jars, folder / "wh", folder / "c.db")


def check(folder: Path, jars: str) -> int:
    spark = session(folder, jars)
    expected = json.loads((folder / "expected.json").read_text())
    wrong = 0

    def same(what: str, found: Any, wanted: Any) -> None:
        nonlocal wrong
        wrong += found != wanted
        print(
            f"{'ok  ' if found == wanted else 'WRONG'} {what}"
            + ("" if found == wanted else f": {found}, expected {wanted}")
        )

    def rows(sql: str) -> list[Any]:
        return sorted(([*row] for row in spark.sql(sql).collect()), key=str)

    for name, told in expected.items():
        table = f"c.ns.{name}"
        try:
            if "ids" in told:
                same(
                    name,
                    sorted(
                        (row[0] for row in spark.sql(f"SELECT id FROM {table}").collect()), key=str
                    ),
                    sorted(told["ids"], key=str),
                )
                same(
                    f"{name} pruned",
                    rows(f"SELECT id FROM {table} WHERE fix = X'616263' AND dec < 0 AND x < 0"),
                    [[34]],
                )
                spark.sql(f"INSERT INTO {table} SELECT * FROM {table}")
                continue
            wanted = sorted(told["rows"], key=str)
            same(name, rows(f"SELECT id, p FROM {table}"), wanted)
            for value in ("a", "é/ =", "b"):
                part = [row for row in wanted if row[1] == value]
                same(
                    f"{name} p = {value}",
                    rows(f"SELECT id, p FROM {table} WHERE p = '{value}'"),
                    part,
                )
            for metadata in (
                "files",
                "entries",
                "manifests",
                "snapshots",
                "refs",
                "history",
                "partitions",
            ):
                spark.sql(f"SELECT * FROM {table}.{metadata}").collect()
            if "audit" in told:
                same(
                    f"{name} branch",
                    len(rows(f"SELECT id FROM {table} VERSION AS OF 'audit'")),
                    told["audit"],
                )
            if "deletes" in told:
                same(
                    f"{name} deletes",
                    spark.sql(f"SELECT * FROM {table}.delete_files").count(),
                    told["deletes"],
                )
            if name.endswith("3") or name == "upgraded":
                ids = [row[0] for row in spark.sql(f"SELECT _row_id FROM {table}").collect()]
                same(f"{name} row ids", len({*ids} - {None}), len(wanted))
            total = spark.sql(
                f"SELECT summary['total-records'] FROM {table}.snapshots ORDER BY committed_at DESC"
            ).first()[0]
            files = spark.sql(f"SELECT sum(record_count) FROM {table}.data_files").first()[0]
            if "audit" not in told:
                same(f"{name} summary", int(total), files)
            change(spark, table)
            kept = [row for row in wanted if row[0] != wanted[0][0]]
            same(
                f"{name} after Java",
                rows(f"SELECT id, p FROM {table}"),
                sorted([*kept, [100, "new"]], key=str),
            )
        except Exception as error:
            wrong += 1
            print(f"WRONG {name}: {str(error)[:600]}")
    spark.stop()
    return int(wrong > 0)


def change(spark: Any, table: str) -> None:
    """Delete, update, insert, compact and expire by Java."""
    first = sorted((row[0] for row in spark.sql(f"SELECT id FROM {table}").collect()), key=str)[0]
    first = spark.sql(f"SELECT id, p FROM {table}").collect()
    first = sorted(([*row] for row in first), key=str)[0][0]
    spark.sql(f"DELETE FROM {table} WHERE id = {first}")
    spark.sql(f"INSERT INTO {table} VALUES (99, 'new')")
    spark.sql(f"UPDATE {table} SET id = 100 WHERE id = 99")
    name = table.removeprefix("c.")
    spark.sql(
        f"CALL c.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    )
    spark.sql(f"CALL c.system.rewrite_manifests('{name}')")
    spark.sql(
        f"CALL c.system.expire_snapshots(table => '{name}', older_than => now(), retain_last => 1)"
    )


# ------------------------------------------------------------------ icesql goes on


def again(folder: Path) -> int:
    import icesql
    from icesql.catalog.sqlite import SqliteCatalog
    from icesql.commit.append import commit_append
    from tests.commit.tables import written

    catalog = SqliteCatalog(str(folder / "c.db"), "c")
    wrong = 0
    for name, told in json.loads((folder / "expected.json").read_text()).items():
        if "ids" in told:
            continue
        table = catalog.load(("ns", name))
        partition = ("last",) if table.metadata.spec.fields else ()
        done = commit_append(catalog, table, [written(table, "again", [(200, "last")], partition)])
        wanted = sorted(told["rows"], key=str)
        wanted = sorted(
            [*(row for row in wanted if row[0] != wanted[0][0]), [100, "new"], [200, "last"]],
            key=str,
        )
        with icesql.connect(uri=f"sqlite:///{folder}/c.db") as connection:
            found = connection.execute(f"SELECT id, p FROM ns.{name}").fetchall()
        found = sorted(([*row] for row in found), key=str)
        total = done.summary.get("total-records")
        wrong += found != wanted
        print(
            f"{'ok  ' if found == wanted else 'WRONG'} {name} ({total} records)"
            + ("" if found == wanted else f": {found}, expected {wanted}")
        )
    return int(wrong > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", choices=("make", "check", "again"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jars", default="")
    given = parser.parse_args()
    match given.run:
        case "make":
            make(given.folder)
            return 0
        case "check":
            return check(given.folder, given.jars)
        case _:
            return again(given.folder)


if __name__ == "__main__":
    raise SystemExit(main())
