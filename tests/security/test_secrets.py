"""No secret leaves the process: kinds of catalogs × statements × every channel of an error."""

from __future__ import annotations

import base64
import json
import logging
import pickle
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests import warm
from tests.catalog.rest_server import Server
from tests.rows import rows_of
from tests.sessions import answer, fetched


class _Echo(Server):
    """A server that echoes its requests in error messages, as careless servers do."""

    def answer(self, request: Any) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0))).decode()
        told = f"refused {request.command} {request.path} with {dict(request.headers)} and {body}"
        answer: Any = {"error": {"message": told, "type": "NotAuthorized", "code": 401}}
        if "/html/" in request.path:
            answer = f"<html><title>Sign in</title>{told}</html>".encode()
        self.send(request, 401, None if request.command == "HEAD" else answer)


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    """``host:port`` of the server."""
    with closing(_Echo()) as server:
        yield server.uri.removeprefix("http://")


SECRET = "S3CRET/value+of=mine"
FORMS = (
    SECRET,
    "S3CRET%2Fvalue%2Bof%3Dmine",
    "S3CRET/value%2Bof%3Dmine",
    base64.b64encode(SECRET.encode()).decode(),
    base64.b64encode(f"client-id:{SECRET}".encode()).decode(),
    base64.b64encode(f"me:{SECRET}".encode()).decode(),
    "S3CRET",
)
QUOTED = "S3CRET%2Fvalue%2Bof%3Dmine"

STATEMENTS = (
    "SELECT * FROM demo.trips",
    "SHOW TABLES",
    "SHOW NAMESPACES",
    "DESCRIBE demo.trips",
    "SHOW CREATE TABLE demo.trips",
    "EXPLAIN SELECT * FROM demo.trips",
    "SHOW SNAPSHOTS FROM demo.trips",
)


def channels(error: BaseException) -> Iterator[tuple[str, str]]:
    """Every text by which an exception can be shown."""
    printed = "".join(traceback.format_exception(error))
    yield (
        "traceback",
        "\n".join(line for line in printed.splitlines() if not line.startswith("    ")),
    )
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        name = type(one).__name__
        yield f"str of {name}", str(one)
        yield f"repr of {name}", repr(one)
        yield f"args of {name}", repr(one.args)
        yield f"attributes of {name}", repr(vars(one))
        yield f"notes of {name}", repr(getattr(one, "__notes__", ""))
        for held in vars(one).values():
            yield f"inside {name}", repr(getattr(held, "__dict__", ""))
        waiting += [one.__cause__, one.__context__]
    copy = pickle.loads(pickle.dumps(error))
    yield "pickle", f"{copy!s} {copy!r} {vars(copy)!r}"
    yield "pickled bytes", pickle.dumps(error).decode("latin-1")


def assert_clean(error: BaseException) -> None:
    for channel, text in channels(error):
        for form in FORMS:
            assert form not in text, f"{form} in {channel}: {text}"


@rows_of(__file__, "catalogs_with_secrets.tsv", "kind", "given")
def test_no_channel_of_an_error_tells_a_secret(
    kind: str,
    given: str,
    echo: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    for name, text in (("ECHO", echo), ("SECRET", SECRET), ("QUOTED", QUOTED)):
        given = given.replace(name, text)
    properties = json.loads(given)
    uri = properties.pop("uri", None)
    caplog.set_level(logging.INFO)
    for statement in STATEMENTS if kind.startswith("rest") else STATEMENTS[:2]:
        with pytest.raises(icesql.Error) as caught:
            answer(statement, catalog="lake", uri=uri, properties=properties)
        assert_clean(caught.value)
        assert "\n" not in str(caught.value)
        assert not any(form in caplog.text for form in FORMS)


PATHS = (
    "s3://AKIDEXAMPLE:S3CRETvalue@bucket/table",
    "https://host/table?X-Amz-Signature=S3CRETvalue&X-Amz-Expires=60",
    "s3://bucket/t/metadata/v1.metadata.json?X-Amz-Security-Token=S3CRETvalue",
    "gs://bucket/t?X-Goog-Signature=S3CRETvalue",
    "abfss://container@account.dfs.core.windows.net/t?sv=2024&sig=S3CRETvalue",
    "ftp://me:S3CRETvalue@host/t",
    "/no/such/folder?token=S3CRETvalue",
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "statement", ["SELECT * FROM iceberg_scan('{}')", "SELECT * FORM iceberg_scan('{}')"]
)
def test_secrets_in_the_urls_of_a_statement_are_masked(
    path: str, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.startswith(("s3", "gs", "abfss")) and "FORM" not in statement:
        # No request is sent to the store: opening the path fails before.

        def refuse(*_: Any) -> Any:
            raise OSError(f"cannot open {path}")

        monkeypatch.setattr("icesql.storage.remote.shared_client", refuse)
    with pytest.raises(icesql.Error) as caught:
        answer(statement.format(path))
    assert_clean(caught.value)
    assert "***" in caught.value.args[0]  # a long line is cut where it is shown


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "abfss", "hdfs"])
@pytest.mark.parametrize("secret", ["S3CRETvalue", "S3CRET/value", "S3%43RETvalue"])
def test_a_path_with_credentials_is_refused_before_a_store_is_asked(
    scheme: str, secret: str
) -> None:
    with icesql.connect() as connection:
        for statement in (
            f"SELECT * FROM iceberg_scan('{scheme}://AK:{secret}@bucket/t')",
            f"SELECT * FROM iceberg_scan('{scheme}://AK:{secret}@bucket/t/metadata/v1.metadata.json')",
        ):
            with pytest.raises(icesql.Error) as caught:
                fetched(connection, statement)
            assert_clean(caught.value)
            for error in behind(caught.value):
                assert "CRET" not in f"{error} {error!r} {vars(error)}"


