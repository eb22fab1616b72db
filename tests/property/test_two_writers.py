"""Statements of icesql in which another writer commits: the rows are those of a model.

Twenty histories, the same ones everywhere; see ``tests/campaigns/two_writers.py``, which runs
thousands and longer ones. ICESQL_TWO_WRITERS=2000 runs more here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.campaigns.histories.catalogs import KINDS
from tests.campaigns.histories.command import Writers
from tests.campaigns.two_writers import history

COUNT = int(os.environ.get("ICESQL_TWO_WRITERS", "20"))
LENGTH = 2
AT_ONCE = 10


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with closing(Writers(tmp_path_factory.mktemp("two-writers"))) as made:
        yield made


@pytest.mark.filterwarnings("ignore::UserWarning")  # of PyIceberg: what it does by other means
@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
def test_what_two_writers_leave_is_what_the_model_leaves(writers: Any, first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + AT_ONCE):
        found = history(seed, writers, LENGTH, KINDS[seed % len(KINDS)])
        told = f"seed {seed} ({found.kind}, version {found.version})"
        assert not found.faults, "\n".join([told, *found.told, *found.faults])
        seen += found.moments + found.others
    # They came in, and inside of statements.
    assert seen["attempt"] > AT_ONCE / 2
    assert seen["insert"] > AT_ONCE
