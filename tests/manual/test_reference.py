"""The pages that are made of the code say what the code says."""

from __future__ import annotations

import sys

import pytest

from tests.manual import packages, reference

ANEW = "write them anew: python -m tests.manual.reference"


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    if name == "packages.md" and sys.version_info[:2] != (3, 11):
        pytest.skip("packages are listed as the oldest Python has them")
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


def test_no_package_is_missing_in_the_list_of_licences() -> None:
    page = (reference.FOLDER / "packages.md").read_text(encoding="utf-8")
    there = packages.needed()
    missing = [each.name for each in there if f"| `{packages.normalized(each.name)}` |" not in page]
    assert missing == [], ANEW
    assert all(packages.licence(each) for each in there)


def test_the_bill_of_materials_names_each_package_once_and_what_it_needs() -> None:
    bill = packages.bill_of_materials()
    places = [each["bom-ref"] for each in bill["components"]]
    assert len(places) == len(set(places)) > 15
    needs = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    own = bill["metadata"]["component"]["bom-ref"]
    assert needs.keys() == {own, *places}
    assert {each for needed in needs.values() for each in needed} == set(places)
    assert any(each.startswith("pkg:pypi/duckdb@") for each in needs[own])
