"""Every error survives the way to another process, with its message and its data."""

from __future__ import annotations

import inspect
import pickle
from ast import literal_eval

import pytest

from icesql import errors
from tests.tables import read_table

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.Error)
]


ARGUMENTS = {
    name: (literal_eval(arguments), literal_eval(keywords))
    for name, arguments, keywords in read_table(__file__, "errors.tsv")
}


@pytest.mark.parametrize("error_class", CLASSES, ids=lambda each: each.__name__)
def test_errors_pickle_with_message_and_data(error_class: type[errors.Error]) -> None:
    arguments, keywords = ARGUMENTS.get(error_class.__name__, (("what happened",), {}))
    error = error_class(*arguments, **keywords)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is error_class
    assert str(copy) == str(error) != ""
    assert vars(copy) == vars(error)


def test_classes_with_data_are_all_tried() -> None:
    with_data = {each.__name__ for each in CLASSES if "__init__" in vars(each)}
    assert with_data - {"_InSql"} == set(ARGUMENTS)  # that is a base of others alone


def test_a_syntax_error_points_at_the_place() -> None:
    error = errors.SqlSyntaxError(
        "unexpected FORM", position=(1, 10), expected=["FROM", "WHERE"], sql="SELECT a FORM t"
    )
    assert str(error) == (
        "syntax error at line 1, column 10: unexpected FORM; expected FROM or WHERE\n"
        "  SELECT a FORM t\n"
        "           ^"
    )


@pytest.mark.parametrize(
    ("line", "mark", "shown", "cells"),
    [
        ("SELECT '日本語😀' FORM t", "FORM", "SELECT '日本語😀' FORM t", 18),
        ("SELECT 'e\u0301' FORM t", "FORM", "SELECT 'e\u0301' FORM t", 11),
        ("\tSELECT\ta FORM t", "FORM", " SELECT a FORM t", 10),
        ("SELECT '\x1b[2J' FORM t\r", "FORM", "SELECT '\\x1b[2J' FORM t", 17),
        ("SELECT " + "a, " * 90 + "FORM t" + " " * 90, "FORM", "…" + "a, " * 20 + "FORM t", 61),
    ],
)
def test_the_caret_stands_under_its_place(line: str, mark: str, shown: str, cells: int) -> None:
    position = (2, line.index(mark) + 1)
    error = errors.SqlSyntaxError("unexpected", position=position, sql=f"-- x\x0by\n{line}\nz")
    _, text, caret = str(error).splitlines()
    assert text.startswith(f"  {shown}")
    assert len(text) < 120
    assert caret == "  " + " " * cells + "^"


def test_a_secret_that_the_cut_would_halve_is_masked() -> None:
    from icesql.storage.credentials import clean

    sql = "SELECT * FORM iceberg_scan('s3://AKIDEXAMPLE:S3CRETvalue@bucket/table')"
    error = errors.SqlSyntaxError("unexpected", position=(1, 10), sql=sql)
    clean(error, {})
    assert "S3CR" not in str(error)
    assert "S3CR" not in repr(error)
