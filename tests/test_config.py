"""Variables of the environment: settings, others, and misspelt ones."""

from __future__ import annotations

import logging
import warnings

import pytest

import icesql
from icesql.config import Settings, unknown_variables


def test_variables_are_settings_and_empty_ones_are_none() -> None:
    found = Settings.from_environment(
        {"ICESQL_TIME_ZONE": "Asia/Tokyo", "ICESQL_THREADS": "", "ICESQL_QUERY_TIMEOUT": "5"}
    )
    assert (found.timezone, found.threads, found.query_timeout) == ("Asia/Tokyo", None, 5.0)
    with pytest.raises(icesql.ProgrammingError, match='setting "threads"'):
        Settings.from_environment({"ICESQL_THREADS": "many"})


def test_an_unknown_variable_is_named_with_the_nearest_setting() -> None:
    assert unknown_variables({"ICESQL_MEMORY_LIMT": "1GB", "ICESQL_WHATEVER": "x"}) == [
        "the environment variable ICESQL_MEMORY_LIMT is not an icesql setting; "
        "did you mean ICESQL_MEMORY_LIMIT?",
        "the environment variable ICESQL_WHATEVER is not an icesql setting",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "ICESQL_CORPUS", "ICESQL_HISTORIES", "ICESQL_JVM_ARCHIVE", "ICESQL_THREADS", "XICESQL_FOO",
        # What Kubernetes gives every pod beside a service called icesql.
        "ICESQL_SERVICE_HOST", "ICESQL_SERVICE_PORT", "ICESQL_SERVICE_PORT_HTTP", "ICESQL_PORT",
        "ICESQL_PORT_80_TCP", "ICESQL_PORT_80_TCP_ADDR", "ICESQL_WEB_SERVICE_HOST",
    ],
)  # fmt: skip
def test_variables_that_are_known_are_not_told(name: str) -> None:
    assert unknown_variables({name: "1"}) == []


def test_connect_warns_and_never_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ICESQL_FOO", "1")
    with pytest.warns(icesql.Warning, match="ICESQL_FOO"):
        icesql.connect().close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        icesql.connect().close()
    assert "ICESQL_FOO is not an icesql setting" in caplog.text
    assert caplog.records[-1].levelno == logging.WARNING
