"""An expiry beside a stream of Flink: the doctor and maintain say what it does to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import icesql


@pytest.mark.parametrize(("version", "by_flink"), [(3, True), (2, True), (3, False)])
def test_an_expiry_beside_a_stream_of_flink_is_named(
    tmp_path: Path, version: int, by_flink: bool
) -> None:
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(
            f"CREATE TABLE s.t (a INT) TBLPROPERTIES ('format-version' = '{version}', "
            "'history.expire.max-snapshot-age-ms' = '0')"
        )
        for number in range(3):
            con.execute(f"INSERT INTO s.t VALUES ({number})")
    if by_flink:
        newest = max(
            (tmp_path / "s/t/metadata").glob("v*.json"), key=lambda p: p.stat().st_mtime_ns
        )
        document = json.loads(newest.read_text())
        document["snapshots"][-1]["summary"]["flink.job-id"] = "f3"
        newest.write_text(json.dumps(document))
    is_named = version == 3 and by_flink
    with icesql.connect(warehouse=str(tmp_path)) as con:
        found = [each.cost for each in con.doctor("s.t").findings]
        assert any("stops Flink's upserts" in each for each in found) == is_named
        for dry_run in (True, False):
            done = con.maintain(["s.t"], actions=["expire"], dry_run=dry_run)
            assert ("stops Flink's upserts" in str(done)) == is_named
