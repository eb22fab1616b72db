"""Sessions of a Spark Connect server: opened, and left."""

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

# Tries of a first call to a Connect server, 4 s in all.
_FIRST_RETRIES: Final = 4
# Tries of any later call and their longest pause in ms, 15 s in all: PySpark's own ten minutes look
# like a query that hangs.
_PATIENCE: Final = {"max_retries": 6, "max_backoff": 5_000}
# Errors come in the headers of an answer, of which gRPC reads 8 kB: less than an error with its
# values and paths may have, and of a longer one nothing is left.
_GRPC_OPTIONS: Final = {
    "grpc.max_metadata_size": 1 << 20,
    "grpc.absolute_max_metadata_size": 1 << 20,
}
# How long a server may take to hear that its sessions are left.
_LEAVING_SECONDS: Final = 2.0


def is_connect(session: Any) -> bool:
    """Whether a session talks to a Spark Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def connect(remote: str, opened: list[Any]) -> Any:
    """A session of the Spark Connect server at an address, in ``opened`` before it is spoken to.

    Raises MissingExtraError, and OperationalError where no server answers within seconds.
    """
    with without_warnings():
        # PySpark ends the process of a program without a file, where one of these is missing.
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
            # Credentials follow the address.
            address = remote.partition("/;")[0]
            raise OperationalError(
                f"cannot connect to Spark at {address}: {sentence(error)}"
            ) from error


def beside(root: Any, opened: list[Any]) -> Any:
    """Another session on the server of one, then in ``opened``; see ``session_beside``."""
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

    ``gone``: the server is known not to answer, and is not spoken to. Every channel is closed when
    this returns: one that is open when the interpreter ends may keep it from ending, because gRPC's
    threads are stopped where they are, with its locks.
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
    """Tell the server that it may forget them, with what they hold there."""
    for session in sessions:
        with suppress(*spark_exceptions(), ValueError):  # a channel may be closed meanwhile
            release_session(session)
