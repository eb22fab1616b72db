"""Numbers go from Arrow to numpy and back over the same memory, and without pandas."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

from icesql.errors import InternalError
from icesql.read.columns.numbers import from_numbers, to_numbers
from tests.processes import ran

TYPES = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
    pa.uint64(), pa.float32(), pa.float64(),
]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_numbers_and_back(kind: pa.DataType) -> None:
    array = pa.array([0, 1, 2, 100, 127], kind)
    for part in (array, array.slice(1), array.slice(2, 2), array.slice(5), pa.array([], kind)):
        numbers = to_numbers(part)
        assert numbers.dtype == np.asarray(part).dtype
        assert numbers.tolist() == part.to_pylist()
        assert from_numbers(numbers).equals(part)
    assert from_numbers(to_numbers(array)[::2]).to_pylist() == [0, 2, 127]


def test_null_is_no_number() -> None:
    array = pa.array([1, None, 3])
    with pytest.raises(InternalError, match="1 are NULL"):
        to_numbers(array)
    assert to_numbers(array.slice(2)).tolist() == [3]


WRITES = """
import sys, icesql
con = icesql.connect(warehouse=sys.argv[1])
con.execute("CREATE SCHEMA s")
rows = "SELECT n, DATE '2024-01-01' + n::int AS d, 'text' AS t, n / 7 AS x FROM range(100) r(n)"
con.execute(f"CREATE TABLE s.t PARTITIONED BY (months(d)) AS {rows}")
con.execute(f"INSERT INTO s.t {rows}")
con.execute(f"CREATE TABLE s.u AS {rows}")
con.execute(f"INSERT INTO s.u {rows}")
for table in "tu":
    con.execute(
        f"CALL system.rewrite_data_files('s.{table}', options => map('rewrite-all', 'true'))"
    )
assert "pandas" not in sys.modules
"""


def test_writing_imports_no_pandas(tmp_path) -> None:
    pytest.importorskip("pandas")
    done = ran([sys.executable, "-c", WRITES, str(tmp_path)], timeout=600)
    assert done.returncode == 0, done.stderr
