"""Azure's storage by obstore: account keys, SAS and bearer tokens, connection strings, clients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from icesql.errors import NotSupportedError
from icesql.storage.stores.options import first, made

# The emulator's, the same on every machine, and published with it.
_EMULATED: Final = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlm"
    "EtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1"
)
_SPECIAL: Final = ("adls.blob-storage-authority", "adls.dfs-storage-authority")


def account_of(authority: str, given: Mapping[str, str]) -> str:
    """The storage account of ``container@host``, which becomes a part of the request's address.

    Raises NotSupportedError for a name that would change the server in the address.
    """
    host = authority.rpartition("@")[2]
    return _checked(given.get("adls.account-name") or host.partition(".")[0])


def azure_store(authority: str, given: Mapping[str, str]) -> Any | None:
    """The client for ``container@account.host``; None where pyarrow's must do it.

    A connection string has its own credentials; no others are sent to its endpoint.
    """
    container, at, _ = authority.rpartition("@")
    if text := given.get("adls.connection-string"):
        options = _of_connection_string(authority, text)
    else:
        options = _of_properties(authority, given)
        if not options or any(given.get(name) for name in _SPECIAL):
            return None
    if not at:
        return None
    from obstore import store

    return made(store.AzureStore, container, given, options.get("endpoint"), options)


def _of_properties(authority: str, given: Mapping[str, str]) -> dict[str, str]:
    """The options of the client; none without credentials."""
    host = authority.rpartition("@")[2]
    name = account_of(authority, given)
    sas = first(given, "adls.sas-token", f"adls.sas-token.{host}", f"adls.sas-token.{name}")
    for option, proof in (
        ("account_key", given.get("adls.account-key")),
        ("sas_key", sas),
        ("token", given.get("adls.token")),
    ):
        if proof:
            return {"account_name": name, option: proof}
    client = {
        each.replace("-", "_"): given.get(f"adls.{each}", "")
        for each in ("client-id", "client-secret", "tenant-id")
    }
    return {"account_name": name, **client} if all(client.values()) else {}


def _of_connection_string(authority: str, text: str) -> dict[str, str]:
    parts = {}
    for part in text.split(";"):
        key, _, value = part.partition("=")
        parts[key.strip().lower()] = value.strip()
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        return _of_connection_string(authority, _EMULATED)
    name = _checked(parts.get("accountname") or account_of(authority, {}))
    endpoint = parts.get("blobendpoint")
    if not endpoint and (suffix := parts.get("endpointsuffix")):
        endpoint = f"{parts.get('defaultendpointsprotocol') or 'https'}://{name}.blob.{suffix}"
    for key, option in (("accountkey", "account_key"), ("sharedaccesssignature", "sas_key")):
        if parts.get(key):
            own = {"account_name": name, option: parts[key]}
            return own | ({"endpoint": endpoint} if endpoint else {})
    raise NotSupportedError(
        "not supported: an adls.connection-string with neither AccountKey nor SharedAccessSignature"
    )


def _checked(account: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]+", account):
        raise NotSupportedError(f"not supported: {account!r} is no account of Azure's storage")
    return account
