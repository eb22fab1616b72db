"""icesql reads tables that PyIceberg created in catalogs of real servers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icesql
from icesql.errors import StorageError, TableNotFoundError
from tests.catalog import real_servers
from tests.catalog.rest_server import Server
from tests.sessions import fetched

FIRST = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["x", "y", "z"]})
SERVERS = ["iceberg", "iceberg planning", "nessie", "postgresql", "glue", "hive"]
_FLAT = ("postgresql", "glue", "hive")  # namespaces of one level, and no views


class Place:
    """A catalog: ``foreign`` is PyIceberg's, ``properties`` open it for both."""

    def __init__(self, kind: str, properties: dict[str, str]) -> None:
        from pyiceberg.catalog import load_catalog

        self.kind, self.properties = kind, properties
        # icesql finds the driver that is installed, SQLAlchemy takes its own default.
        own = dict(properties)
        if uri := properties.get("uri"):
            own["uri"] = uri.replace("postgresql://", "postgresql+psycopg2://")
        self.foreign = load_catalog("lake", **own)

    def connect(self, **changed: str) -> icesql.Connection:
        given = {**self.properties, **changed}
        return icesql.connect("lake", uri=given.pop("uri", None), properties=given)

    def table(self, *name: str) -> Any:
        for length in range(1, len(name)):
            self.foreign.create_namespace_if_not_exists(name[:length])
        made = self.foreign.create_table(name, schema=FIRST.schema)
        made.append(FIRST)
        return made


@pytest.fixture(scope="module", params=SERVERS)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A catalog of each server that is installed on this machine."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp(request.param)
        match request.param:
            case "iceberg" | "iceberg planning":
                uri = stack.enter_context(real_servers.iceberg_rest(folder))
                properties = {"type": "rest", "uri": uri}
                if request.param == "iceberg planning":
                    # Java's own planner finds the files and the deletes of each scan.
                    properties["scan-planning-mode"] = "server"
            case "hive":
                uri = stack.enter_context(real_servers.hive(folder))
                place = f"file://{folder}/warehouse"
                properties = {"type": "hive", "uri": uri, "warehouse": place}
            case "nessie":
                real_servers.wanted("ICESQL_NESSIE")
                (folder / "s3").mkdir()
                store = stack.enter_context(real_servers.versitygw(folder / "s3"))
                uri = stack.enter_context(real_servers.nessie(folder, store))
                properties = {"type": "rest", "uri": uri, **store}
            case "glue":
                properties = stack.enter_context(real_servers.moto(folder))
            case _:
                uri = stack.enter_context(real_servers.postgresql())
                properties = {"type": "sql", "uri": uri, "warehouse": f"file://{folder}/warehouse"}
        yield Place(request.param, properties)


def test_tables_in_namespaces_of_every_depth(place: Place) -> None:
    names = [("one", "t"), ("one", "two", "t"), ("one", "two", "three", "t"), ("ü x", "t 1")]
    if place.kind in _FLAT:
        names = [("one", "t"), ("second", "t_1")]
    for name in names:
        place.table(*name)
    with place.connect() as connection:
        shown = {row[0] for row in fetched(connection, "SHOW TABLES")}
        assert {".".join(name) for name in names} <= shown
        for name in names:
            quoted = ".".join(f'"{part}"' for part in name)
            rows = fetched(connection, f"SELECT * FROM {quoted} ORDER BY id")
            assert rows == [(1, "x"), (2, "y"), (3, "z")]
        with pytest.raises(TableNotFoundError):
            connection.execute("SELECT * FROM one.nope")


def test_what_is_committed_is_seen(place: Place) -> None:
    table = place.table("seen", "t")
    with place.connect() as connection:
        assert fetched(connection, "SELECT count(*) FROM seen.t") == [(3,)]
        table.append(FIRST)
        assert fetched(connection, "SELECT count(*) FROM seen.t") == [(6,)]
        table.delete("id = 2")
        rows = fetched(connection, "SELECT id, s FROM seen.t ORDER BY ALL")
        assert rows == [(1, "x"), (1, "x"), (3, "z"), (3, "z")]
        table.overwrite(FIRST)
        assert fetched(connection, "SELECT sum(id) FROM seen.t") == [(6,)]
        place.foreign.drop_table(("seen", "t"))
        with pytest.raises(TableNotFoundError):
            connection.execute("SELECT count(*) FROM seen.t")


def test_evolution_and_time_travel(place: Place) -> None:
    if place.kind == "nessie":
        pytest.skip("Nessie 0.99 refuses PyIceberg's change of schema, and keeps one snapshot")
    from pyiceberg.types import LongType

    table = place.table("travel", "t")
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "v1").commit()
    with table.update_schema() as update:
        update.add_column("extra", LongType())
        update.rename_column("s", "name")
    table.refresh()
    more = {"id": pa.array([4], pa.int64()), "name": ["w"], "extra": pa.array([7], pa.int64())}
    table.append(pa.table(more))
    for changed in ({}, {"snapshot-loading-mode": "refs"}, {"rest-page-size": "1"}):
        with place.connect(**changed) as connection:
            sql = "SELECT * FROM travel.t ORDER BY id"
            rows = fetched(connection, sql)
            assert rows == [(1, "x", None), (2, "y", None), (3, "z", None), (4, "w", 7)]
            for version in (str(first), "'v1'"):
                sql = f"SELECT * FROM travel.t VERSION AS OF {version} ORDER BY id"
                assert fetched(connection, sql) == [(1, "x"), (2, "y"), (3, "z")]
            assert len(fetched(connection, "SHOW SNAPSHOTS FROM travel.t")) == 2


