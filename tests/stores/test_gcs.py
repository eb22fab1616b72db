"""Google's storage: a table in a double of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

import icesql
from icesql.errors import StorageError
from tests.catalog import real_servers
from tests.sessions import answer, fetched
from tests.stores.published import thousand


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URL of a double and the path of a table in its bucket ``lake``."""
    folder = tmp_path_factory.mktemp("gcs")
    real_servers.wanted("ICESQL_GCS")
    here = thousand(folder, "gs://lake/")
    shutil.copytree(folder / "lake", folder / "root" / "lake")
    with real_servers.gcs(folder) as url:
        yield url, here


@pytest.mark.parametrize("proof", [{"gcs.oauth2.token": "ya29.token"}, {"gcs.anonymous": "true"}])
@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_a_table_is_read(lake: tuple[str, str], proof: dict[str, str], reader: str) -> None:
    url, here = lake
    with icesql.connect(properties={"gcs.service.host": url, **proof}) as connection:
        connection.execute(f"SET local_reader = '{reader}'")
        for path in (here, here.rpartition("/metadata/")[0]):
            sql = f"SELECT count(*), sum(id) FROM iceberg_scan('{path}') WHERE id >= 990"
            assert fetched(connection, sql) == [(10, sum(range(990, 1000)))]


def test_what_is_not_there_is_told(lake: tuple[str, str]) -> None:
    url, here = lake
    path = f"{here.rpartition('/')[0]}/none.metadata.json"
    with pytest.raises(StorageError, match=r"gs://lake/t/metadata/none\.metadata\.json"):
        answer(
            f"SELECT * FROM iceberg_scan('{path}')",
            properties={"gcs.service.host": url, "gcs.anonymous": "true"},
        )
