"""Starts third-party catalog servers and stores that are installed on this machine.

Environment: ``ICESQL_ICEBERG_REST`` is a folder with the jars of Iceberg's REST fixture,
``ICESQL_NESSIE`` the runnable jar of Nessie, ``ICESQL_JAVA`` the java that runs it (21 and newer;
without it the one on the PATH), ``ICESQL_VERSITYGW`` the S3 server versitygw, ``ICESQL_AZURITE``
the script azurite/dist/src/blob/main.js of Azurite, the double of Azure's storage, ``ICESQL_GCS``
the double of Google's, fake-gcs-server, ``ICESQL_HIVE`` a folder with Hive's standalone metastore
and the libraries of Hadoop that it needs. PostgreSQL is found on the PATH, moto
(Glue) where it is installed. ``tests/campaigns/real_servers.py`` installs them all.
"""

from __future__ import annotations

import base64
import hmac
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import pytest

KEYS = {"s3.access-key-id": "AKIDICESQLICESQLICES", "s3.secret-access-key": "only-for-this-test-xx"}
# The account of the double of Azure's storage, the same everywhere.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
_SECONDS = 120.0


def free_port() -> int:
    """An unused port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def started(command: list[str], port: int, folder: Path, **environment: str) -> Iterator[None]:
    """Run a server in the block, which begins once the server listens on ``port``."""
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=folder,
            env={**os.environ, **environment},
        )
    try:
        until = time.monotonic() + _SECONDS
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"{command[0]} did not start: {log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def wanted(variable: str) -> str:
    """The path in a variable of the environment; skips the test without one."""
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} is not set: see tests/campaigns/real_servers.py")
    if not os.path.exists(path):
        raise AssertionError(f"{variable} leads nowhere: {path}")
    return path


@contextmanager
def iceberg_rest(folder: Path) -> Iterator[str]:
    """Iceberg's own REST fixture over a SQLite catalog; the URI."""
    jars, port = wanted("ICESQL_ICEBERG_REST"), free_port()
    command = ["java", "-Xmx256m", "-cp", f"{jars}/*", "org.apache.iceberg.rest.RESTCatalogServer"]
    environment = {
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_WAREHOUSE": str(folder / "warehouse"),
        "CATALOG_REST_PORT": str(port),
    }
    with started(command, port, folder, **environment):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def versitygw(folder: Path) -> Iterator[dict[str, str]]:
    """An S3 server that checks signatures, with the bucket ``lake``; its FileIO properties."""
    binary, port = wanted("ICESQL_VERSITYGW"), free_port()
    (folder / "root" / "lake").mkdir(parents=True)
    command = [binary, "--port", f"127.0.0.1:{port}", "posix", str(folder / "root")]
    keys = {
        "ROOT_ACCESS_KEY": KEYS["s3.access-key-id"],
        "ROOT_SECRET_KEY": KEYS["s3.secret-access-key"],
    }
    with started(command, port, folder, **keys):
        yield {
            **KEYS,
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
        }


@contextmanager
def nessie(folder: Path, store: dict[str, str]) -> Iterator[str]:
    """Nessie's REST catalog, whose warehouse is in ``store``; the URI."""
    jar, port, management = wanted("ICESQL_NESSIE"), free_port(), free_port()
    form = Path(__file__).with_name("nessie.properties").read_text()
    properties = form.format(port=port, management=management, store=store)
    given = [f"-D{each}" for each in properties.splitlines()]
    java = os.environ.get("ICESQL_JAVA") or "java"
    with started([java, "-Xmx700m", *given, "-jar", jar], port, folder):
        yield f"http://127.0.0.1:{port}/iceberg"


@contextmanager
def moto(folder: Path) -> Iterator[dict[str, str]]:
    """moto's doubles of AWS Glue and S3, with the bucket ``lake``; a catalog's properties."""
    boto3 = pytest.importorskip("boto3", reason="boto3, of the extra glue, is missing")
    pytest.importorskip("moto.server", reason="moto[server] is missing")
    port = free_port()
    code = f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"
    with started([sys.executable, "-c", code], port, folder):
        endpoint = f"http://127.0.0.1:{port}"
        store = {"s3.endpoint": endpoint, "s3.region": "us-east-1", **KEYS}
        keys = dict(zip(("aws_access_key_id", "aws_secret_access_key"), KEYS.values(), strict=True))
        client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)
        client.create_bucket(Bucket="lake")
        glue = {name.replace("s3.", "glue."): value for name, value in store.items()}
        yield {"type": "glue", "warehouse": "s3://lake/glue", **store, **glue}


@contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """Azurite, Microsoft's double of Azure's storage; the endpoint of its only account."""
    binary, port = wanted("ICESQL_AZURITE"), free_port()
    command = [
        *("node", binary, "--blobHost", "127.0.0.1", "--blobPort", str(port)),
        *("--inMemoryPersistence", "--silent", "--skipApiVersionCheck"),
    ]
    with started(command, port, folder):
        yield f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"