def test_a_view_is_read(place: Place) -> None:
    if place.kind in _FLAT:
        pytest.skip("a catalog of PyIceberg's has no views")
    import requests

    place.foreign.create_namespace_if_not_exists(("views",))
    with place.connect() as connection:
        fetched(connection, "SHOW TABLES")
        prefix = "main/" if place.kind == "nessie" else ""
        body = json.loads(Path(__file__).with_name("new_view.json").read_text())
        url = f"{place.properties['uri']}/v1/{prefix}namespaces/views/views"
        requests.post(url, json=body, timeout=100).raise_for_status()
        assert fetched(connection, "SELECT * FROM views.v") == [(1,)]
        assert fetched(connection, "SHOW VIEWS FROM views") == [("views.v", False)]


def test_scan_reports_are_taken(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    if place.kind != "iceberg":
        pytest.skip("Nessie switches reports off, and the others have none")
    from icesql.catalog.rest.catalog import RestCatalog

    done, answers = threading.Event(), []
    post = RestCatalog._post_report

    def posted(self: RestCatalog, *report: Any) -> None:
        try:
            answers.append(post(self, *report))
        except icesql.Error as error:
            answers.append(error)
        done.set()

    monkeypatch.setattr(RestCatalog, "_post_report", posted)
    place.table("reported", "t")
    with place.connect() as connection:
        fetched(connection, "SELECT s FROM reported.t WHERE id > 1")
        assert done.wait(30)
    assert answers == [None]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The properties of a store that checks signatures."""
    with real_servers.versitygw(tmp_path_factory.mktemp("store")) as properties:
        yield properties


@pytest.mark.parametrize(
    ("changed", "path", "told"),
    [
        ({"s3.secret-access-key": "wrong-secret-of-mine"}, "s3://lake/t", "SignatureDoesNotMatch"),
        (
            {"s3.access-key-id": "AKIDNOBODYNOBODYNOBO"},
            "s3://lake/t",
            "No user exists|InvalidAccessKeyId",
        ),
        ({}, "s3://nowhere/t", "NoSuchBucket"),
    ],
)
def test_a_store_says_why_it_refuses(
    store: dict[str, str], changed: dict[str, str], path: str, told: str
) -> None:
    with (
        icesql.connect(properties={**store, **changed}) as connection,
        pytest.raises(StorageError, match=told) as caught,
    ):
        connection.execute(f"SELECT * FROM iceberg_scan('{path}')")
    text = str(caught.value)
    assert path in text
    assert not any(value in text for name, value in {**store, **changed}.items() if "key" in name)


def test_a_table_by_path_in_a_real_store(store: dict[str, str], tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    given = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": "s3://lake/w", **store}
    foreign = SqlCatalog("lake", **given)
    foreign.create_namespace("a")
    table = foreign.create_table("a.t", schema=FIRST.schema)
    table.append(FIRST)
    with icesql.connect(properties=store) as connection:
        for path in (table.location(), table.metadata_location):
            sql = f"SELECT count(*), max(s) FROM iceberg_scan('{path}') WHERE id > 1"
            assert fetched(connection, sql) == [(2, "z")]


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_a_real_store_takes_what_a_catalog_signs(
    store: dict[str, str], tmp_path: Path, reader: str
) -> None:
    """AWS's signatures, made by its own library with keys that only the catalog has."""
    botocore = pytest.importorskip("botocore", reason="botocore, of the extra glue, is missing")
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    from pyiceberg.catalog.sql import SqlCatalog

    assert botocore
    given = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": "s3://lake/signed", **store}
    foreign = SqlCatalog("lake", **given)
    foreign.create_namespace(reader)
    table = foreign.create_table((reader, "a table=1"), schema=FIRST.schema)
    table.append(FIRST)
    keys = Credentials(store["s3.access-key-id"], store["s3.secret-access-key"])

    class Notary(Server):
        signed = 0

        def answer(self, request: Any) -> None:
            if not request.path.endswith("/v1/aws/s3/sign"):
                super().answer(request)
                return
            self.signed += 1
            body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
            made = AWSRequest(body["method"], body["uri"])
            S3SigV4Auth(keys, "s3", body["region"]).add_auth(made)
            headers = {name: [value] for name, value in made.headers.items()}
            told = {"Cache-Control": "private"}
            self.send(request, 200, {"uri": body["uri"], "headers": headers}, told)

    server = Notary()
    try:
        server.tables[reader, "t"] = {
            "metadata": json.loads(table.metadata.model_dump_json()),
            "metadata-location": table.metadata_location,
            "config": {"s3.remote-signing-enabled": "true"},
        }
        own = {key: value for key, value in store.items() if "access-key" not in key}
        properties = {"type": "rest", **own}
        with icesql.connect("lake", uri=server.uri, properties=properties) as connection:
            connection.execute("SET cache = off")
            connection.execute(f"SET local_reader = '{reader}'")
            sql = f"SELECT count(*), max(s) FROM {reader}.t WHERE id > 1"
            assert fetched(connection, sql) == [(2, "z")]
        assert server.signed
    finally:
        server.close()
