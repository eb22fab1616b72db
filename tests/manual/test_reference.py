"""The pages that are made of the code say what the code says."""

from __future__ import annotations

import pytest

from tests.manual import reference

ANEW = "write them anew: python -m tests.manual.reference"


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert (reference.FOLDER / name).read_text(encoding="utf-8") == reference.PAGES[name](), ANEW


def test_there_are_no_other_pages() -> None:
    assert {each.name for each in reference.FOLDER.iterdir()} == set(reference.PAGES)


def test_the_list_for_programs_has_every_chapter() -> None:
    assert (reference.MANUAL / "llms.txt").read_text(encoding="utf-8") == reference.llms(), ANEW


def test_every_property_that_the_code_names_is_described_and_no_other() -> None:
    described = {name for name, _, _ in reference.PROPERTIES}
    # The beginning of the others of Parquet.
    assert reference.properties_in_code() - described <= {"write.parquet."}
    texts = reference.texts_in_code()
    of_commands = {
        f"write.{each}.{what}"
        for each in ("delete", "update", "merge")
        for what in ("mode", "isolation-level")
    }
    for name in described - of_commands:
        assert name in texts or name.removeprefix("write.parquet.") in texts, name
