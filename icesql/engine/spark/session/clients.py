"""Open and leave sessions of a Spark Connect server."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from icesql.engine.spark.errors import sentence, spark_exceptions
from icesql.engine.spark.releases import (
    Patience,
    channel_builder,
    connect_modules,
    end_client,
    keep_silent_at_exit,
    release_session,
    session_beside,
)
from icesql.engine.spark.session.required import TIME_ZONE, require, without_warnings
from icesql.engine.spark.session.started import silence, starting_failures
from icesql.errors import MissingExtraError, OperationalError

# Retries of the first call to a Connect server, 4 s in all.
_FIRST_RETRIES: Final = 4
# Retries of any later call and their longest pause in ms, 15 s in all: PySpark's own ten minutes
# look like a query that hangs.
_PATIENCE: Final = {"max_retries": 6, "max_backoff": 5_000}
# Errors come in the headers of a response. By default gRPC reads 8 kB of them, which may be less
# than an error with its values and paths, and it drops a longer one completely.
_GRPC_OPTIONS: Final = {
    "grpc.max_metadata_size": 1 << 20,
    "grpc.absolute_max_metadata_size": 1 << 20,
}
# How long to wait until a server has released its sessions.
_LEAVING_SECONDS: Final = 2.0


def is_connect(session: Any) -> bool:
    """True if a session belongs to a Spark Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def connect(remote: str, opened: list[Any]) -> Any:
    """A session of the Spark Connect server at an address; ``opened`` has it before its first call.

    Raises MissingExtraError, and OperationalError if no server responds within seconds.
    """
    with without_warnings():
        # If one of these is missing, PySpark ends the process of a program that has no file.
        require("Spark Connect", *connect_modules())
        import grpc

        try:
            from pyspark.sql.connect.session import SparkSession
        except ImportError as error:
            raise MissingExtraError("Spark Connect", extra="spark", hint=str(error)) from error
        session = None
        try:
            channel = channel_builder(remote, list(_GRPC_OPTIONS.items()))
            session = SparkSession.builder.channelBuilder(channel).create()
            keep_silent_at_exit(session)
            opened.append(session)
            Patience(session).limit(_FIRST_RETRIES)
            session.conf.get(TIME_ZONE)
            Patience(session).limit(**_PATIENCE)
            silence()
            return session
        except (*starting_failures(), grpc.RpcError) as error:
            if session is not None:
                leave([session], gone=True)
                opened.remove(session)
            # Credentials come after the address.
            address = remote.partition("/;")[0]
            raise OperationalError(
                f"cannot connect to Spark at {address}: {sentence(error)}"
            ) from error


def beside(root: Any, opened: list[Any]) -> Any:
    """Another session on the same server, which is added to ``opened``; see ``session_beside``."""
    patience = Patience(root)
    patience.limit(**_PATIENCE)
    try:
        session = session_beside(root)
    finally:
        patience.restore()
    if session is not root:
        keep_silent_at_exit(session)
        opened.append(session)
        Patience(session).limit(**_PATIENCE)
    return session


def leave(sessions: Sequence[Any], *, gone: bool = False) -> None:
    """End sessions that were opened here, within seconds, whatever their server does.

    ``gone``: the server does not respond, and receives no request. All channels are closed when
    this returns: a channel that is open when the interpreter ends may block the exit, because
    gRPC's threads are stopped while they hold its locks.
    """
    for session in sessions:
        Patience(session).limit(0)
    releasing = threading.Thread(
        target=_release, args=(tuple(sessions),), name="icesql-leaving", daemon=True
    )
    if sessions and not gone:
        releasing.start()
        releasing.join(_LEAVING_SECONDS)
    for session in sessions:
        end_client(session)
    if releasing.ident is not None:
        releasing.join(_LEAVING_SECONDS)


def _release(sessions: Sequence[Any]) -> None:
    """Let the server release the sessions, with their resources."""
    for session in sessions:
        with suppress(*spark_exceptions(), ValueError):  # a channel may be closed by now
            release_session(session)
