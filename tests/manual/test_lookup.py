"""What somebody who looks for a word is shown first, and how it looks on a terminal."""

from __future__ import annotations

import inspect
import re

import pytest

from icesql import errors
from icesql.errors import ProgrammingError
from icesql.manual.chapters import INDEX, chapters, sections
from icesql.manual.lookup import manual, search
from icesql.manual.screen import laid_out


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
    [
        ("undo", {"start", "maintain", "recipes"}),
        ("roll back", {"maintain", "write"}),
        ("csv", {"start", "shell", "recipes"}),
        ("my CSV as a table", {"start", "recipes"}),
        ("yesterday", {"query", "recipes"}),
        ("branch", {"write", "query"}),
        ("upsert", {"coming-from", "recipes"}),
        ("merge", {"write"}),
        ("rename column", {"write", "recipes"}),
        ("transaction", {"write"}),
        ("conflict", {"write", "errors"}),
        ("compact", {"maintain"}),
        ("small files", {"maintain"}),
        ("orphan files", {"maintain"}),
        ("expire snapshots", {"maintain"}),
        ("why is it slow", {"explain", "maintain"}),
        ("explain", {"explain"}),
        ("minio", {"catalogs"}),
        ("polaris", {"catalogs", "recipes"}),
        ("oauth2", {"catalogs"}),
        ("azure", {"catalogs"}),
        ("nessie", {"catalogs"}),
        ("pandas", {"python", "recipes"}),
        ("polars", {"python", "recipes"}),
        ("DataFrame", {"python", "spark", "recipes"}),
        ("jupyter", {"python"}),
        ("superset", {"sqlalchemy"}),
        ("incremental model", {"dbt"}),
        ("stream", {"spark"}),
        ("memory limit", {"settings", "spark"}),
        ("read only", {"trust", "agents"}),
        ("untrusted", {"trust"}),
        ("exit code", {"shell"}),
        ("parquet file of a result", {"shell"}),
        ("who changed a row", {"changes", "recipes"}),
        ("clone", {"coming-from"}),
    ],
)
def test_a_search_begins_with_a_chapter_that_answers(words: str, topics: set[str]) -> None:
    found = search(words)
    assert found[0].topic in topics, [(each.topic, each.title) for each in found[:5]]


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("my csv as a table", "My CSV file as a table"),
        ("parquet files as a table", "Parquet files as a table, without a copy"),
        ("table last week", "What a table was last week"),
        ("undo yesterday's job", "Undo yesterday's job"),
        ("who changed this row", "Who changed this row, and what changed since yesterday"),
        ("what changed since yesterday", "Who changed this row, and what changed since yesterday"),
        ("upsert", "Upsert rows"),
        ("load a dataframe", "Load a DataFrame of pandas or Polars"),
        ("export result as parquet", "Export a result as CSV, JSON or Parquet"),
        ("publish after a check", "Publish rows after a check"),
        ("rename a column", "Rename, add and drop columns"),
        ("partition by day", "Partition a table by day"),
        ("compact all tables each night", "Maintain all tables each night"),
        ("cron", "Maintain all tables each night"),
        ("delete rows for good", "Delete somebody's rows for good"),
        ("copy a table to another catalog", "Copy a table to another catalog"),
        ("which config for polaris", "Open Polaris, Lakekeeper or another REST catalog"),
        ("service limits", "A query with limits, for a service"),
        ("join two catalogs", "Several catalogs in one query"),
        ("claude agent", "Agents (MCP)"),
        ("dbt incremental model", "dbt"),
        ("jupyter", "Notebooks"),
        ("remove duplicates", "Remove duplicates"),
        ("bloom filter", "Skip more files: sort order and Bloom filters"),
        ("sort order", "Skip more files: sort order and Bloom filters"),
        ("compare two tables", "Compare two tables"),
        ("window functions", "What a query may have: joins, CTEs, window functions"),
        ("parameters", "Parameters"),
    ],
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