def behind(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and its causes and contexts."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def test_what_a_server_quotes_of_an_unknown_secret_is_masked_behind_the_error_too() -> None:
    told = {"error": {"message": "bad credential id:S3CRETvalue9 / S3CRETvalue9", "code": 403}}
    with closing(Server()) as server:
        server.answer = lambda request: server.send(request, 403, told)  # type: ignore[method-assign]
        with pytest.raises(icesql.Error) as caught:
            answer("SELECT * FROM s.t", catalog="c", uri=server.uri)
    for error in behind(caught.value):
        assert "S3CRET" not in f"{error} {error!r} {vars(error)}"


def test_no_line_of_a_log_holds_a_secret_of_an_address(
    echo: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """urllib3 logs each request at DEBUG, with its query string."""
    caplog.set_level("DEBUG")
    for name in ("urllib3", "urllib3.connectionpool"):
        # What other packages made of these loggers in this process.
        caplog.set_level("DEBUG", logger=name)
        monkeypatch.setattr(logging.getLogger(name), "disabled", False)
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    with pytest.raises(icesql.Error):
        answer("SHOW TABLES", uri=f"http://{echo}/?token={QUOTED}&sig=S3CRET9")
    assert any(each.name == "urllib3.connectionpool" for each in caplog.records)
    assert "GET /?token=***" in caplog.text
    assert not any(form in caplog.text for form in FORMS), caplog.text


def test_notes_and_explain_mask_what_a_url_holds(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.explain import report

    monkeypatch.setattr(report, "as_text", lambda _: ["skipped s3://b/x?sig=S3CRETvalue by …"])
    with icesql.connect(warehouse=warehouse) as connection:
        rows = fetched(connection, "EXPLAIN SELECT * FROM shop.orders")
    assert rows == [("skipped s3://b/x?sig=*** by …",)]


def test_an_error_while_rows_are_fetched_is_clean_too(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with icesql.connect(warehouse=warehouse, properties={"s3.session-token": SECRET}) as connection:
        cursor = connection.execute("SELECT * FROM shop.orders")

        def fail(*_: Any) -> Any:
            try:
                raise OSError(f"GET https://b.s3/x?X-Amz-Signature=S3CRETvalue said {SECRET}")
            except OSError as error:
                raise icesql.StorageError("s3://b/x", str(error)) from error

        monkeypatch.setattr(cursor._result, "fetch", fail)
        with pytest.raises(icesql.StorageError) as caught:
            cursor.fetchall()
        assert_clean(caught.value)


def test_the_command_tells_no_secret(echo: str) -> None:
    uri = f"http://me:{QUOTED}@{echo}/?token={QUOTED}"
    for more in ([], ["--debug"], ["-v"]):
        done = warm.icesql("--catalog", "x", "--uri", uri, *more, "-c", "SHOW TABLES")
        assert done.returncode == 1
        assert not any(form in done.stdout + done.stderr for form in FORMS), done.stderr


def test_ordinary_names_stay_readable() -> None:
    with icesql.connect(properties={"token": "abc", "password": "tokens"}) as connection:
        for path in ("/data/token/secret.db/password=1/t", "/keys/sig=5/t"):
            with pytest.raises(icesql.TableNotFoundError) as caught:
                connection.execute(f"SELECT * FROM iceberg_scan('{path}')")
            assert path in str(caught.value)
        rows = fetched(connection, "SELECT 'http://h/?token=abc' AS url")
        assert "token=abc" in str(rows)
