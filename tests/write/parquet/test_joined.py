"""Row groups encoded apart and joined are, byte for byte, what one writer of the library makes."""

import io
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icesql.iceberg.schema import Schema
from icesql.storage.open import Storage
from icesql.write.metrics import metrics_modes
from icesql.write.options import WriteOptions
from icesql.write.parquet_file import FileShape, ParquetFile, writer_arguments
from icesql.write.rolling_files import Encoders, RollingFiles
from tests.columns import columns

SCHEMA = Schema(
    columns(
        "1 id long!, 2 name string, 3 price decimal(30, 3), 4 share double, 5 tags list<6 string>, 7 nothing int, 8 point struct<9 x float, 10 y date>"
    )
)
SHAPES = {
    "zstd": WriteOptions(codec="zstd"),
    "uncompressed, small pages": WriteOptions(codec="none", page_size=1000, page_rows=700),
    "bloom filters": WriteOptions(codec="snappy", bloom_filters={"id": 0.01, "name": 0.1}),
    "no statistics": WriteOptions(codec="gzip", without_statistics=("id", "name")),
    "no dictionary": WriteOptions(codec="zstd", without_dictionary=("name",)),
}


def shape_of(options: WriteOptions, told: dict[str, str] | None = None) -> FileShape:
    return FileShape(SCHEMA, metrics_modes(SCHEMA, {}, ()), options, told)


def rows(start: int, count: int, shape: FileShape) -> pa.Table:
    def some(make: object, step: int) -> list[object]:
        return [None if n % step == 0 else make(n) for n in range(start, start + count)]  # type: ignore[operator]

    columns = [
        [*range(start, start + count)],
        some(lambda n: f"name {n % 97}", 11),
        some(lambda n: Decimal(n * 7919) / 1000, 5),
        some(lambda n: float("nan") if n % 13 == 0 else n / 7, 3),
        some(lambda n: [f"t{n % 5}"] * (n % 4), 9),
        [None] * count,
        some(lambda n: {"x": n / 2, "y": n % 1000}, 17),
    ]
    arrays = []
    for values, field in zip(columns, shape.arrow, strict=True):
        if field.name == "point":
            ints = pa.struct([field.type.field(0), pa.field("y", pa.int32())])
            made = pa.array(values, ints)
            y = made.field(1).cast(pa.date32())
            kinds = [field.type.field(0), field.type.field(1)]
            arrays.append(
                pa.StructArray.from_arrays([made.field(0), y], fields=kinds, mask=made.is_null())
            )
        else:
            arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=shape.arrow)


def by_one_writer(shape: FileShape, tables: list[pa.Table]) -> bytes:
    sink = io.BytesIO()
    most = max((each.num_rows for each in tables), default=0)
    with pq.ParquetWriter(
        sink, shape.arrow, **writer_arguments(shape, frozenset(), most)
    ) as writer:
        if shape.key_values:
            writer.add_key_value_metadata(dict(shape.key_values))
        for each in tables:
            writer.write_table(each, row_group_size=each.num_rows)
    return sink.getvalue()


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("counts", [(), (1,), (3000,), (3000, 1600), (1,) * 20, (500,) * 3])
def test_a_file_is_what_one_writer_makes(tmp_path, name: str, counts: tuple[int, ...]) -> None:
    shape = shape_of(SHAPES[name], {"told": "1"} if len(counts) == 3 else None)
    tables = [rows(sum(counts[:n]), count, shape) for n, count in enumerate(counts)]
    path = tmp_path / "x.parquet"
    file = ParquetFile(Storage(), str(path), shape)
    for each in tables:
        file.write(each)
    written = file.finish()
    assert path.read_bytes() == by_one_writer(shape, tables)
    assert written.size == path.stat().st_size
    assert written.rows == sum(counts)
    footer = pq.read_metadata(path)
    starts = [footer.row_group(n).column(0) for n in range(footer.num_row_groups)]
    assert written.metrics.split_offsets == tuple(
        each.dictionary_page_offset or each.data_page_offset for each in starts
    )


class Patient(int):
    """A number that fails where a loop compares with it and nothing changes."""

    patience = 1000

    def __le__(self, other: int) -> bool:
        self.patience -= 1
        assert self.patience
        return int(self) <= other


@pytest.mark.parametrize("at_once", [1, 4])
def test_rows_keep_their_order_and_files_their_size(tmp_path, at_once: int) -> None:
    """Files end in the middle of the row groups that are encoded at once."""
    shape = shape_of(WriteOptions(codec="zstd", target_file_size=150_000))
    names = (f"{tmp_path}/{number}.parquet" for number in range(1000))
    with ThreadPoolExecutor(4) as threads:
        files = RollingFiles(
            Storage(), shape, lambda: next(names), Encoders(threads, Patient(at_once))
        )
        for start in range(0, 60_000, 3000):
            files.write(rows(start, 3000, shape))
        files.end_file()
    found = [each for one in files.written for each in pq.read_table(one.path)["id"].to_pylist()]
    assert found == [*range(60_000)]
    assert len(files.written) > 1
    sizes = [each.size for each in files.written]
    assert all(150_000 <= each < 300_000 for each in sizes[:-1]), sizes
    assert max(pq.read_metadata(each.path).num_row_groups for each in files.written) > 1


def test_what_fails_while_it_is_encoded_leaves_no_file(tmp_path) -> None:
    shape = shape_of(WriteOptions(codec="zstd"))
    with ThreadPoolExecutor(2) as threads:
        files = RollingFiles(
            Storage(), shape, lambda: f"{tmp_path}/x.parquet", Encoders(threads, 2)
        )
        files.write(rows(0, 3000, shape))
        other = rows(0, 3000, shape)
        files.write(other.rename_columns([f"other {each}" for each in other.column_names]))
        with pytest.raises(ValueError, match="schema does not match"):
            files.end_file()
        files.abandon()
    assert not [*tmp_path.iterdir()]
