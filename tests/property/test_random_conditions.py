"""A small part of the campaign of random conditions, always the same one."""

from __future__ import annotations

from pathlib import Path

from tests.campaigns.random_conditions import Campaign


def test_no_file_with_a_matching_row_is_left_out(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, 20261122)
    campaign.ask(120)
    campaign.close()
    assert not campaign.wrong
    assert campaign.found["asked"] > 100
    assert campaign.found["kept"] < 0.75 * campaign.found["live"]
