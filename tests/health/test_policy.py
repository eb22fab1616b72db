"""A policy file says what is done; what it cannot mean is told with its file, line and key."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from icesql.errors import ProgrammingError
from icesql.health.need import Instant, Need
from icesql.health.policy import (
    DEFAULT_ACTIONS,
    Budget,
    Policy,
    Rule,
    Window,
    parse_seconds,
    policy_of_texts,
    read_policy,
    with_actions,
)
from tests.tables import read_table

WHOLE = """
actions = ["expire", "compact"]
target_file_size = "256MB"
retention = "7 days"
windows = ["22:00-06:00", "Sat,Sun 00:00-24:00"]
history = "/var/lib/lake.jsonl"

[[tables]]
match = "sales.*"
target_file_size = "512MB"
min_snapshots = 10
compact_options = { "partial-progress.enabled" = true, "min-input-files" = 3 }

[[tables]]
match = ["sales.tmp_*", "*.scratch"]
skip = true
"""


def read(tmp_path: Path, text: str) -> Policy:
    (tmp_path / "p.toml").write_text(text)
    return read_policy(str(tmp_path / "p.toml"))


def test_a_later_rule_says_more(tmp_path: Path) -> None:
    policy = read(tmp_path, WHOLE)
    assert policy.history == "/var/lib/lake.jsonl"
    sales = policy.of(("sales", "orders"))
    assert sales.actions == ("compact", "expire")  # in the order in which they are done
    assert (sales.target_file_size, sales.retention, sales.min_snapshots) == (
        512 << 20,
        604_800,
        10,
    )
    assert sales.compact_options == {"partial-progress.enabled": "true", "min-input-files": "3"}
    assert sales.wants_expiry
    assert not sales.skip
    assert policy.of(("sales", "tmp_1")).skip
    assert policy.of(("a", "scratch")).skip
    assert policy.of(("other", "t")).target_file_size == 256 << 20
    assert with_actions(policy, ["manifests"]).of(("sales", "x")).actions == ("manifests",)


def test_without_a_policy_nothing_is_lost() -> None:
    plain = Policy().of(("a", "b"))
    assert plain.actions == DEFAULT_ACTIONS
    assert "orphans" not in plain.actions
    assert not plain.wants_expiry


@pytest.mark.parametrize(("text", "said"), read_table(__file__, "policies.tsv"))
def test_what_cannot_be_meant_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ProgrammingError) as caught:
        read(tmp_path, text.replace("\\n", "\n"))
    assert said in str(caught.value)
    assert "p.toml" in str(caught.value)


def test_a_missing_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(ProgrammingError, match="cannot read the policy"):
        read_policy(str(tmp_path / "none.toml"))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProgrammingError, match="UTF-8"):
        read_policy(str(tmp_path / "bytes"))


def test_patterns_mean_whole_names_and_the_name_itself() -> None:
    rule = Rule(("ns.a[1]",), {})
    assert rule.matches("ns.a[1]")
    assert rule.matches("ns.a1")
    assert not rule.matches("ns.a2")
    assert not Rule(("ns.a",), {}).matches("ns.ab")
    assert not Rule(("NS.A",), {}).matches("ns.a")


def test_texts_of_a_call() -> None:
    policy = policy_of_texts(
        ["expire"],
        {
            "short_retention": "true",
            "retention": "1h",
            "min_snapshots": "3",
            "windows": "01:00-02:00, 03:00-04:00",
        },
    )
    assert (policy.retention, policy.min_snapshots, len(policy.windows)) == (3600, 3, 2)
    with pytest.raises(ProgrammingError, match="min_snapshots"):
        policy_of_texts(None, {"min_snapshots": "many"})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20min", 1200), ("1.5 h", 5400), ("7 days", 604_800), ("1day", 86_400), ("2w", 1_209_600)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "days", "7 dayz", "-1 day", "1e9 days", "7 days 3h"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError):
        parse_seconds(text)


def test_budgets() -> None:
    assert Budget.of("20min") == Budget(1200, None)
    assert Budget.of("500GB") == Budget(None, 500 << 30)
    assert Budget.of("2h, 1TB") == Budget(7200, 1 << 40)
    for text in ("", "soon", "20min,"):
        with pytest.raises(ValueError, match="budget"):
            Budget.of(text)


def test_windows_over_night_belong_to_the_day_on_which_they_start() -> None:
    window = Window.of("Fri-Mon 22:00-06:00")

    def at(day: int, hour: int) -> bool:
        return window.holds(datetime(2026, 1, day, hour, 30, tzinfo=UTC))

    # The 5th is a Monday.
    assert [at(5, 23), at(6, 5), at(6, 6), at(6, 23), at(9, 5), at(9, 22), at(10, 5)] == [
        True, True, False, False, False, True, True,
    ]  # fmt: skip


def test_an_action_is_spelled_for_any_name() -> None:
    action = Need("expire", "expire_snapshots", "", {"older_than": Instant(0), "retain_last": 2})
    assert action.mend(("ns", "it's")).icesql == (
        "CALL system.expire_snapshots(table => 'ns.\"it''s\"', "
        "older_than => TIMESTAMP '1970-01-01 00:00:00.000+00:00', retain_last => 2)"
    )
    call = action.call(("ns", "it's"))
    assert call.arguments[0].value.parts == ("ns", "it's")


def test_a_retention_below_a_day_wants_a_switch(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(
        "short_retention = true\nretention = '0 days'\n[[tables]]\nmatch = 'a.*'\nretention = '1h'\n"
    )
    assert read_policy(str(file)).of(["a", "t"]).retention == 3600
    with pytest.raises(ProgrammingError, match="retention is less than a day"):
        policy_of_texts(["expire"], {"retention": "0s"})
    assert policy_of_texts(["expire"], {"retention": "1 day"}).retention == 86_400
