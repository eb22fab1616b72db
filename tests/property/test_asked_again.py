"""A small part of the campaign of repeated queries, always the same one."""

from __future__ import annotations

from pathlib import Path

from tests.campaigns.asked_again import World


def test_what_is_kept_changes_no_row(tmp_path: Path) -> None:
    world = World(tmp_path, 20261128)
    found = world.run(40)
    world.close()
    assert not found.wrong
    assert found.compared > 0.9 * found.asked
    assert found.events > 5
