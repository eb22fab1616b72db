"""An S3 server for tests and benchmarks, in one process: a folder a bucket, faults on demand.

It speaks GET (with Range), HEAD, PUT (also in parts) and ListObjectsV2, and checks no signature. Every request waits
``latency`` seconds, every connection gives at most ``bandwidth`` bytes a second, and all of them
are counted. ``Faults`` decides what goes wrong.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_CHUNK = 256 << 10
_REASONS = {200: "OK", 206: "Partial Content", 404: "Not Found", 403: "Forbidden"}


@dataclass
class Request:
    """One request as the server saw it; ``first`` and ``last`` are of its range, or None.

    ``round`` is one more than that of any request which was answered before it came.
    """

    method: str
    path: str
    range: tuple[int | None, int | None] | None
    headers: dict[str, str]
    query: dict[str, list[str]]
    sent: int = 0
    round: int = 1
    body: bytes = b""

    @property
    def is_data(self) -> bool:
        return self.path.endswith((".parquet", ".avro", ".orc")) and "/data/" in self.path


@dataclass
class Answer:
    """What to send: ``cut`` bytes of the body at most (then the connection ends), ``stall`` first."""

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    stall: float = 0.0


# Called for each request; None means a normal response.
Fault = Callable[[Request], Answer | None]


def error(status: int, code: str, message: str) -> Answer:
    """An error in S3's own form."""
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code>'
        f"<Message>{escape(message)}</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>"
    )
    return Answer(status, body.encode(), {"Content-Type": "application/xml"})


def at_random(seed: int, errors: float, cuts: float, slow: float, stall: float = 0.2) -> Fault:
    """A share of the requests fails with 500 or 503, is cut in its body, or is slow."""
    chance = random.Random(seed)
    lock = threading.Lock()

    def decide(request: Request) -> Answer | None:
        with lock:
            draw, kind, cut = chance.random(), chance.random(), chance.random()
        if draw < errors:
            if kind < 0.5:
                return error(503, "SlowDown", "Please reduce your request rate.")
            return error(500, "InternalError", "We encountered an internal error.")
        if draw < errors + cuts:
            return Answer(cut=int(cut * 4096))
        if draw < errors + cuts + slow:
            return Answer(stall=stall)
        return None

    return decide


