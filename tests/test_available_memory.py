"""The memory of a container, as control groups of both versions tell it."""

from __future__ import annotations

import os
from ast import literal_eval
from pathlib import Path

import pytest

from icesql.config import available_memory
from tests.tables import read_table

GIB = 1 << 30
MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def tree(root: Path, groups: str, limits: dict[str, str]) -> str:
    """A file system whose process is in ``groups``; ``limits`` by path below the control groups."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for path, text in limits.items():
        file = root / "sys/fs/cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("groups", "limits", "gib"),
    [pytest.param(*each, id=name) for name, *each in read_table(__file__, "control_groups.tsv")],
)
def test_the_memory_of_a_container(tmp_path: Path, groups: str, limits: str, gib: str) -> None:
    expected = float(gib) * GIB if gib else MACHINE
    assert available_memory(tree(tmp_path, literal_eval(groups), literal_eval(limits))) == expected


def test_without_control_groups_it_is_the_machine(tmp_path: Path) -> None:
    assert available_memory(str(tmp_path)) == MACHINE
