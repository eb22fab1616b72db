"""What stands in a text for long chains of comparisons, where its tree has lists."""

from __future__ import annotations

import pytest

from icesql.engine.duckdb.sql.long_chains import as_lists
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from icesql.sql.user_text import NAME, Edit, UserText

TERMS = ["a = {}", "(a = {})", "{} = a", "((a)) = ({})", "a /* = */ = {}"]


def read(condition: str) -> tuple[UserText, Query]:
    (query,) = parse(f"SELECT b FROM t WHERE {condition}")
    assert isinstance(query, Query)
    assert query.user_text is not None
    return query.user_text, query


@pytest.mark.parametrize(
    ("operator", "joined", "written", "rest"),
    [("=", " OR ", "IN", "false"), ("<>", " AND ", "NOT IN", "true")],
)
def test_one_term_becomes_the_list_and_the_others_change_nothing(
    operator: str, joined: str, written: str, rest: str
) -> None:
    terms = [TERMS[n % 5].replace(" = ", f" {operator} ").format(n) for n in range(120)]
    terms = [each.replace(f"/* {operator} */", "/* = */") for each in terms]
    text, query = read(joined.join([*terms, f"b {operator} 1"]))
    first, *others = as_lists(text, query.tree, {})
    values = ", ".join(map(str, range(120)))
    assert first.text == f"(a {written} ({values}))"
    assert {each.text for each in others} == {rest}
    assert len(others) == 119
    assert [text.written(each.start, each.end) for each in (first, *others)] == [
        each.removeprefix("(").removesuffix(")") if each.startswith("(a") else each
        for each in terms
    ]
    (bound, *_) = as_lists(text, query.tree, {first.start: "SELECT 1"})
    assert bound.text == f"(a {written} (SELECT 1))"


def test_a_column_that_other_words_stand_for_stays() -> None:
    text, query = read(" OR ".join(f"a = {n}" for n in range(120)))
    start = text.text.index("a = 0")
    changed = text.with_edits([Edit(start, start + 1, NAME, "x")])
    assert not list(as_lists(changed, query.tree, {}))
