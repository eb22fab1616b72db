"""An obstore client from Iceberg's FileIO properties; None where pyarrow's must do it.

pyarrow's clients know what obstore does not: roles to assume, HDFS, Azure's default chain, keys
with empty or dotted parts; and profiles of ~/.aws where botocore, which reads them for obstore, is
not installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any, Final

from icesql.errors import NotSupportedError
from icesql.storage.open import one_store

# Credentials of AWS profiles for obstore, which reads none: by botocore's own chain.

# obstore calls again after this time, and so gets credentials that the chain has renewed.
_RENEWED_AFTER: Final = timedelta(minutes=10)


class ProfileCredentials:
    """Renewed credentials of a profile: keys, a role, ``credential_process``, ``aws sso login``.

    Call it for obstore's mapping of one credential. ``region`` is the profile's, or None.
    """

    def __init__(self, session: Any, credentials: Any) -> None:
        self._credentials = credentials
        self.region: str | None = session.get_config_variable("region")

    def __call__(self) -> Mapping[str, Any]:
        """The credential to use now. Raises what botocore does."""
        found = self._credentials.get_frozen_credentials()
        return {
            "access_key_id": found.access_key,
            "secret_access_key": found.secret_key,
            "token": found.token,
            "expires_at": datetime.now(UTC) + _RENEWED_AFTER,
        }


def profile_credentials(name: str | None) -> ProfileCredentials | None:
    """Those of the profile ``name``, else of AWS_PROFILE or the default one.

    None without botocore, or where its chain finds nothing. Raises what botocore does for a missing
    profile, and for an expired login, before any request to a store.
    """
    if find_spec("botocore") is None:
        return None
    from botocore.session import Session

    session = Session(profile=name)
    credentials = session.get_credentials()
    if credentials is None:
        return None
    found = ProfileCredentials(session, credentials)
    found()
    return found


# Options of the clients of all stores: time limits, one attempt, and properties.

_CONNECT_SECONDS: Final = 5.0
_REQUEST_SECONDS: Final = 30.0
# icesql retries itself: its retries are counted, have a budget and end with the query.
_ONE_TRY: Final = {"max_retries": 0, "retry_timeout": timedelta(seconds=60)}


def first(properties: Mapping[str, str], *names: str) -> str | None:
    """The first of some properties that has a value."""
    return next((properties[name] for name in names if properties.get(name)), None)


def flag(properties: Mapping[str, str], name: str) -> bool:
    """Whether a property is switched on."""
    return str(properties.get(name, "")).lower() in ("true", "1")


def is_signed_elsewhere(properties: Mapping[str, str]) -> bool:
    """Whether the catalog is to sign the requests: it says so, and no keys are given."""
    if first(properties, "s3.access-key-id", "client.access-key-id") is not None:
        return False
    wanted = str(properties.get("s3.signer") or "")
    return flag(properties, "s3.remote-signing-enabled") or wanted == "S3V4RestSigner"


def timeouts(properties: Mapping[str, str]) -> tuple[float, float]:
    """The seconds to connect to a store, and for a response."""
    connect = float(properties.get("s3.connect-timeout") or _CONNECT_SECONDS)
    return connect, float(properties.get("s3.request-timeout") or _REQUEST_SECONDS)


def made(
    kind: Any,
    bucket: str,
    given: Mapping[str, str],
    endpoint: str | None,
    config: Mapping[str, Any],
    provider: Any = None,
) -> Any:
    """The client of this kind for a bucket; ``endpoint`` None is the store's own, by https."""
    connect, request = timeouts(given)
    options: dict[str, Any] = {
        "connect_timeout": timedelta(seconds=connect),
        "timeout": timedelta(seconds=request),
        "pool_idle_timeout": timedelta(seconds=60),
        "user_agent": "icesql",
    }
    if endpoint is not None and endpoint.startswith("http://"):
        options["allow_http"] = True
    if proxy := given.get("s3.proxy-uri"):
        options["proxy_url"] = proxy
    return kind(
        bucket,
        config=config,
        client_options=options,
        retry_config=_ONE_TRY,
        credential_provider=provider,
    )


def fixed(**credential: str | None) -> Callable[[], dict[str, Any]]:
    """A provider of one credential that does not expire."""
    return lambda: {**credential, "expires_at": None}


