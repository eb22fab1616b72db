"""Rows are counted from metadata exactly or not at all."""

from __future__ import annotations

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE
from icesql.scan.pruning.metadata_count import count_rows
from tests.scan.metadata_only import (
    DELETED,
    EXISTING,
    MetadataOnly,
    data_file,
    id_is,
    position_deletes,
    scan_of,
)
from tests.scan.test_planner import remembering


def counted(built: MetadataOnly) -> int | None:
    return count_rows(scan_of(built.table()), QueryContext())


def test_the_manifest_list_is_enough(tmp_path) -> None:
    built = MetadataOnly(tmp_path)
    built.manifest(
        data_file("a", record_count=3),
        data_file("b", record_count=4, status=EXISTING, sequence_number=1),
        data_file("gone", record_count=100, status=DELETED, sequence_number=1),
    )
    built.manifest(data_file("c", record_count=5))
    table, read = remembering(built.table())
    assert count_rows(scan_of(table), QueryContext()) == 12
    assert len(read) == 1


def test_files_are_asked_where_the_list_does_not_know(tmp_path) -> None:
    for number, listed in enumerate(
        [{"added_rows_count": -1}, {"added_rows_count": 0}, {"existing_rows_count": -1}]
    ):
        built = MetadataOnly(tmp_path / str(number))
        built.manifest(
            data_file("a", record_count=3),
            data_file("gone", record_count=9, status=DELETED, sequence_number=1),
            **listed,
        )
        built.manifest(data_file("b", record_count=5))
        assert counted(built) == 8


def test_v1_lists_without_counts_are_no_obstacle(tmp_path) -> None:
    built = MetadataOnly(tmp_path, version=1)
    unknown = {
        f"{kind}_{what}_count": None
        for kind in ("added", "existing", "deleted")
        for what in ("files", "rows")
    }
    built.manifest(data_file("a", record_count=3), data_file("b", record_count=4), **unknown)
    assert counted(built) == 7


def test_an_unknown_row_count_of_a_file_gives_no_answer(tmp_path) -> None:
    for version in (1, 2):
        built = MetadataOnly(tmp_path / str(version), version=version)
        # In the list's sum the unknown of the one hides behind the rows of the other.
        built.manifest(
            data_file("a", record_count=-1),
            data_file("b", record_count=5),
            min_sequence_number=0,
        )
        assert counted(built) is None


def test_live_deletes_give_no_answer_and_removed_ones_do(tmp_path) -> None:
    built = MetadataOnly(tmp_path)
    built.manifest(data_file("a"))
    built.manifest(position_deletes("p", status=DELETED, sequence_number=1), sequence_number=2)
    assert counted(built) == 10
    built.manifest(position_deletes("q"), sequence_number=3)
    assert counted(built) is None


def test_filters_and_limits_give_no_answer(tmp_path) -> None:
    built = MetadataOnly(tmp_path)
    built.manifest(data_file("a"))
    table = built.table()
    assert count_rows(scan_of(table, id_is(5)), QueryContext()) is None
    assert count_rows(scan_of(table, limit=3), QueryContext()) is None
    assert count_rows(scan_of(table, ALWAYS_FALSE), QueryContext()) == 0


def test_a_table_without_a_snapshot_has_no_rows(tmp_path) -> None:
    built = MetadataOnly(tmp_path)
    built.manifest(data_file("a"))
    assert count_rows(replace(scan_of(built.table()), snapshot=None), QueryContext()) == 0


def test_a_file_that_is_listed_twice_is_left_to_planning(tmp_path) -> None:
    built = MetadataOnly(tmp_path, version=1)
    built.manifest(data_file("a", record_count=3), added_rows_count=None)
    built.manifest(data_file("a", record_count=3), added_rows_count=None)
    assert counted(built) is None
