"""CALL system.rewrite_table_path: copying the files of its list gives a complete table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from tests.maintain.relocation.test_copy import change_metadata, history, metadata_rows
from tests.maintain.rewrite.tables import new_table, rows
from tests.maintain.rewrite.test_run import with_deletes

COLUMNS = [
    "latest_version", "file_list_location", "rewritten_manifest_file_paths_count",
    "rewritten_delete_file_paths_count",
]  # fmt: skip


def call(table: str, source: str, target: str, **given: str) -> tuple[Any, ...]:
    named = "".join(f", {name} => '{value}'" for name, value in given.items())
    with icesql.connect() as con:
        cursor = con.execute(
            f"CALL system.rewrite_table_path('{table}', source_prefix => '{source}', "
            f"target_prefix => '{target}'{named})"
        )
        assert [each[0] for each in cursor.description] == COLUMNS
        return cursor.fetchall()[0]


def carry_out(listed: str) -> list[str]:
    """Copy files by a list; return the new paths."""
    made = []
    for line in Path(listed).read_text().splitlines():
        one, other = line.split(",")
        Path(other).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(one, other)
        made.append(other)
    return made


def with_log(table: Any) -> None:
    """Add the earlier metadata files to the log of the current one."""
    folder = Path(table.folder) / "metadata"
    paths = [folder / f"v{each}.metadata.json" for each in range(1, table.metadata_version)]
    log = [
        {
            "timestamp-ms": json.loads(path.read_bytes())["last-updated-ms"],
            "metadata-file": str(path),
        }
        for path in paths
    ]
    change_metadata(table, lambda document: document.update({"metadata-log": log}))


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("partitioned", [False, True])
def test_the_listed_files_are_the_table(version: int, partitioned: bool, tmp_path) -> None:
    table = with_deletes(tmp_path, version, partitioned=partitioned)
    with_log(table)
    target = str(tmp_path / "target")
    before, told = history(table.folder), metadata_rows(table.folder, table.folder)
    latest, listed, manifests, deletes = call(table.folder, table.folder, target)
    assert latest == Path(table.metadata_path).name
    made = carry_out(listed)
    assert len(made) == len({*made})
    assert len([each for each in made if each.endswith(".json")]) == table.metadata_version
    assert len([each for each in made if "/snap-" not in each and each.endswith(".avro")]) >= 1
    assert manifests > 0
    assert (deletes > 0) == (version > 1)
    shutil.rmtree(table.folder)
    current = f"{target}/metadata/{latest}"
    assert history(current) == before
    assert metadata_rows(current, target) == told


def test_what_came_after_a_version_is_listed_alone(tmp_path) -> None:
    table, target = with_deletes(tmp_path, 2), str(tmp_path / "target")
    with_log(table)
    latest, listed, *_ = call(table.folder, table.folder, target)
    first = carry_out(listed)
    table.append(rows(700, 4))
    table.commit([table.position_deletes([(table.live[-1], 1)])])
    with_log(table)
    then, listed, *_ = call(
        table.folder, table.folder, target, start_version=latest,
        staging_location=str(tmp_path / "staging"),
    )  # fmt: skip
    assert listed == f"{tmp_path}/staging/file-list"
    second = carry_out(listed)
    data = {each for each in second if each.endswith(".parquet")}
    # Only new files, and deletes that manifests and lists name again.
    assert len(data - {*first}) == 2
    assert {each for each in data & {*first} if "deletes" not in each} == set() or len(data) < 5
    before = history(table.folder)
    shutil.rmtree(table.folder)
    assert history(f"{target}/metadata/{then}") == before


def test_an_end_version_leaves_out_what_came_later(tmp_path) -> None:
    table, target = with_deletes(tmp_path, 2), str(tmp_path / "target")
    before = history(table.folder)
    end = Path(table.metadata_path).name
    table.append(rows(700, 4))
    with_log(table)
    latest, listed, *_ = call(table.folder, table.folder, target, end_version=end)
    assert latest == end
    carry_out(listed)
    shutil.rmtree(table.folder)
    assert history(f"{target}/metadata/{end}") == before


def test_a_table_that_was_moved_is_listed_where_it_lies(tmp_path) -> None:
    table = new_table(tmp_path, 3)
    table.location = "s3://bucket/t"
    (data,) = table.append(rows(0, 5))
    table.commit(table.deletion_vectors([(data, [1])]))
    before, target = history(table.folder), str(tmp_path / "target")
    latest, listed, *_ = call(table.folder, "s3://bucket/t", target)
    carry_out(listed)
    shutil.rmtree(table.folder)
    assert history(f"{target}/metadata/{latest}") == before


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("{elsewhere}/x.parquet", "does not lie below the source prefix"),
        ("{folder}/data/../../x.parquet", "several readings"),
        ("{folder}/data/x\n/etc/passwd,/tmp/x", "several readings"),
        ("{folder}/data/x,y.parquet", "several readings"),
        ("{folder}/%2e%2e/x.parquet", "several readings"),
    ],
)
def test_paths_that_lead_elsewhere_are_refused(named: str, problem: str, tmp_path) -> None:
    table = new_table(tmp_path, 2)
    file = table.data_file(rows(0, 3))
    file.record["file_path"] = named.format(folder=table.folder, elsewhere=tmp_path / "elsewhere")
    table.commit([file])
    with pytest.raises(errors.UnsupportedTableError, match=problem):
        call(table.folder, table.folder, str(tmp_path / "target"))


def test_wrong_arguments_are_told(tmp_path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows(0, 3))
    target = str(tmp_path / "target")
    for given, problem in (
        ({"start_version": "v99.metadata.json"}, "is no version of"),
        ({"end_version": "../../x"}, "is no version of"),
    ):
        with pytest.raises(errors.ProgrammingError, match=problem):
            call(table.folder, table.folder, target, **given)
    for prefixes, problem in (
        ((table.folder, table.folder), "the same as source_prefix"),
        (("", target), "source_prefix is empty"),
        ((table.folder, " "), "target_prefix is empty"),
    ):
        with pytest.raises(errors.ProgrammingError, match=problem):
            call(table.folder, *prefixes)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(errors.CatalogError, match="there are files"):
        call(table.folder, table.folder, target, staging_location=str(tmp_path / "full"))
    assert [each.name for each in (tmp_path / "full").iterdir()] == ["notes.txt"]
