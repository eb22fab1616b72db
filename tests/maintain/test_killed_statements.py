"""A small part of the campaign ``kills.py``, with the same kills in every run."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.campaigns.histories.command import Writers
from tests.campaigns.histories.killed import KilledHistory, crowd


@pytest.mark.parametrize("kind", ["folder", "sqlite"])
def test_a_killed_statement_leaves_a_table_that_reads(tmp_path, kind: str) -> None:
    with closing(Writers(tmp_path)) as writers:
        warehouse = writers.of(kind)[0]
        found = KilledHistory(20261130, warehouse).run(4)
        assert not found.faults, "\n".join([*found.told, *found.faults])
        assert found.kinds["killed"]


def test_what_several_processes_commit_at_once_is_there_once(tmp_path) -> None:
    with closing(Writers(tmp_path)) as writers:
        assert not crowd(writers.of("sqlite")[0].arguments(), writers=3, commits=3, kills=1)
