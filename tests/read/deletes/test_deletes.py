"""Position deletes, equality deletes and how they combine, on rows worked out by hand."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import DELETED, POS
from icesql.iceberg.types import PrimitiveType
from icesql.read.deletes.scan_deletes import DeleteRelations
from icesql.storage.open import Reroot, Storage
from tests.columns import array
from tests.read.read_tables import (
    context,
    data_file,
    equality_deletes,
    position_deletes,
    rows,
    schema_of,
    values,
    whole,
    write_parquet,
)
from tests.tables import read_table
from tests.writer import roaring

A = "1 a long"


def numbers(folder: Path, count: int = 10, *, rows_per_group: int = 3, **more: Any) -> DataFile:
    """A data file whose column 1 counts from 0."""
    path = write_parquet(folder, A, [list(range(count))], rows_per_group=rows_per_group)
    return data_file(path, **more)


def test_position_deletes_remove_rows_by_their_place_in_the_file(tmp_path) -> None:
    file = numbers(tmp_path)
    # Neither sorted nor distinct, and rows of another file beside them.
    deletes = position_deletes(
        tmp_path, [(file.path, 9), ("elsewhere", 1), (file.path, 0), (file.path, 9)]
    )
    assert values(A, whole(file, [deletes])) == [*range(1, 9)]


def test_several_position_delete_files_add_up(tmp_path) -> None:
    file = numbers(tmp_path)
    deletes = [position_deletes(tmp_path, [(file.path, place)]) for place in (1, 3, 5)]
    assert values(A, whole(file, deletes)) == [0, 2, 4, 6, 7, 8, 9]


def test_a_position_delete_counts_only_where_its_file_is_attached(tmp_path) -> None:
    one, two = numbers(tmp_path), numbers(tmp_path)
    deletes = position_deletes(tmp_path, [(one.path, 0), (two.path, 0)])
    assert values(A, whole(one, [deletes]), two) == [*range(1, 10), *range(10)]


def test_position_deletes_find_data_files_of_a_moved_table(tmp_path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "metadata").mkdir()
    file = numbers(tmp_path / "data")
    name = Path(file.path).name
    deletes = position_deletes(tmp_path / "data", [(f"hdfs://host:1/w/t/data/{name}", 4)])
    moved = replace(file, path=f"/w/t/data/{name}")
    scan = replace(context(A), storage=Storage(reroot=Reroot("/w/t", str(tmp_path))))
    task = replace(whole(file, [deletes]), data_file=moved)
    assert values(scan, task) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_position_deletes_find_a_file_whose_name_has_an_escape(tmp_path) -> None:
    file = numbers(tmp_path)
    odd = str(tmp_path / "x%20y.parquet")
    Path(file.path).rename(odd)
    deletes = position_deletes(tmp_path, [(f"file:{odd.replace('%', '%25')}", 4)])
    task = replace(whole(file, [deletes]), data_file=replace(file, path=odd))
    assert values(A, task) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_two_deletion_vectors_for_one_file_are_an_error(tmp_path) -> None:
    file = numbers(tmp_path)
    vectors = [
        replace(file, content=FileContent.POSITION_DELETES, file_format="PUFFIN", path=name)
        for name in ("a.puffin", "b.puffin")
    ]
    with pytest.raises(CorruptFileError, match="2 deletion vectors"):
        values(A, whole(file, vectors))


def deletion_vector(folder: Path, file: DataFile, positions: list[int]) -> DataFile:
    blob = roaring.deletion_vector(positions)
    path = folder / "vectors.puffin"
    path.write_bytes(b"PFA1" + blob)
    return data_file(
        str(path),
        file_format="PUFFIN",
        content=FileContent.POSITION_DELETES,
        record_count=len(positions),
        referenced_data_file=file.path,
        content_offset=4,
        content_size_in_bytes=len(blob),
    )


def test_a_deletion_vector_replaces_position_deletes(tmp_path) -> None:
    file = numbers(tmp_path)
    vector = deletion_vector(tmp_path, file, [2, 9])
    ignored = position_deletes(tmp_path, [(file.path, 0)])
    found = values(A, whole(file, [ignored, vector]))
    assert found == [0, 1, 3, 4, 5, 6, 7, 8]


def test_deleted_rows_are_marked_when_the_mark_is_asked_for(tmp_path) -> None:
    file = numbers(tmp_path, 4)
    deletes = [
        position_deletes(tmp_path, [(file.path, 1)]),
        equality_deletes(tmp_path, A, [[3]]),
    ]
    scan = context(A, projection=[POS, DELETED])
    assert [tuple(row.values()) for row in rows(scan, whole(file, deletes))] == [
        (0, False),
        (1, True),
        (2, False),
        (3, True),
    ]


# ------------------------------------------------------------------ equality deletes


def test_equality_deletes_need_a_strictly_greater_sequence_number(tmp_path) -> None:
    file = numbers(tmp_path, 3, sequence_number=5)
    same = equality_deletes(tmp_path, A, [[0]], sequence_number=5)
    later = equality_deletes(tmp_path, A, [[1]], sequence_number=6)
    assert values(A, whole(file, [same, later])) == [0, 2]


def test_the_greatest_sequence_number_of_a_key_decides(tmp_path) -> None:
    early = equality_deletes(tmp_path, A, [[1, 2]], sequence_number=2)
    late = equality_deletes(tmp_path, A, [[1]], sequence_number=9)
    old = numbers(tmp_path, 3, sequence_number=1)
    new = numbers(tmp_path, 3, sequence_number=4)
    found = values(A, whole(old, [early, late]), whole(new, [early, late]))
    assert found == [0, 0, 2]


@pytest.mark.parametrize(
    ("stored", "values", "deletes", "known", "wanted", "left"),
    [pytest.param(*each, id=name) for name, *each in read_table(__file__, "equality.tsv")],
)
def test_rows_with_the_keys_are_gone(
    tmp_path, stored: str, values: str, deletes: str, known: str, wanted: str, left: str
) -> None:
    def file_of(fields: str, texts: str) -> tuple[str, list[pa.Array]]:
        kinds = [each.type for each in schema_of(fields).fields]
        made = zip(kinds, literal_eval(texts), strict=True)
        return fields, [
            array(str(kind), each) if isinstance(kind, PrimitiveType) else each
            for kind, each in made
        ]

    path = write_parquet(tmp_path, *file_of(stored, values))
    parts = [each.split(": ", 2) for each in deletes.split("; ")]
    made = [
        equality_deletes(tmp_path, *file_of(fields, keys), literal_eval(ids))
        for ids, fields, keys in parts
    ]
    scan = context(known, projection=wanted, file_columns=known)
    found = rows(scan, whole(data_file(path), made))
    assert str([tuple(row.values()) for row in found]) == left


PARTITIONED = {
    0: PartitionSpec(0, (PartitionField((2,), 1000, "identity", "p"),)),
    1: PartitionSpec(1),
}


def test_partitioned_equality_deletes_stay_in_their_partition(tmp_path) -> None:
    scan = context("1 a long, 2 p long", projection=A, specs=PARTITIONED)
    one = numbers(tmp_path, 3, partition=(1,))
    two = numbers(tmp_path, 3, partition=(2,))
    in_one = equality_deletes(tmp_path, A, [[0]], partition=(1,))
    in_two = equality_deletes(tmp_path, A, [[2]], partition=(2,))
    found = values(scan, whole(one, [in_one]), whole(two, [in_two]))
    assert found == [1, 2, 0, 1]


def test_unpartitioned_equality_deletes_are_global(tmp_path) -> None:
    scan = context("1 a long, 2 p long", projection=A, specs=PARTITIONED)
    file = numbers(tmp_path, 3, partition=(1,))
    everywhere = equality_deletes(tmp_path, A, [[0]], spec_id=1)
    inside = equality_deletes(tmp_path, A, [[2]], partition=(1,))
    assert values(scan, whole(file, [everywhere, inside])) == [1]


def test_a_key_in_no_schema_and_a_key_of_a_list_are_refused(tmp_path) -> None:
    file = numbers(tmp_path)
    unknown = equality_deletes(tmp_path, A, [[1]], [77])
    with pytest.raises(CorruptFileError, match="equality field id 77"):
        values(A, whole(file, [unknown]))
    struct_key = equality_deletes(tmp_path, A, [[1]])
    with pytest.raises(UnsupportedTableError, match="equality deletes by column"):
        values("1 s struct<2 x long>", whole(file, [struct_key]))


def test_groups_offer_relations_for_an_engine(tmp_path) -> None:
    scan = context("1 a long, 2 p long", specs=PARTITIONED)
    file = numbers(tmp_path, 3, partition=(1,))
    deletes = [
        equality_deletes(tmp_path, A, [[7]], partition=(1,), sequence_number=3),
        equality_deletes(tmp_path, A, [[7, None]], partition=(2,), sequence_number=4),
        equality_deletes(tmp_path, A, [[8]], spec_id=1, sequence_number=5),
    ]
    relations = DeleteRelations(scan, [whole(file, deletes)], QueryContext())
    scoped, everywhere = relations.equality_groups
    assert everywhere.is_global
    assert pa.Table.from_batches(everywhere.batches()).to_pylist() == [
        {"c1": 8, "sequence_number": 5}
    ]
    assert pa.Table.from_batches(scoped.batches()).to_pylist() == [
        {"c1": 7, "partition": 0, "sequence_number": 3},
        {"c1": 7, "partition": 1, "sequence_number": 4},
        {"c1": None, "partition": 1, "sequence_number": 4},
    ]
    assert scoped.partition_of(file) == 0
    assert (scoped.field_ids, scoped.row_count) == ((1,), 3)


def test_spilled_keys_delete_the_same_rows(tmp_path) -> None:
    fields = "1 a long, 2 b string"
    random = np.random.default_rng(1)
    a = random.integers(0, 1000, 20_000)
    b = [None if i % 11 == 0 else "key" * (i % 40) for i in range(20_000)]
    path = write_parquet(tmp_path, fields, [a, b])
    keys_a, keys_b = random.integers(0, 1000, 5000), [b[i] for i in range(5000)]
    deletes = equality_deletes(tmp_path, fields, [keys_a, keys_b], [1, 2])
    one_key = equality_deletes(tmp_path, A, [list(range(100))])
    scan = context("1 a long, 2 b string")
    gone = set(zip(keys_a.tolist(), keys_b, strict=True))
    expected = [row for row in zip(a.tolist(), b, strict=True) if row not in gone and row[0] >= 100]
    assert 0 < len(expected) < 20_000
    for limit in (1, 1 << 30):
        settings = Settings(delete_memory_limit=limit, temp_directory=str(tmp_path / "spill"))
        task = whole(data_file(path), [deletes, one_key])
        found = rows(scan, task, query=QueryContext(settings=settings))
        assert [(row["a"], row["b"]) for row in found] == expected
    assert list((tmp_path / "spill").iterdir()) == []


# ------------------------------------------------------------------ delete files that are not right


def test_a_position_behind_the_last_row_deletes_nothing(tmp_path) -> None:
    file = numbers(tmp_path, 3)
    deletes = position_deletes(tmp_path, [(file.path, 1), (file.path, 3), (file.path, 1 << 40)])
    assert values(A, whole(file, [deletes])) == [0, 2]


def test_a_delete_file_bound_to_one_data_file_names_no_other(tmp_path) -> None:
    file = numbers(tmp_path, 3)
    deletes = position_deletes(tmp_path, [("elsewhere", 0)], referenced_data_file=file.path)
    with pytest.raises(CorruptFileError, match="'elsewhere'"):
        values(A, whole(file, [deletes]))


def test_an_equality_delete_file_without_its_key_column_is_an_error(tmp_path) -> None:
    file = numbers(tmp_path, 3)
    deletes = equality_deletes(tmp_path, "2 b long", [[1]], [1])
    with pytest.raises(CorruptFileError, match='equality column "a"') as raised:
        values("1 a long, 2 b long", whole(file, [deletes]))
    assert raised.value.path == deletes.path


def test_a_delete_file_of_fewer_rows_than_counted_is_an_error_but_of_more_is_not(
    tmp_path,
) -> None:
    file = numbers(tmp_path, 3)
    more = equality_deletes(tmp_path, A, [[0, 1]], record_count=1)
    fewer = equality_deletes(tmp_path, A, [[0, 1]], record_count=3)
    assert values(A, whole(file, [more])) == [2]
    with pytest.raises(CorruptFileError, match="holds 2 rows, the manifest counts 3"):
        values(A, whole(file, [fewer]))


def test_an_upsert_stream_reads_each_delete_file_once(tmp_path, monkeypatch) -> None:
    import icesql.read.deletes.equality_keys as equality_keys

    opened: list[str] = []
    genuine = equality_keys.open_reader

    def counting(file: DataFile, scan: Any) -> Any:
        opened.append(file.path)
        return genuine(file, scan)

    monkeypatch.setattr(equality_keys, "open_reader", counting)
    commits = 12
    files = [numbers(tmp_path, 5, sequence_number=n) for n in range(commits)]
    deletes = [
        equality_deletes(tmp_path, A, [[0, 1, 2]], sequence_number=n) for n in range(commits)
    ]
    tasks = [
        whole(file, [each for each in deletes if each.sequence_number > file.sequence_number])
        for file in files
    ]
    found = values(A, *tasks)
    assert found == [3, 4] * (commits - 1) + [0, 1, 2, 3, 4]
    assert sorted(opened) == sorted(each.path for each in deletes[1:])
