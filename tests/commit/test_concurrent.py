"""Several writers at once: no commit is lost, none is there twice.

``tests/campaigns/kills.py`` does it with processes, some of which are killed.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from icesql.commit.rows import commit_append
from tests.commit.tables import CATALOGS, create, fake, files_on_disk, manifests, told

WRITERS, COMMITS = 4, 5


@pytest.mark.parametrize("kind", CATALOGS)
def test_every_append_is_there_once(kind, tmp_path) -> None:
    catalog = CATALOGS[kind](tmp_path)
    create(
        catalog,
        version=3,
        **{"commit.retry.num-retries": "500", "commit.manifest.min-count-to-merge": "5"},
    )

    def write(writer: int) -> None:
        for number in range(COMMITS):
            commit_append(catalog, catalog.load(("ns", "t")), [fake(f"w{writer}-{number}", rows=3)])

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    table = catalog.load(("ns", "t"))
    found = sorted(name for each in told(table) for name, status, _ in each if status != 2)
    assert found == sorted(f"w{writer}-{n}" for writer in range(WRITERS) for n in range(COMMITS))
    snapshots = [*table.metadata.snapshots.values()]
    assert [each.sequence_number for each in snapshots] == list(range(1, WRITERS * COMMITS + 1))
    assert int(snapshots[-1].summary["total-records"]) == 3 * WRITERS * COMMITS
    ranges = sorted((each.first_row_id, each.first_row_id + each.added_rows) for each in snapshots)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))
    used = {
        each.manifest_path.rpartition("/")[2] for one in snapshots for each in manifests(table, one)
    }
    assert files_on_disk(table, "*-m*.avro") == used, "no attempt that lost left a file behind"
    assert len(files_on_disk(table, "snap-*.avro")) == len(snapshots)
