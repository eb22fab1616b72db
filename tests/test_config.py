"""Settings from the environment, misspelt ones, and what ``icesql config`` shows of all of it."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import warnings
from pathlib import Path

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


# ---------------------------------------------------------------------------- icesql config


def shown(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0
) -> dict[str, tuple[str | None, str]]:
    """Value and origin by name."""
    from icesql.cli import main

    assert main(["config", "--format", "json", *arguments]) == code
    written = capsys.readouterr()
    rows = json.loads(written.out)
    found = {row["name"]: (row["value"], row["from"]) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def configure(home: Path, text: str) -> str:
    (home / ".pyiceberg.yaml").write_text(text)
    return str(home / ".pyiceberg.yaml")


def test_every_setting_says_where_it_is_from(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICESQL_THREADS", "3")
    monkeypatch.setenv("ICESQL_TIME_ZONE", "Asia/Tokyo")
    monkeypatch.setenv("ICESQL_QUERY_TIMEOUT", "9")
    found = shown(
        capsys,
        "--set",
        "memory-limit=1GB",
        "--set",
        "query_timeout=5",
        "--timezone",
        "Europe/Vienna",
    )
    assert set(Settings.__struct_fields__) <= set(found)
    assert found["threads"] == ("3", "ICESQL_THREADS")
    assert found["memory_limit"] == (str(1 << 30), "--set")
    assert found["query_timeout"] == ("5.0", "--set")
    assert found["timezone"] == ("Europe/Vienna", "--timezone")
    assert found["prune"] == ("on", "default")
    assert found["cache_directory"] == (f"{home}/cache/icesql", "default")
    assert found["split_lookback"] == (None, "default")
    assert found["version"][0] == icesql.__version__
    assert found["access.copy_to"] == ("yes", "default")
    # What is shown is what a connection has.
    with icesql.connect(timezone="Europe/Vienna", settings={"memory_limit": "1GB"}) as connection:
        assert str(connection.settings.threads) == found["threads"][0]
        assert str(connection.settings.memory_limit) == found["memory_limit"][0]


def test_restrictions_say_by_which_option(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "--service", "--files", str(home), "--catalogs", "a,b")
    assert found["access.files"] == (str(home), "--files")
    assert found["access.catalogs"] == ("a, b", "--catalogs")
    assert found["access.confine"] == ("yes", "--service")
    assert found["access.copy_to"] == ("no", "--service")
    assert "threads" in str(found["access.locked"][0])


def test_catalogs_with_the_origin_of_each_property_and_no_secret(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ["s3cr3t-one", "s3cr3t-two", "s3cr3t-three", "s3cr3t-four", "s3cr3t-five"]
    file = configure(
        home,
        "catalog:\n  Prod:\n    type: rest\n    uri: http://me:s3cr3t-one@127.0.0.1:1\n"
        "    credential: id:s3cr3t-two\n    auth:\n      type: oauth2\n      oauth2:\n"
        "        client_secret: s3cr3t-three\n",
    )
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__S3__REGION", "eu-west-1")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TOKEN", "s3cr3t-four")
    for arguments in (
        ["--no-ping"],
        ["--catalog", "prod", "--property", "s3.session-token=s3cr3t-five"],
    ):
        code = 0 if "--no-ping" in arguments else 1
        found = shown(capsys, *arguments, code=code)
        assert [each for each in secrets if each in str(found)] == []
        assert found[".pyiceberg.yaml"][0] == file
        assert found["catalog.prod.uri"] == ("http://me:***@127.0.0.1:1", file)
        assert found["catalog.prod.credential"] == ("***", file)
        assert found["catalog.prod.auth.oauth2.client_secret"] == ("***", file)
        assert found["catalog.prod.token"] == ("***", "PYICEBERG_CATALOG__PROD__TOKEN")
        assert found["catalog.prod.s3.region"] == (
            "eu-west-1",
            "PYICEBERG_CATALOG__PROD__S3__REGION",
        )
        assert ("catalog.prod" in found) == (code == 1)
    assert found["catalog.prod.s3.session-token"] == ("***", "--property")


def test_catalogs_are_asked_all_at_once(
    home: Path, warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            """None is answered before all have asked."""
            for connection in [server.accept()[0] for _ in range(4)]:
                with connection:
                    connection.recv(65_536)
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        slow = "".join(
            f"  slow{n}:\n    type: rest\n    uri: http://127.0.0.1:{server.getsockname()[1]}\n"
            for n in range(4)
        )
        configure(
            home,
            f"catalog:\n{slow}  down:\n    type: rest\n    uri: http://127.0.0.1:1\n"
            f"  files:\n    type: sql\n    uri: sqlite:///{warehouse}/catalog.db\n",
        )
        found = shown(capsys, "--set", "query_timeout=60", code=1)
        for n in range(4):
            assert "403" in str(found[f"catalog.slow{n}"][0])
        assert "connection refused" in str(found["catalog.down"][0])
        assert str(found["catalog.files"][0]).startswith("answers: 1 namespace, ")


def test_a_catalog_that_does_not_answer_is_given_up(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        configure(home, f"catalog:\n  slow:\n    type: rest\n    uri: {uri}\n")
        found = shown(capsys, "--set", "query_timeout=0.5", code=1)
        assert found["catalog.slow"] == ("no answer within 0.5 s", "ping")


def test_the_catalog_of_the_command_line_is_asked_first(
    home: Path, warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(capsys, "--warehouse", str(warehouse))
    assert found["catalog.default.warehouse"] == (str(warehouse), "--warehouse")
    assert str(found["catalog.default"][0]).startswith("answers: 1 namespace, ")
    found = shown(capsys, "--uri", "sqlite:////nowhere/x.db", code=1)
    assert "/nowhere/x.db not found" in str(found["catalog.default"][0])
    # Without any nothing is asked, and nothing is wrong.
    assert not any(name.startswith("catalog.") for name in shown(capsys))


def test_config_is_shown_in_the_formats_for_text(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from icesql.cli import main

    for output_format, first in (
        ("table", " name "),
        ("csv", "name,value,from\n"),
        ("tsv", "name\tvalue\tfrom\n"),
        ("jsonl", '{"name":"version"'),
        ("markdown", "| name | value | from |\n"),
    ):
        assert main(["config", "--format", output_format]) == 0
        assert capsys.readouterr().out.startswith(first)
    assert main(["config", "--format", "parquet"]) == 1
    assert "this is text, not parquet" in capsys.readouterr().err
    for wrong in (["config", "x"], ["--no-ping", "-c", "SELECT 1"], ["config", "-c", "SELECT 1"]):
        assert main(wrong) == 2
    capsys.readouterr()


def test_what_cannot_be_read_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from icesql.cli import main

    configure(home, "catalog: [")
    assert main(["config"]) == 1
    assert ".pyiceberg.yaml cannot be read" in capsys.readouterr().err
    os.environ["ICESQL_MEMORY_LIMT"] = "1GB"
    configure(home, "")
    try:
        assert main(["config"]) == 0
        assert "did you mean ICESQL_MEMORY_LIMIT?" in capsys.readouterr().err
    finally:
        del os.environ["ICESQL_MEMORY_LIMT"]
