"""A REST catalog behind a gateway that loses, repeats, delays and refuses requests."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from tests.catalog.writes.rest_writes import WritableServer

TOGETHER: Final = "POST /v1/{prefix}/transactions/commit"
# Instead of a status: the connection is closed.
HANGS_UP: Final = 0


@dataclass(frozen=True)
class Relay:
    """The handling of one change: when the catalog applies it, and which response the client gets.

    ``answer`` None is the catalog's own response, to the last sending.
    """

    applies: Literal["once", "twice", "late", "never", "half"] = "once"
    answer: int | None = None
    # The number of GET requests that fail after it.
    down: int = 0


class Gateway(WritableServer):
    """``relays`` handle the next changes; ``looks`` are the statuses of the next GET requests.

    A status of None lets the request pass. ``deliver`` delivers delayed requests. ``after`` is
    called once, after a change was relayed and before its response; ``between`` is called between
    the two sendings of a change that is sent twice.
    """

    def __init__(self, folder: Any) -> None:
        super().__init__(folder)
        self.relays: list[Relay] = []
        self.looks: list[int | None] = []
        self.after: Callable[[], None] | None = None
        self.between: Callable[[], None] | None = None
        self.late: list[Callable[[], int]] = []
        self.changed = 0
        self.config["endpoints"] = [
            "GET /v1/{prefix}/namespaces",
            "GET /v1/{prefix}/namespaces/{namespace}/tables",
            "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "POST /v1/{prefix}/namespaces/{namespace}/tables",
            "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "POST /v1/{prefix}/tables/rename",
            TOGETHER,
        ]

    def deliver(self) -> list[int]:
        """Deliver delayed changes; the catalog's statuses, which no client gets."""
        late, self.late = self.late, []
        return [each() for each in late]

    def catalog(self, request: Any, parts: list[str], query: Any, headers: Any) -> None:
        if isinstance(request, _Relayed):
            self._applied(request, parts, query, headers)
        elif self._is_change(request, parts):
            self._relayed(request, parts, query, headers)
        elif request.command == "GET" and self.looks and (status := self.looks.pop(0)):
            self.send(request, status, {"error": {"message": f"status {status}"}})
        else:
            super().catalog(request, parts, query, headers)

    def _is_change(self, request: Any, parts: list[str]) -> bool:
        match request.command, parts:
            case "POST", ["namespaces", _, "tables"]:
                return not json.loads(request.body).get("stage-create")
            case "POST", ["namespaces", _, "tables", _] | ["transactions", "commit"]:
                return True
            case "POST", ["namespaces", _, "register"]:
                return True
        return False

    def _relayed(self, request: Any, parts: list[str], query: Any, headers: Any) -> None:
        relay = self.relays.pop(0) if self.relays else Relay()
        self.changed += 1
        self.looks = [503] * relay.down or self.looks

        # The connection's next request takes their place.
        command, body = request.command, request.body

        def apply() -> _Relayed:
            made = _Relayed(command, body, relay.applies == "half")
            self.catalog(made, parts, query, headers)
            return made

        status, answer = 200, {}
        if relay.applies == "late":
            self.late.append(lambda: apply().status)
        elif relay.applies != "never":
            for number in range(1 + (relay.applies == "twice")):
                if number and self.between is not None:
                    self.between()
                made = apply()
                status, answer = made.status, made.answer
        after, self.after = self.after, None
        if after is not None:
            after()
        if relay.answer == HANGS_UP:
            request.connection.shutdown(socket.SHUT_RDWR)
        elif relay.answer is None:
            self.send(request, status, answer)
        else:
            told = {"message": f"the gateway says {relay.answer}"}
            self.send(request, relay.answer, {"error": told})

    def _applied(self, request: _Relayed, parts: list[str], query: Any, headers: Any) -> None:
        if parts[-1] == "register":
            self._registered(request, parts)
            return
        if request.is_half:
            body = json.loads(request.body)
            request.body = json.dumps({"table-changes": body["table-changes"][:1]}).encode()
        super().catalog(request, parts, query, headers)

    def _registered(self, request: _Relayed, parts: list[str]) -> None:
        body = json.loads(request.body)
        name = (parts[1], body["name"])
        if name in self.tables:
            self.send(request, 409, {"error": {"message": "there is one"}})
            return
        place = body["metadata-location"]
        metadata = json.loads(Path(place).read_text())
        self.tables[name] = {"metadata-location": place, "metadata": metadata, "config": {}}
        self.send(request, 200, self.tables[name])

    def send(self, request: Any, status: int, content: Any, headers: Any = None) -> None:
        if isinstance(request, _Relayed):
            request.status, request.answer = status, content
        else:
            super().send(request, status, content, headers)


class _Relayed:
    """A request for the catalog, which records the response."""

    status, answer = 0, None

    def __init__(self, command: str, body: bytes, is_half: bool) -> None:
        self.command, self.body, self.is_half = command, body, is_half
