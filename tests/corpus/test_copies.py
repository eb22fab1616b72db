"""Copies of tables that other systems wrote give the answers that their publishers state."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from icesql import errors
from icesql.catalog.open import open_table
from icesql.context import QueryContext
from icesql.maintain.relocation.copy import CopyRequest, copy_table
from tests.corpus.test_check import CASES, _With, check, each_table

__all__ = ["check"]  # a fixture

# No Python library writes ORC with field ids; of the others old snapshots have no files any more.
REFUSED = {
    "impala/hadoop_catalog/ice/iceberg_v2_positional_delete_all_rows_orc": "deletes of format ORC",
    "duckdb-iceberg/equality_deletes/warehouse/mydb/mytable": "no such file",
    "pg_lake/iceberg/sample_tables/public/spark_generated_iceberg_test_2": "no such file",
}


@each_table
def test_a_copy_gives_the_same_answers(
    check: ModuleType, corpus: Path, table: str, tmp_path: Path
) -> None:
    copies: dict[str, str] = {}
    problems = []
    for number, case in enumerate(CASES[table]):
        metadata = case["metadata"]
        if metadata not in copies:
            source = open_table(corpus / metadata)
            request = CopyRequest(str(tmp_path / str(number)))
            if table in REFUSED:
                with pytest.raises(errors.Error, match=REFUSED[table]):
                    copy_table(source, request, QueryContext())
                return
            copies[metadata] = copy_table(source, request, QueryContext()).metadata_location
        outcome, detail = check.run_case(
            _With("auto"), {**case, "metadata": copies[metadata]}, Path("/"), "local"
        )
        if outcome != "pass":
            problems.append(f"{case['id']} {outcome}: {case['sql']} | {detail}")
    assert problems == []
