"""Steps of scenes with a REST catalog: its server's content, the requests, and the responses."""

from __future__ import annotations

import json
from typing import Any

from icesql.catalog.rest.catalog import RestCatalog
from tests.catalog.rest_server import ORDERS, Server, rest
from tests.scenes import Stage


class Client(Stage):
    """A catalog of ``server``; ``other`` is a server that should get no requests.

    Names are written with dots; the default table is ``shop.orders``.
    """

    def __init__(self, server: Server, other: Server) -> None:
        super().__init__()
        self.server, self.other = server, other
        self.values |= {"uri": server.uri, "other": other.uri}

    # ------------------------------------------------------------------ what the servers have

    def config(self, text: str) -> None:
        self.server.config |= json.loads(text)

    def table(self, text: str) -> None:
        """Set further members of the table's response."""
        self.server.tables[ORDERS] |= json.loads(text)

    def location(self, place: str) -> None:
        metadata = self.server.tables[ORDERS]["metadata"]
        self.server.tables[ORDERS]["metadata"] = metadata | {"location": place}

    def also(self, *names: str) -> None:
        """Add further names of the table."""
        for name in names:
            self.server.tables[_parts(name)] = {**self.server.tables[ORDERS]}

    def view(self, name: str) -> None:
        self.server.views.add(_parts(name))

    def page(self, size: str) -> None:
        self.server.page = int(size) or None

    def needs_token(self) -> None:
        self.server.needs_token = True

    def renew(self, token: str) -> None:
        """The server rejects the token that it issued."""
        self.server.tokens.append(token)

    def busy(self, *statuses: str) -> None:
        self.server.failures = [*map(int, statuses)]

    def redirect(self, path: str, status: str, place: str = "") -> None:
        self.server.redirects[path] = int(status), place

    def reports(self) -> None:
        """The server records metrics like other requests."""
        self.server.reporting = 0

    def follow(self) -> None:
        """The other server has the same tables."""
        self.other.tables = self.server.tables

    # ------------------------------------------------------------------ requests

    def catalog(self, text: str = "{}") -> None:
        """Open a catalog with these properties."""
        self.server.asked.clear()
        self.opened = rest(self.server, **json.loads(text))

    def typo(self) -> None:
        """Open a catalog at a wrong address."""
        self.opened = RestCatalog("lake", {"uri": f"{self.server.uri}/typo"})

    def load(self, name: str = "shop.orders") -> None:
        self.loaded = self.opened.load(_parts(name))

    def is_named(self, name: str) -> None:
        """The name of the table loaded last, in the catalog's spelling."""
        assert self.loaded.identifier == _parts(name)

    def snapshots(self, count: str) -> None:
        assert len(self.loaded.metadata.snapshots) == int(count)

    def tables(self, namespace: str, *names: str) -> None:
        found = self.opened.tables(_parts(namespace))
        assert found == [(*_parts(namespace), name) for name in names]

    def namespaces(self, *names: str) -> None:
        assert self.opened.namespaces() == [_parts(name) for name in names]

    def tell(self, name: str = "shop.orders") -> None:
        """Send metrics about a table."""
        endpoint = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"
        self.opened.request(endpoint, _parts(name), body={})

    # ------------------------------------------------------------------ what came of it

    def asked(self, *paths: str) -> None:
        """The paths of the requests since the catalog was opened, except the first one."""
        assert self.server.paths()[1:] == [*paths]

    def has_asked(self, path: str) -> None:
        assert path in self.server.paths()

    def never(self, word: str) -> None:
        """No requested path contains this word."""
        assert not any(word in path for path in self.server.paths())

    def at_most(self, count: str) -> None:
        assert len(self.server.asked) <= int(count)

    def others(self, *paths: str) -> None:
        """The paths of the requests to the other server."""
        assert self.other.paths() == [*paths]

    def queried(self, text: str) -> None:
        """The query of the first request."""
        assert self.server.asked[0][2] == json.loads(text)

    def sent(self, header: str, value: str = "") -> None:
        """A header of the last request; "" means that it is missing."""
        assert self.server.asked[-1][3].get(header, "") == value

    def tokens(self, *names: str) -> None:
        """The tokens that the server issued."""
        assert self.server.tokens == [*names]

    def other_tokens(self, *names: str) -> None:
        assert self.other.tokens == [*names]

    def proofs(self, *wanted: str) -> None:
        """The last part of each path, and the token of its request."""
        assert [
            f"{path.rpartition('/')[2]}:{headers.get('authorization', '').removeprefix('Bearer ')}"
            for _, path, _, headers in self.server.asked[1:]
        ] == [*wanted]

    def property(self, name: str, value: str = "") -> None:
        """A property of the catalog, or of the storage of the table loaded last."""
        found: Any = getattr(self, "loaded", None)
        properties = self.opened.properties if found is None else found.storage.properties
        assert properties.get(name, "") == value

    def files_are_opened_by(self, text: str) -> None:
        assert dict(self.loaded.storage.properties) == json.loads(text)

    def vended(self, place: str, key: str) -> None:
        """The access key that the catalog vends for a location of the table on renewal."""
        assert self.opened.credentials(ORDERS, place)["s3.access-key-id"] == key

    def hides(self, text: str) -> None:
        """The last error does not contain this text."""
        assert text not in str(self.error)

    def says(self, text: str) -> None:
        assert text in str(self.error)


def _parts(name: str) -> tuple[str, ...]:
    return tuple(name.split("."))
