"""A small part of the campaign of repeated queries, always the same one."""

from __future__ import annotations

from pathlib import Path

from tests.campaigns.asked_again import World


def test_what_is_kept_changes_no_row(tmp_path: Path) -> None:
    world = World(tmp_path, 20261128)
    world.ask(40)
    world.close()
    assert not world.wrong
    assert world.found["compared"] > 0.9 * world.found["asked"]
    assert world.found["events"] > 5
