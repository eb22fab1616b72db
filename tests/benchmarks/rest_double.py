"""A REST catalog in this process that gives tables their metadata, and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


@contextmanager
def serving(metadata_files: Mapping[str, str]) -> Iterator[str]:
    """The URI of a catalog with the tables ``tpch.<name>``, by their metadata files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(metadata_files))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(path: str, metadata_files: Mapping[str, str]) -> tuple[int, object]:
    if path == "/v1/config":
        return 200, {"defaults": {}, "overrides": {}}
    if path == "/v1/namespaces":
        return 200, {"namespaces": [["tpch"]]}
    location = metadata_files.get(path.removeprefix("/v1/namespaces/tpch/tables/"))
    if location is not None:
        metadata = json.loads(Path(location).read_text(encoding="utf-8"))
        return 200, {"metadata-location": f"file://{location}", "metadata": metadata, "config": {}}
    missing = {"message": f"{path} is not here", "type": "NoSuchTableException", "code": 404}
    return 404, {"error": missing}


def _handler(metadata_files: Mapping[str, str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, answer = _answer(urlsplit(self.path).path, metadata_files)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
