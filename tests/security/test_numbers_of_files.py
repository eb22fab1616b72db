"""Numbers of files that no file has, in manifests: statements end, with rows or errors of icesql.

They run in a process with a limit of its address space.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.maintain.rewrite.tables import new_table, rows
from tests.warm import python

STATEMENTS = (
    "SELECT count(*) FROM ns.t",
    "SELECT * FROM ns.t WHERE id > 3",
    "EXPLAIN SELECT * FROM ns.t WHERE id > 3",
    "SELECT * FROM ns.t.files",
    "EXPLAIN CALL system.rewrite_data_files('ns.t', options => map('rewrite-all', 'true'))",
    "CALL system.rewrite_manifests('ns.t')",
    "DELETE FROM ns.t WHERE id = 5",
    "UPDATE ns.t SET p = 'x' WHERE id = 2",
    "MERGE INTO ns.t USING (SELECT 6 AS i) s ON id = s.i WHEN MATCHED THEN DELETE",
    "CALL system.convert_equality_deletes('ns.t')",
    "CALL system.rewrite_position_delete_files('ns.t', options => map('rewrite-all', 'true'))",
    "CALL system.rewrite_data_files('ns.t', options => map('rewrite-all', 'true'))",
)
RUN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import icesql
with icesql.connect(warehouse=sys.argv[1]) as con:
    for text in sys.argv[2:]:
        try:
            con.execute(text).fetchall()
        except icesql.Error as error:
            assert not isinstance(error, icesql.InternalError), error
    assert con.doctor("ns.t").findings is not None
    assert con.maintain(["ns.t"]).tables[0].status in ("done", "nothing", "damaged")
    assert con.execute("SELECT count(id) FROM ns.t").fetchall() in ([(6,)], [(7,)])
"""


def table_of(folder: Path, version: int, field: str, number: int, *, of_deletes: bool) -> Any:
    """Ten rows, of which 4 and 7 are deleted; the files of data or of deletes say the number."""
    table = new_table(folder, version)
    data = table.data_file(rows(0, 10))
    positions = (
        table.deletion_vectors([(data, [4])])
        if version > 2
        else [table.position_deletes([(data, 4)])]
    )
    deletes = [*positions, table.equality_deletes([{"id": 7}], [1])]
    for each in deletes if of_deletes else [data]:
        each.record[field] = number
        each.record["split_offsets"] = None
    table.commit([data])
    table.commit(deletes)
    return table


@pytest.mark.parametrize("of_deletes", [False, True], ids=["data", "deletes"])
@pytest.mark.parametrize("field", ["record_count", "file_size_in_bytes"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_number_that_no_file_has(
    tmp_path: Path, version: int, field: str, of_deletes: bool
) -> None:
    # Both signs with each two of the others.
    number = 1 << 61 if (version > 2) ^ (field == "record_count") ^ of_deletes else -(1 << 61)
    table = table_of(tmp_path, version, field, number, of_deletes=of_deletes)
    warehouse = str(Path(table.folder).parents[1])
    done = python(RUN, warehouse, *STATEMENTS)
    assert done.returncode == 0, done.stderr[-2000:]
