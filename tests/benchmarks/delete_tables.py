"""Tables with deletes for the benchmark: lineitem with each kind, and a stream of upserts."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.tpch import environment
from tests.writer.metrics import metrics
from tests.writer.table import TableWriter, arrow_schema

DATA_FILES = 4
DELETE_FILES = 4
UPSERT_ROWS = 2_000


@dataclass(frozen=True)
class Case:
    """A table, the query on it, and the same by DuckDB alone ({data}, {deletes}: lists of paths)."""

    metadata: str
    query: str
    data: list[str]
    deletes: list[str]
    bare: str

    def bare_sql(self) -> str:
        return self.bare.format(data=_list(self.data), deletes=_list(self.deletes))


def _list(paths: list[str]) -> str:
    return "[" + ", ".join(f"'{path}'" for path in paths) + "]"


SUM = "SELECT sum(l_extendedprice) FROM t"
NO_DELETES = "SELECT sum(l_extendedprice) FROM read_parquet({data})"
BY_POSITION = (
    "SELECT sum(l_extendedprice) FROM read_parquet({data}, filename = true, file_row_number = true)"
    " AS f ANTI JOIN read_parquet({deletes}) AS d"
    " ON f.filename = d.file_path AND f.file_row_number = d.pos"
)


def by_keys(*names: str) -> str:
    conditions = " AND ".join(f"f.{name} IS NOT DISTINCT FROM d.{name}" for name in names)
    return (
        "SELECT sum(l_extendedprice) FROM read_parquet({data}) AS f"
        f" ANTI JOIN read_parquet({{deletes}}) AS d ON {conditions}"
    )


def lineitem_cases(cache: Path, scale: float) -> dict[str, Case]:
    """The cases on lineitem, made once below ``cache``."""
    folder = cache / f"deletes-{scale:g}"
    described = folder / "cases.json"
    if not described.exists():
        made = _make(folder, cache, scale)
        described.write_text(json.dumps({name: vars(case) for name, case in made.items()}))
    return {name: Case(**case) for name, case in json.loads(described.read_text()).items()}


def _make(folder: Path, cache: Path, scale: float) -> dict[str, Case]:
    rows = _lineitem(cache, scale)
    fields = [
        {"id": number, "name": column.name, "required": False, "type": _json_type(column.type)}
        for number, column in enumerate(rows.schema, 1)
    ]
    files = _data_files(folder / "lineitem", fields, rows)
    chance = np.random.default_rng(7)
    orders = np.unique(rows.column("l_orderkey").to_numpy())
    few = np.sort(chance.choice(orders, len(orders) // 100, replace=False))
    many = np.concatenate([orders, orders[-1] + 1 + np.arange(len(orders))])
    many = chance.choice(many, int(1_000_000 * scale), replace=False)
    deleted = [
        np.sort(chance.choice(count, count // 100, replace=False)) for _, count, _, _ in files
    ]
    lines = chance.choice(rows.num_rows, rows.num_rows // 100, replace=False)
    pairs = rows.select(["l_orderkey", "l_linenumber"]).take(pa.array(np.sort(lines)))
    cases: dict[str, Case] = {}

    def case(name: str, bare: str, version: int, deletes: Any, paths: list[str] | None) -> None:
        table = TableWriter(str(folder / name.replace(" ", "-")), fields, version=version)
        data = [
            table.existing_file(path, path, count, counts=counts, split_offsets=offsets)
            for path, count, counts, offsets in files
        ]
        table.commit(data)
        written = deletes(table, data)
        if written:
            table.commit(written)
        paths = [each.record["file_path"] for each in written] if paths is None else paths
        data_paths = [each.record["file_path"] for each in data]
        cases[name] = Case(table.metadata_path, SUM, data_paths, paths, bare)

    def positions(table: TableWriter, data: list[Any]) -> list[Any]:
        return [
            table.position_deletes([(each, int(row)) for row in rows_of])
            for each, rows_of in zip(data, deleted, strict=True)
        ]

    def vectors(table: TableWriter, data: list[Any]) -> list[Any]:
        return table.deletion_vectors(
            [(each, rows_of.tolist()) for each, rows_of in zip(data, deleted, strict=True)]
        )

    def keys(table: TableWriter, values: pa.Table, ids: list[int]) -> list[Any]:
        size = -(-values.num_rows // DELETE_FILES)
        used = [field for field in fields if field["id"] in ids]
        values = values.cast(arrow_schema(used))
        return [
            table.equality_deletes(values.slice(start, size), ids)
            for start in range(0, values.num_rows, size)
        ]

    case("no deletes", NO_DELETES, 2, lambda table, data: [], [])
    case("positions", BY_POSITION, 2, positions, None)
    case("vectors", BY_POSITION, 3, vectors, cases["positions"].deletes)
    case(
        "few keys",
        by_keys("l_orderkey"),
        2,
        lambda table, data: keys(table, pa.table({"l_orderkey": few}), [1]),
        None,
    )
    case(
        "many keys",
        by_keys("l_orderkey"),
        2,
        lambda table, data: keys(table, pa.table({"l_orderkey": many}), [1]),
        None,
    )
    case(
        "two columns",
        by_keys("l_orderkey", "l_linenumber"),
        2,
        lambda table, data: keys(table, pairs, [1, 4]),
        None,
    )
    return cases


def _lineitem(cache: Path, scale: float) -> pa.Table:
    raw = cache / f"lineitem-{scale:g}"
    if not raw.exists():
        python = environment(cache / "env-tpchgen", "tpchgen-cli")
        command = [python.with_name("tpchgen-cli"), "parquet", "-s", f"{scale:g}"]
        subprocess.run([*command, "--tables=lineitem", f"--output-dir={raw}"], check=True)
    rows = pq.read_table(raw / "lineitem.parquet")
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return rows.cast(pa.schema([f.with_type(plain.get(f.type, f.type)) for f in rows.schema]))


def _json_type(arrow: pa.DataType) -> str:
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision}, {arrow.scale})"
    names = {
        pa.int64(): "long",
        pa.int32(): "int",
        pa.string(): "string",
        pa.date32(): "date",
    }
    return names[arrow]


def _data_files(folder: Path, fields: list[Any], rows: pa.Table) -> list[Any]:
    """(path, rows, metrics, split offsets) of the data files, which all tables share."""
    table = TableWriter(str(folder), fields)
    size = -(-rows.num_rows // DATA_FILES)
    found = []
    for start in range(0, rows.num_rows, size):
        part = rows.slice(start, size).cast(arrow_schema(fields))
        written = table.data_file(part, stats=False)
        path = written.record["file_path"]
        found.append((path, part.num_rows, _metrics(fields, part), written.record["split_offsets"]))
    return found


def _metrics(fields: list[Any], part: pa.Table) -> dict[str, Any]:
    import pyarrow.compute as pc

    ends = pa.table(
        [
            pa.array([pc.min(column).as_py(), pc.max(column).as_py()], column.type)
            for column in part.columns
        ],
        schema=part.schema,
    )
    found = metrics(fields, ends)
    found["value_counts"] = dict.fromkeys(found["value_counts"], part.num_rows)
    return found


def upsert_stream(cache: Path, commits: int) -> tuple[str, int]:
    """A table as a stream leaves it, and its number of rows: each commit replaces some keys."""
    folder = cache / f"upserts-{commits}"
    described = folder / "rows.json"
    if described.exists():
        metadata, count = json.loads(described.read_text())
        return metadata, count
    fields = [
        {"id": 1, "name": "k", "required": True, "type": "long"},
        {"id": 2, "name": "v", "required": False, "type": "long"},
    ]
    table = TableWriter(str(folder), fields)
    chance = np.random.default_rng(7)
    added, seen = [], np.empty(0, np.int64)
    for number in range(1, commits + 1):
        keys = np.sort(chance.choice(UPSERT_ROWS * 10, UPSERT_ROWS, replace=False))
        data = pa.table([keys, np.full(len(keys), number)], schema=arrow_schema(fields))
        deletes = pa.table([keys], schema=arrow_schema(fields[:1]))
        for each in (table.data_file(data), table.equality_deletes(deletes, [1])):
            # The layout of many commits without the time to write them.
            each.sequence_number = number
            added.append(each)
        seen = np.union1d(seen, keys)
    table.sequence = commits - 1
    table.commit(added)
    described.write_text(json.dumps([table.metadata_path, len(seen)]))
    return table.metadata_path, len(seen)


def ten_million_keys(cache: Path, scale: float) -> str:
    """lineitem with ten million keys in ten delete files; its metadata file."""
    case = lineitem_cases(cache, scale)["no deletes"]
    folder = cache / f"deletes-{scale:g}" / "ten-million-keys"
    described = folder / "metadata.json"
    if described.exists():
        return str(json.loads(described.read_text()))
    fields = [
        {"id": 1, "name": "l_orderkey", "required": False, "type": "long"},
        {"id": 6, "name": "l_extendedprice", "required": False, "type": "decimal(15, 2)"},
    ]
    table = TableWriter(str(folder), fields)
    table.commit(
        [table.existing_file(path, path, pq.read_metadata(path).num_rows) for path in case.data]
    )
    keys = np.random.default_rng(7).permutation(10_000_000) * 2
    schema = arrow_schema(fields[:1])
    table.commit(
        [
            table.existing_file(
                *_key_file(table, pa.table([part], schema=schema)),
                len(part),
                content=2,
                equality_ids=[1],
            )
            for part in np.split(keys, 10)
        ]
    )
    described.write_text(json.dumps(table.metadata_path))
    return table.metadata_path


def _key_file(table: TableWriter, rows: pa.Table) -> tuple[str, str]:
    opened, recorded = table._path("parquet")
    pq.write_table(rows, opened)
    return opened, recorded