def is_plain_key(key: str) -> bool:
    """Whether obstore spells a key as it is written."""
    parts = key.removeprefix("/").split("/")
    return key.isprintable() and not any(part in ("", ".", "..") for part in parts)


def make_store(scheme: str, authority: str, properties: Mapping[str, str]) -> Any | None:
    """The client for a bucket or container."""
    match one_store(scheme):
        case "s3":
            return _s3(authority, properties)
        case "gs":
            return _gcs(authority, properties)
        case "abfs":
            return azure_store(authority, properties)
        case _:
            return None


def _s3(bucket: str, given: Mapping[str, str]) -> Any | None:
    check_signing(given)
    if first(given, "s3.role-arn", "client.role-arn"):
        return None
    key = first(given, "s3.access-key-id", "client.access-key-id")
    anonymous = flag(given, "s3.anonymous")
    name, profile = first(given, "s3.profile-name", "client.profile-name"), None
    if key is None and not anonymous and (name or _has_profile()):
        profile = profile_credentials(name)
        if profile is None:
            return None
    from obstore import store

    endpoint = first(given, "s3.endpoint")
    endpoint = endpoint or first(os.environ, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    if endpoint is not None and "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    region = first(given, "s3.region", "client.region")
    region = region or first(os.environ, "AWS_REGION", "AWS_DEFAULT_REGION")
    region = region or (profile.region if profile is not None else None)
    if region is None:
        from icesql.storage.arrow_files import region_of

        region = "us-east-1" if endpoint is not None else region_of(bucket)
    virtual = virtual_addressing(given)
    if virtual is None:
        virtual = endpoint is None and "." not in bucket
    options: dict[str, Any] = {"region": region, "virtual_hosted_style_request": virtual}
    if endpoint is not None:
        if virtual:
            kind, _, host = endpoint.partition("://")
            endpoint = f"{kind}://{bucket}.{host}"
        # By the name that goes before the variables of the environment.
        options["aws_endpoint_url_s3"] = endpoint
    provider: Callable[[], Any] | None = profile
    if anonymous:
        options["skip_signature"] = True
    elif key is not None:
        # As a provider, so that credentials of the environment do not mix with the given ones.
        provider = fixed(
            access_key_id=key,
            secret_access_key=first(given, "s3.secret-access-key", "client.secret-access-key")
            or "",
            token=first(given, "s3.session-token", "client.session-token"),
        )
    return made(store.S3Store, bucket, given, endpoint, options, provider)


def check_signing(given: Mapping[str, str]) -> None:
    """Raise NotSupportedError if only a catalog can sign the requests, and there is none."""
    if is_signed_elsewhere(given):
        raise NotSupportedError(
            "not supported: this S3 request signed by the catalog: icesql reads tables of a "
            "REST catalog so, but writes nothing, reads no table by its path nor a key with empty "
            "or dotted parts; give keys of your own (s3.access-key-id, s3.secret-access-key) or "
            "let the catalog vend credentials"
        )


def virtual_addressing(given: Mapping[str, str]) -> bool | None:
    """Whether the bucket is a part of the host's name; None if the properties do not say it."""
    if "s3.force-virtual-addressing" in given:
        return flag(given, "s3.force-virtual-addressing")
    if "s3.path-style-access" in given:
        return not flag(given, "s3.path-style-access")
    return None


def _has_profile() -> bool:
    """Whether credentials may come from a profile, which obstore does not read."""
    environment = os.environ
    if environment.get("AWS_ACCESS_KEY_ID") or environment.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        return bool(environment.get("AWS_PROFILE"))
    files = (
        environment.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials",
        environment.get("AWS_CONFIG_FILE") or "~/.aws/config",
    )
    return any(os.path.exists(os.path.expanduser(each)) for each in files)


def _gcs(bucket: str, given: Mapping[str, str]) -> Any | None:
    from obstore import store

    options: dict[str, Any] = {}
    host = given.get("gcs.service.host") or None
    if host is not None:
        options["base_url"] = host
    provider = None
    if flag(given, "gcs.anonymous"):
        options["skip_signature"] = True
    elif token := given.get("gcs.oauth2.token"):
        provider = fixed(token=token)
    return made(store.GCSStore, bucket, given, host, options, provider)


# ------------------------------------------------------------------ Azure


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
