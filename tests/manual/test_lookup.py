"""What somebody who looks for a word is shown first, and how it looks on a terminal."""

from __future__ import annotations

import inspect
import re

import pytest

from icesql import errors
from icesql.errors import ProgrammingError
from icesql.manual.lookup import INDEX, chapters, manual, search, sections
from icesql.manual.screen import laid_out
from tests.tables import read_table


def test_a_topic_is_a_chapter_by_its_name_or_title() -> None:
    assert manual("") == manual("index") == chapters()[INDEX]
    assert manual("write") == manual("WRITE.md") == chapters()["write"]
    assert manual("Why it was fast") == chapters()["explain"]


def test_all_is_the_whole_manual() -> None:
    everything = manual("all")
    assert all(each.text in everything for each in sections())


def test_a_heading_is_shown_with_what_stands_below_it() -> None:
    assert manual("several writers").startswith("## Several writers\n")
    assert manual("CommitConflictError").startswith("## CommitConflictError\n")
    assert "### " not in manual("azure")


@pytest.mark.parametrize(
    ("words", "topics"),
    read_table(__file__, "topics.tsv"),
)
def test_a_search_begins_with_a_chapter_that_answers(words: str, topics: str) -> None:
    found = search(words)
    assert found[0].topic in topics.split(), [(each.topic, each.title) for each in found[:5]]


@pytest.mark.parametrize(
    ("words", "title"),
    read_table(__file__, "tasks.tsv"),
)
def test_a_task_is_found_with_something_to_copy(words: str, title: str) -> None:
    found = search(words)
    assert found[0].title == title, [(each.topic, each.title) for each in found[:4]]
    assert "```" in manual(words).partition("More about")[0]


def test_a_search_shows_the_best_section_and_names_others() -> None:
    shown = manual("orphan files")
    assert shown.startswith("## Expire snapshots, remove orphan files\n")
    others = re.findall(
        r"^- .*: `icesql help (.+)`$", shown.partition("More about")[2], re.MULTILINE
    )
    assert others
    assert all(manual(each) for each in others)


def test_a_name_of_a_list_is_shown_with_its_columns() -> None:
    shown = manual("date_trunc")
    assert "| function | DuckDB | Spark | Trino | Snowflake |\n| --- |" in shown
    assert "| `date_trunc` | also on Spark | yes | yes | yes |" in shown
    assert "\n- `date_trunc(" in shown
    assert "`datediff" not in shown
    assert "| `memory_limit` | 60 % of memory |" in manual("MEMORY_LIMIT")
    assert manual("rollback_to_snapshot").startswith("## rollback_to_snapshot\n")


def test_what_is_nowhere_is_said() -> None:
    with pytest.raises(ProgrammingError, match="nothing about 'catalugs'; did you mean catalogs"):
        manual("catalugs")


def test_the_topic_of_an_error_is_a_chapter_or_a_heading() -> None:
    topics = {
        each.topic
        for each in vars(errors).values()
        if inspect.isclass(each) and issubclass(each, errors.Error)
    }
    titles = {each.title.lower() for each in sections()}
    assert len(topics) > 5
    assert {each for each in topics if each and each not in chapters()} <= {
        *titles,
        *(each for each in topics if each.lower() in titles),
    }


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("topic", [*chapters()])
def test_text_and_tables_fit_the_screen(topic: str, width: int) -> None:
    # Of code, and of what stands in backquotes, nothing is broken.
    text = re.sub(r"^```.*?^```$", "", chapters()[topic], flags=re.MULTILINE | re.DOTALL)
    spans = re.compile(r"`[^`]*`|\[[^\]]*\]\([^)]*\)|\S{20,}")
    text = spans.sub("code", text)
    too_wide = [each for each in laid_out(text, width, colour=False) if len(each) > width]
    assert too_wide == []


def test_a_page_has_headings_lists_tables_and_code() -> None:
    text = """# Title

Some `code` and **more** of [Write](write.md#values),
on two lines.

- one
  and on
- two

| a | b |
|---|---|
| `x` | 1 \\| 2 |

```sql
SELECT 1
```
"""
    assert laid_out(text, 80, colour=False) == [
        "Title",
        "=====",
        "",
        "Some code and more of Write (write), on two lines.",
        "",
        "  • one and on",
        "  • two",
        "",
        "  a  b",
        "  x  1 | 2",
        "",
        "    SELECT 1",
    ]
    narrow = laid_out("| a | b |\n|---|---|\n| `one` | " + "word " * 20 + "|", 40, colour=False)
    assert narrow[0] == "  one"
    assert all(line.startswith("      word") for line in narrow[1:])
    assert "\x1b[1mTitle\x1b[0m" in laid_out(text, 80, colour=True)
