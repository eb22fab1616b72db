"""Random statements on random tables: what icesql leaves equals a model in plain Python.

A small part of ``tests/campaigns/twin_histories.py``, the same one everywhere. The tables are SQL's,
or those of ``test_histories``: three file formats, every kind of delete, columns and partitions that
have changed. ICESQL_CHANGED_HISTORIES=200 runs more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.campaigns.histories.alone import Alone
from tests.campaigns.histories.command import Writers

SEEDS = range(int(os.environ.get("ICESQL_CHANGED_HISTORIES", "8")))
LENGTH = 8


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with closing(Writers(tmp_path_factory.mktemp("histories"))) as made:
        yield made


@pytest.mark.parametrize("seed", SEEDS)
def test_what_icesql_leaves_is_what_the_model_leaves(writers: Any, seed: int) -> None:
    warehouse, pyiceberg = writers.of("folder" if seed % 4 == 3 else "sqlite")
    found = Alone(seed, warehouse, pyiceberg=pyiceberg).run(LENGTH)
    assert not found.faults, "\n".join([*found.told, *found.faults])
