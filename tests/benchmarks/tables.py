"""The tables of the benchmarks: warehouses in folders, written once by icesql from statements."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from process import Side, environment

from tests.tables import read_table

CACHE = Path(tempfile.gettempdir()) / "icesql-benchmarks"
NAMESPACE = "s"
DUCKDB = "1.5.5"  # the release whose extensions PyPI has


def once(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, made at the first call; nothing is left of a call that was interrupted."""
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        (folder / "done").touch()
    return folder


def warehouse(folder: Path, statements: Iterable[str]) -> Path:
    """A folder with the tables that these statements make, in the namespace ``s``."""

    def make(folder: Path) -> None:
        with connected(folder) as connection:
            for each in statements:
                connection.execute(each)

    return once(folder, make)


@contextmanager
def connected(folder: Path) -> Iterator[Any]:
    import icesql

    with icesql.connect(warehouse=str(folder), files=True) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {NAMESPACE}")
        connection.execute(f"USE {NAMESPACE}")
        yield connection


def described(folder: Path) -> dict[str, Any]:
    """A warehouse as sides are told of it: the metadata file and the files of each table."""
    with connected(folder) as connection:
        names = [name.partition(".")[2] for (name,) in connection.execute(f"SHOW TABLES FROM {NAMESPACE}").fetchall()]  # fmt: skip

        def column(sql: str) -> list[Any]:
            return [str(row[0]) for row in connection.execute(sql).fetchall()]

        tables = {
            name: {
                "metadata": column(f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp")[-1],
                "files": sorted(column(f"SELECT file_path FROM {name}.data_files")),
                "deletes": sorted(column(f"SELECT file_path FROM {name}.delete_files")),
            }
            for name in names
        }  # fmt: skip
    return {"warehouse": str(folder), "namespace": NAMESPACE, "tables": tables}


@contextmanager
def restored(folder: Path) -> Iterator[None]:
    """The files as they were before, so that each run begins with the same table."""
    before = set(folder.rglob("*"))
    hints = {each: each.read_bytes() for each in folder.rglob("version-hint.text")}
    try:
        yield
    finally:
        for each in sorted(set(folder.rglob("*")) - before, reverse=True):
            each.rmdir() if each.is_dir() else each.unlink()
        for path, text in hints.items():
            path.write_bytes(text)


# ------------------------------------------------------------------ TPC-H and TPC-DS


def raw(cache: Path, name: str, scale: float) -> Path:
    """A folder with the Parquet files and the queries of ``tpch`` or ``tpcds``."""

    def make(folder: Path) -> None:
        named = (f"duckdb=={DUCKDB}", f"duckdb-extension-{name}=={DUCKDB}")
        python = environment(cache / f"env-{name}", *named)
        side = Side("engines:generated", {}, python=python, seconds=3600)
        made = side(str(folder), name, scale)
        side.end()
        if made is None or "error" in made:
            raise RuntimeError(f"{name} is not made: {made}")

    return once(cache / f"{name}-raw-{scale:g}", make)


def suite(cache: Path, name: str, scale: float) -> tuple[Path, dict[str, str]]:
    """The warehouse of ``tpch`` or ``tpcds``, and its queries by number."""
    source = raw(cache, name, scale)
    queries = json.loads((source / "queries.json").read_text())
    statements = (
        f"CREATE TABLE {each.stem} TBLPROPERTIES ('write.target-file-size-bytes' = '{128 << 20}') "
        f"AS SELECT * FROM '{each}'"
        for each in sorted(source.glob("*.parquet"))
    )
    folder = warehouse(cache / f"{name}-{scale:g}", statements)
    return folder, {f"q{number}": queries[number] for number in sorted(queries, key=int)}


# ------------------------------------------------------------------ what users have

_MADE = read_table(__file__, "made.tsv")
(EVENTS,) = (text for name, _, text in _MADE if name == "events")  # 800 files of 5,000 rows


def user_statements(lineitem: Path) -> Iterator[str]:
    """Many small files, months, wide, nested, strings, evolved, small."""
    wide = ", ".join(f"(hash(i, {n}) % {1 << n % 20 + 4})::BIGINT AS c{n:03}" for n in range(500))
    for name, rows, text in _MADE:
        filled = text.replace("{lineitem}", str(lineitem)).replace("{wide}", wide)
        if rows == "-":
            yield filled
            continue
        for part in range(4):
            begin = f"INSERT INTO {name}" if part else f"CREATE TABLE {name} AS"
            low = part * int(rows)
            yield f"{begin} SELECT {filled} FROM range({low}, {low + int(rows)}) r(i)"


# ------------------------------------------------------------------ deletes

GONE = "hash(l_orderkey, l_linenumber) % 100 = 7"
# The format version, whether rows are deleted by position, and the keys whose rows are deleted.
KINDS = {
    "plain": (2, False, ""),
    "positions": (2, True, ""),
    "vectors": (3, True, ""),
    "keys": (2, False, "SELECT 800 * i AS l_orderkey FROM range({keys} // 100) r(i)"),
    "keys_v3": (3, False, "SELECT 800 * i AS l_orderkey FROM range({keys} // 100) r(i)"),
    "many_keys": (2, False, "SELECT 8 * i AS l_orderkey FROM range({keys}) r(i)"),
    "mixed": (
        2,
        True,
        "SELECT l_orderkey, l_linenumber FROM '{source}' WHERE hash(l_partkey) % 100 = 7",
    ),
}


def deleted(cache: Path, scale: float, files: int) -> Path:
    """lineitem with deletes of each kind, in so many files, and a small table ``warm``."""
    source = raw(cache, "tpch", scale) / "lineitem.parquet"
    size = max(source.stat().st_size // files, 20_000)

    def make(folder: Path) -> None:
        with connected(folder) as connection:
            for name, (version, by_position, keys) in {**KINDS, "warm": KINDS["mixed"]}.items():
                connection.execute(
                    f"CREATE TABLE {name} TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', "
                    f"'format-version' = '{version}', 'write.target-file-size-bytes' = '{size}') "
                    f"AS SELECT * FROM '{source}'" + " LIMIT 20000" * (name == "warm")
                )
                if by_position:
                    connection.execute(f"DELETE FROM {name} WHERE {GONE}")
                if keys:
                    text = keys.format(source=source, keys=int(1_000_000 * scale))
                    delete_keys(connection, folder, name, text)
                larger = f"'write.target-file-size-bytes' = '{512 << 20}'"
                connection.execute(f"ALTER TABLE {name} SET TBLPROPERTIES ({larger})")

    return once(cache / f"deletes-{scale:g}-{files}", make)


def delete_keys(connection: Any, folder: Path, name: str, sql: str) -> None:
    """Commit an equality delete file of the rows of a query."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from icesql.catalog.directory import DirectoryCatalog
    from icesql.commit.rows import commit_row_delta
    from icesql.iceberg.manifest.data_file import DataFile, FileContent

    catalog = DirectoryCatalog(str(folder))
    table = catalog.load((NAMESPACE, name))
    ids = {each.name: each.field_id for each in table.metadata.schema.fields}
    rows = connection.execute(sql).arrow()
    fields = [each.with_metadata({"PARQUET:field_id": str(ids[each.name])}) for each in rows.schema]
    path = Path(table.metadata.location) / "data" / f"keys-{len(table.metadata.snapshots)}.parquet"
    pq.write_table(rows.cast(pa.schema(fields)), path)
    file = DataFile(
        FileContent.EQUALITY_DELETES, str(path), "PARQUET", 0, (), len(rows), path.stat().st_size,
        equality_ids=tuple(ids[each.name] for each in rows.schema),
    )  # fmt: skip
    start = table.metadata.current_snapshot_id
    commit_row_delta(catalog, table, deletes=[file], start_id=start, command="delete")


# ------------------------------------------------------------------ metadata alone

FILES_OF_DAY, ROWS_OF_FILE, FIRST_DAY, MICROS_OF_DAY = 100, 10_000, 19_000, 86_400_000_000


def large(cache: Path, files: int, columns: int) -> Path:
    """A warehouse whose table ``t`` has so many data files in its metadata, and none on disk."""
    kinds = ["BIGINT", "TIMESTAMP", *(["BIGINT", "DOUBLE", "VARCHAR"] * columns)][:columns]
    names = ["id", "ts", *(f"c{number}" for number in range(2, columns))]

    def make(folder: Path) -> None:
        from icesql.catalog.directory import DirectoryCatalog
        from icesql.commit.rows import commit_append

        listed = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
        with connected(folder) as connection:
            connection.execute(
                f"CREATE TABLE t ({listed}) PARTITIONED BY (days(ts)) TBLPROPERTIES "
                f"('commit.manifest.target-size-bytes' = '{8 * 1024 * columns}')"
            )
        catalog = DirectoryCatalog(str(folder))
        table = catalog.load((NAMESPACE, "t"))
        place = f"{table.metadata.location}/data"
        commit_append(catalog, table, [_listed_file(place, each, kinds) for each in range(files)])

    return once(cache / f"large-{files}-{columns}", make)


def _listed_file(place: str, number: int, kinds: list[str]) -> Any:
    from icesql.iceberg.manifest.data_file import DataFile, FileContent

    day = FIRST_DAY + number // FILES_OF_DAY
    micros = day * MICROS_OF_DAY + number % FILES_OF_DAY * 864_000_000
    bounds = []
    for end in (0, 1):
        first = (number + end) * ROWS_OF_FILE - end
        values = {1: struct.pack("<q", first), 2: struct.pack("<q", micros + end * 863_999_999)}
        for column, kind in enumerate(kinds[2:], 3):
            value = end * 1_000_000 + number * column % 1009
            if kind == "VARCHAR":
                values[column] = f"name{end}-{value:08}"[:16].encode()
            else:
                values[column] = struct.pack("<q" if kind == "BIGINT" else "<d", value)
        bounds.append(values)
    size, ids = 30_000_000 + number % 977, range(1, len(kinds) + 1)
    return DataFile(
        FileContent.DATA, f"{place}/ts_day={day}/{number:05}.parquet", "PARQUET", 0, (day,),
        ROWS_OF_FILE, size, column_sizes={each: size // 20 + each * 37 for each in ids},
        value_counts=dict.fromkeys(ids, ROWS_OF_FILE), split_offsets=(4,), sort_order_id=0,
        null_value_counts={each: (number + each) % 3 for each in ids},
        nan_value_counts={n: 0 for n, kind in enumerate(kinds, 1) if kind == "DOUBLE"},
        lower_bounds=bounds[0], upper_bounds=bounds[1],
    )  # fmt: skip
