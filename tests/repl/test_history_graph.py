"""The graph that \\snapshots draws."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from icesql.repl.table_history import Commit, Ref, age, history_graph

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


def commit(number: int, parent: int | None, hours: float, **counts: int) -> Commit:
    summary = {name.replace("_", "-"): str(value) for name, value in counts.items()}
    return Commit(number, parent, NOW - timedelta(hours=hours), "append", summary)


def drawn(commits: list[Commit], refs: list[Ref], width: int = 200) -> list[str]:
    return list(history_graph(commits, refs, now=NOW, width=width))


def test_a_line_of_commits_is_one_column() -> None:
    commits = [commit(1, None, 50, added_records=1400), commit(22, 1, 1, deleted_records=5)]
    assert drawn(commits, [Ref("main", 22, False), Ref("v1", 1, True)]) == [
        "●  22  1 h  2026-01-10 11:00:00  append      -5  ← branch main",
        "○   1  2 d  2026-01-08 10:00:00  append  +1,400  ← tag v1",
    ]


def test_branches_join_where_they_left() -> None:
    commits = [commit(1, None, 9), commit(2, 1, 8), commit(3, 1, 7), commit(4, 1, 6)]
    refs = [Ref("main", 2, False), Ref("a", 3, False), Ref("b", 4, False)]
    assert [line.split("  ")[0] for line in drawn(commits, refs)] == ["", "", "● │ │", "○─┴─┘"]
    assert [line[:5] for line in drawn(commits, refs)] == ["  ●  ", "  │ ●", "● │ │", "○─┴─┘"]


def test_what_no_ref_reaches_is_marked() -> None:
    commits = [commit(1, None, 9), commit(2, 1, 8), commit(3, 1, 7)]
    lines = drawn(commits, [Ref("main", 3, False)])
    assert lines[1].startswith("│ ✗  2")
    assert lines[1].endswith("← rolled back or staged")


def test_ids_stay_whole_and_refs_get_a_line_of_their_own() -> None:
    number = 8_127_685_200_612_268_660
    names = [f"a-long-name-of-a-tag-{i}" for i in range(4)]
    refs = [Ref("main", number, False), *(Ref(name, number, True) for name in names)]
    lines = drawn([commit(number, None, 1, added_records=10**9)], refs, width=80)
    assert str(number) in lines[0]
    assert all(len(line) <= 80 for line in lines)
    assert all(any(name in line for line in lines) for name in names)


def test_a_child_comes_before_its_parent_whatever_the_clocks_say() -> None:
    lines = drawn([commit(1, None, 1), commit(2, 1, 5)], [Ref("main", 2, False)])
    assert [line.split()[1] for line in lines] == ["2", "1"]


def test_a_history_without_its_beginning_is_drawn() -> None:
    lines = drawn([commit(5, 4, 1), commit(6, 5, 0.5)], [])
    assert [line.split()[:2] for line in lines] == [["✗", "6"], ["✗", "5"]]
    reached = drawn([commit(5, 4, 1), commit(6, 5, 0.5)], [Ref("main", 6, False)])
    assert [line.split()[:2] for line in reached] == [["●", "6"], ["○", "5"]]


def test_a_long_history_is_quick() -> None:
    commits = [commit(i, i - 1 if i else None, 10_000 - i) for i in range(5000)]
    assert len(drawn(commits, [Ref("main", 4999, False)])) == 5000


def test_ages_are_in_their_largest_unit() -> None:
    shown = [age(timedelta(seconds=s)) for s in (0, 59, 61, 7200, 86400 * 3, 86400 * 400, -5)]
    assert shown == ["0 s", "59 s", "1 min", "2 h", "3 d", "1 y", "-5 s"]