def azure_sas() -> str:
    """A token for everything in the double's account, for a day."""
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86_400))
    allowed, services, kinds, version = "rwdlac", "b", "sco", "2018-11-09"
    text = "\n".join(
        [AZURE_ACCOUNT, allowed, services, kinds, "", until, "", "http,https", version, ""]
    )
    key = base64.b64decode(AZURE_KEY)
    signature = base64.b64encode(hmac.digest(key, text.encode(), "sha256")).decode()
    parts = {
        "sv": version, "ss": services, "srt": kinds, "sp": allowed, "se": until,
        "spr": "http,https", "sig": signature,
    }  # fmt: skip
    return urlencode(parts)


def azure_container(endpoint: str, folder: Path, container: str) -> None:
    """Create a container with the files of a folder."""
    sas = azure_sas()

    def put(name: str, query: str, data: bytes = b"", **headers: str) -> None:
        url = f"{endpoint}/{quote(name)}?{query}{sas}"
        request = Request(url, data, {"x-ms-version": "2021-08-06", **headers}, method="PUT")
        urlopen(request, timeout=100).close()

    put(container, "restype=container&")
    for path in folder.rglob("*"):
        if path.is_file():
            name = f"{container}/{path.relative_to(folder).as_posix()}"
            put(name, "", path.read_bytes(), **{"x-ms-blob-type": "BlockBlob"})


@contextmanager
def gcs(folder: Path) -> Iterator[str]:
    """A double of Google's storage: each folder in ``folder``/root is a bucket; its URL."""
    binary, port = wanted("ICESQL_GCS"), free_port()
    (folder / "root").mkdir(exist_ok=True)
    command = [
        *(binary, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
        *("-backend", "memory", "-data", str(folder / "root")),
        *("-public-host", f"127.0.0.1:{port}", "-log-level", "error"),
    ]
    with started(command, port, folder):
        yield f"http://127.0.0.1:{port}"


_METASTORE = """<configuration>
<property><name>javax.jdo.option.ConnectionURL</name>
<value>jdbc:derby:;databaseName={folder}/db;create=true</value></property>
<property><name>javax.jdo.option.ConnectionDriverName</name>
<value>org.apache.derby.jdbc.EmbeddedDriver</value></property>
<property><name>metastore.warehouse.dir</name><value>file://{folder}/warehouse</value></property>
<property><name>metastore.task.threads.always</name>
<value>org.apache.hadoop.hive.metastore.events.EventCleanerTask</value></property>
<property><name>metastore.expression.proxy</name>
<value>org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy</value></property>
</configuration>"""


@contextmanager
def hive(folder: Path) -> Iterator[str]:
    """Hive's standalone metastore over Derby; its thrift URI."""
    jars, port = Path(wanted("ICESQL_HIVE")), free_port()
    pytest.importorskip("thrift", reason="thrift, of the extra hive, is missing")
    home = next(jars.glob("apache-hive-metastore-*"))
    (folder / "conf").mkdir()
    (folder / "conf" / "metastore-site.xml").write_text(_METASTORE.format(folder=folder))
    path = os.pathsep.join([str(folder / "conf"), f"{home}/lib/*", f"{jars}/hadoop/*"])
    java = ["java", "-Xmx300m", "-cp", path]
    package = "org.apache.hadoop.hive.metastore"
    made = [*java, f"{package}.tools.MetastoreSchemaTool", "-dbType", "derby", "-initSchema"]
    environment = {**os.environ, "METASTORE_HOME": str(home)}
    subprocess.run(made, check=True, capture_output=True, cwd=folder, env=environment)
    with started([*java, f"{package}.HiveMetaStore", "-p", str(port)], port, folder):
        yield f"thrift://127.0.0.1:{port}"


@contextmanager
def postgresql() -> Iterator[str]:
    """A PostgreSQL server of its own; the URI of an empty database."""
    if shutil.which("initdb") is None or shutil.which("postgres") is None:
        pytest.skip("PostgreSQL's initdb and postgres are not on the PATH")
    pytest.importorskip("psycopg2", reason="psycopg2, of the extra sql-postgres, is missing")
    port = free_port()
    # PostgreSQL refuses to run as root.
    user = ["setpriv", "--reuid=nobody", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="icesql-postgres-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        place = folder / "data"
        initdb = [*user, "initdb", "-D", str(place), "-U", "me", "-A", "trust", "-E", "UTF8"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder)
        command = [*user, "postgres", "-D", str(place), "-p", str(port), "-h", "127.0.0.1"]
        with started([*command, "-k", str(place)], port, folder):
            yield f"postgresql://me@127.0.0.1:{port}/postgres"