class Store:
    """The server. ``endpoint`` is its URL; use it as ``with Store(folder).running() as store``."""

    def __init__(
        self, folder: Path, *, latency: float = 0.0, bandwidth: float | None = None
    ) -> None:
        self.folder, self.latency, self.bandwidth = folder, latency, bandwidth
        self.requests: list[Request] = []
        self.most_at_once = self._at_once = self._answered = 0
        self.fault: Fault | None = None
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._parts: dict[tuple[str, int], bytes] = {}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def place(self) -> dict[str, str]:
        """The FileIO properties for this server, without keys."""
        return {name: value for name, value in self.properties().items() if "key" not in name}

    def properties(self, key: str = "AKIATESTTESTTESTTEST") -> dict[str, str]:
        """FileIO properties for this server."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": key,
            "s3.secret-access-key": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
        }

    def clear(self) -> None:
        """Count from zero."""
        self.requests, self.most_at_once, self._answered = [], self._at_once, 0

    @property
    def rounds(self) -> int:
        """The length of the longest chain of sequential requests: the multiplier of latency."""
        return max((each.round for each in self.requests), default=0)

    @property
    def data_requests(self) -> list[Request]:
        return [each for each in self.requests if each.is_data]

    @property
    def keys(self) -> set[str]:
        """The public names of the keys that requests were signed with, "" for one that was not."""
        proofs = (each.headers.get("authorization", "") for each in self.requests)
        found = (re.search(r"Credential=(\w+)/", proof) for proof in proofs)
        return {each[1] if each else "" for each in found}

    @contextmanager
    def running(self) -> Iterator[Store]:
        """The server runs in a thread of its own inside the block."""
        started, ended = threading.Event(), threading.Event()
        loop = asyncio.new_event_loop()

        def run() -> None:
            asyncio.set_event_loop(loop)
            server = loop.run_until_complete(
                asyncio.start_server(self._connection, "127.0.0.1", self.port, limit=1 << 20)
            )
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            loop.run_forever()
            server.close()
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0.01))
            loop.close()
            ended.set()

        threading.Thread(target=run, name="store", daemon=True).start()
        started.wait()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(loop.stop)
            ended.wait(5)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                request = _parsed(head)
                if "expect" in request.headers:  # the client waits a second for it
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                if length := int(request.headers.get("content-length", 0)):
                    request.body = await reader.readexactly(length)
                elif request.headers.get("transfer-encoding") == "chunked":
                    while size := int(await reader.readuntil(b"\r\n"), 16):
                        request.body += (await reader.readexactly(size + 2))[:-2]
                    await reader.readuntil(b"\r\n")
                request.round = self._answered + 1
                self.requests.append(request)
                self._at_once += 1
                self.most_at_once = max(self.most_at_once, self._at_once)
                try:
                    whole = await self._answer(request, writer)
                finally:
                    self._at_once -= 1
                    self._answered = max(self._answered, request.round)
                if not whole:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may be used again."""
        begin = time.monotonic()
        fault = self.fault(request) if self.fault is not None else None
        wait = self.latency + (fault.stall if fault else 0.0)
        if wait:
            await asyncio.sleep(wait)
        if fault is None or (fault.body is None and fault.status == 200):
            answer = self._found(request)
            if fault is not None:
                answer.cut = fault.cut
                answer.headers |= fault.headers
        else:
            answer = fault
        body = answer.body or b""
        headers = {
            "Content-Length": str(len(body)),
            "x-amz-request-id": "4442587FB7D0A2F9",
            "Date": formatdate(usegmt=True),
            **answer.headers,
        }
        reason = _REASONS.get(answer.status, "Error")
        text = f"HTTP/1.1 {answer.status} {reason}\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in headers.items()
        )
        writer.write(text.encode() + b"\r\n")
        if request.method != "HEAD":
            end = len(body) if answer.cut is None else min(answer.cut, len(body))
            await self._send(memoryview(body)[:end], writer, begin + wait)
            request.sent = end
            if end < len(body):
                writer.transport.abort()
                return False
        await writer.drain()
        return True

    async def _send(self, body: memoryview, writer: asyncio.StreamWriter, begin: float) -> None:
        if self.bandwidth is None or len(body) <= 1 << 14:
            writer.write(body)
            return
        for position in range(0, len(body), _CHUNK):
            part = body[position : position + _CHUNK]
            writer.write(part)
            await writer.drain()
            due = begin + (position + len(part)) / self.bandwidth
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)

    def _found(self, request: Request) -> Answer:
        if "list-type" in request.query:
            return self._listed(request)
        path = self.folder / request.path.lstrip("/")
        if request.method in ("PUT", "POST"):
            return self._put(request, path)
        if request.method == "DELETE":
            path.unlink(missing_ok=True)
            return Answer(204, b"")
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                headers = {
                    "ETag": f'"{size:x}"',
                    "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
                    "Accept-Ranges": "bytes",
                }
                if request.method == "HEAD":
                    return Answer(200, b"", {**headers, "Content-Length": str(size)})
                if request.range is None:
                    return Answer(200, file.read(), headers)
                first, last = _within(request.range, size)
                if first >= size:
                    return error(416, "InvalidRange", "The requested range is not satisfiable")
                file.seek(first)
                headers["Content-Range"] = f"bytes {first}-{last}/{size}"
                return Answer(206, file.read(last + 1 - first), headers)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            if not (self.folder / request.path.lstrip("/").partition("/")[0]).is_dir():
                return error(404, "NoSuchBucket", "The specified bucket does not exist")
            return error(404, "NoSuchKey", "The specified key does not exist.")

    def _put(self, request: Request, path: Path) -> Answer:
        """PutObject, and the three steps of an upload in parts."""
        body = request.body
        if "aws-chunked" in request.headers.get("content-encoding", ""):
            body = _unchunked(body)
        key = escape(path.relative_to(self.folder).as_posix().partition("/")[2])
        if request.method == "POST" and "uploads" in request.query:
            text = "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
            return Answer(200, text.encode())
        path.parent.mkdir(parents=True, exist_ok=True)
        if request.method == "POST":
            parts = {number: data for (name, number), data in self._parts.items() if name == key}
            path.write_bytes(b"".join(data for _, data in sorted(parts.items())))
            text = '<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>'
            return Answer(200, text.encode())
        if number := request.query.get("partNumber"):
            self._parts[key, int(number[0])] = body
        else:
            path.write_bytes(body)
        return Answer(200, b"", {"ETag": '"x"'})

    def _listed(self, request: Request) -> Answer:
        bucket = request.path.strip("/")
        prefix = request.query.get("prefix", [""])[0]
        delimiter = request.query.get("delimiter", [""])[0]
        base = self.folder / bucket
        contents, common = [], set()
        for path in sorted((base / f"{prefix}x").parent.rglob("*")):
            key = path.relative_to(base).as_posix()
            if not path.is_file() or not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                common.add(prefix + rest.partition(delimiter)[0] + delimiter)
                continue
            contents.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{path.stat().st_size}</Size>"
                '<ETag>"x"</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>'
            )
        prefixes = "".join(
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
            for each in sorted(common)
        )
        body = (
            f'<?xml version="1.0"?><ListBucketResult><Name>{bucket}</Name><IsTruncated>false'
            f"</IsTruncated><KeyCount>{len(contents) + len(common)}</KeyCount>"
            f"{''.join(contents)}{prefixes}</ListBucketResult>"
        )
        return Answer(200, body.encode(), {"Content-Type": "application/xml"})


def _unchunked(body: bytes) -> bytes:
    """The content of ``aws-chunked`` chunks; their signatures and checksums are ignored."""
    found, place = [], 0
    while size := int(body[place : body.index(b"\r\n", place)].partition(b";")[0], 16):
        start = body.index(b"\r\n", place) + 2
        found.append(body[start : start + size])
        place = start + size + 2
    return b"".join(found)


def _parsed(head: bytes) -> Request:
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.lower()] = value.strip()
    url = urlsplit(target)
    return Request(
        method,
        unquote(url.path),
        _range(headers.get("range")),
        headers,
        parse_qs(url.query, keep_blank_values=True),
    )


def _range(text: str | None) -> tuple[int | None, int | None] | None:
    if text is None or not text.startswith("bytes="):
        return None
    first, _, last = text.removeprefix("bytes=").partition("-")
    return int(first) if first else None, int(last) if last else None


def _within(wanted: tuple[int | None, int | None], size: int) -> tuple[int, int]:
    first, last = wanted
    if first is None:
        return max(size - (last or 0), 0), size - 1
    return first, min(size - 1, size - 1 if last is None else last)
