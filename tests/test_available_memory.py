"""The memory of a container, as control groups of both versions tell it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from icesql.config import available_memory

GIB = 1 << 30
MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def tree(root: Path, groups: str, **limits: str) -> str:
    """A file system whose process is in ``groups``; ``limits`` by path below the control groups."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for path, text in limits.items():
        file = root / "sys/fs/cgroup" / path.replace("__", "/").replace("_dot_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        pytest.param("0::/\n", {"memory_dot_max": f"{GIB}\n"}, GIB, id="a container"),
        pytest.param("0::/\n", {"memory_dot_max": "max\n"}, MACHINE, id="no limit"),
        pytest.param("0::/\n", {}, MACHINE, id="no file"),
        pytest.param(
            "0::/pod/box\n",
            {"pod__memory_dot_max": f"{GIB}", "pod__box__memory_dot_max": "max"},
            GIB,
            id="the group above limits",
        ),
        pytest.param(
            "0::/pod/box\n",
            {"pod__memory_dot_max": f"{GIB}", "pod__box__memory_dot_max": f"{GIB // 2}"},
            GIB // 2,
            id="the smallest counts",
        ),
        pytest.param(
            "0::/../../outside\n",
            {"memory_dot_max": f"{GIB}"},
            GIB,
            id="a path outside of the view",
        ),
        pytest.param(
            "5:cpu,memory:/docker/1\n",
            {"memory__memory_dot_limit_in_bytes": f"{GIB}"},
            GIB,
            id="version 1, seen from inside",
        ),
        pytest.param(
            "5:memory:/\n",
            {"memory__memory_dot_limit_in_bytes": "9223372036854771712"},
            MACHINE,
            id="version 1 without a limit",
        ),
        pytest.param("5:cpu:/\nx\n::\n", {"memory_dot_max": "none"}, MACHINE, id="nonsense"),
    ],
)
def test_the_memory_of_a_container(
    tmp_path: Path, groups: str, limits: dict[str, str], expected: int
) -> None:
    assert available_memory(tree(tmp_path, groups, **limits)) == expected


def test_without_control_groups_it_is_the_machine(tmp_path: Path) -> None:
    assert available_memory(str(tmp_path)) == MACHINE
