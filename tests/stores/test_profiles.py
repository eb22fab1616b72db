"""Credentials of AWS profiles: keys, a process, roles and logins as botocore's chain has them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from icesql.errors import StorageError
from icesql.storage.cache import BoundedCache
from icesql.storage.stores import options
from icesql.storage.stores.client import failure_of
from tests.sessions import answer
from tests.stores.server import Store

SQL = "SELECT count(*) FROM iceberg_scan('s3://lake/small')"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: Store) -> Path:
    """A home with an empty ~/.aws, and nothing of AWS in the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("ICESQL_CACHE", "off")
    return tmp_path


def count(store: Store, **properties: str) -> Any:
    own = {name: value for name, value in store.place.items() if "region" not in name}
    return answer(SQL, properties={**own, **properties})


class _Session:
    """As botocore.session.Session: the credentials have the values of the profile."""

    def __init__(self, profile: str | None = None) -> None:
        if profile == "gone":
            raise RuntimeError("The config profile (gone) could not be found")
        self.profile = profile

    def get_config_variable(self, name: str) -> str | None:
        return {"region": "eu-north-1"}.get(name)

    def get_credentials(self) -> Any:
        def frozen() -> Any:
            if self.profile == "sso":
                raise RuntimeError("Error loading SSO Token: run aws sso login")
            name = f"AKIAOF{self.profile or 'DEFAULT'}"
            return SimpleNamespace(access_key=name, secret_key="hidden-of-it", token=None)

        return SimpleNamespace(get_frozen_credentials=frozen)


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore, as far as it is used."""
    above, below = ModuleType("botocore"), ModuleType("botocore.session")
    below.Session = _Session  # type: ignore[attr-defined]
    above.__spec__ = below.__spec__ = SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "botocore", above)
    monkeypatch.setitem(sys.modules, "botocore.session", below)


@pytest.mark.usefixtures("chain")
def test_a_profile_signs_with_its_keys_in_its_region(home: Path, store: Store) -> None:
    (home / "config").write_text("[default]\n")
    assert count(store) == [(960,)]
    assert store.keys == {"AKIAOFDEFAULT"}
    assert "/eu-north-1/s3/" in store.requests[0].headers["authorization"]
    store.clear()
    assert count(store, **{"client.profile-name": "TEAM"}) == [(960,)]
    assert store.keys == {"AKIAOFTEAM"}


@pytest.mark.usefixtures("chain")
def test_keys_that_are_given_need_no_profile(home: Path, store: Store) -> None:
    (home / "config").write_text("[default]\n")
    answer(SQL, properties=store.properties("AKIAGIVEN"))
    assert store.keys == {"AKIAGIVEN"}


@pytest.mark.usefixtures("chain")
@pytest.mark.parametrize(
    ("name", "told"), [("gone", "could not be found"), ("sso", "run aws sso login")]
)
def test_what_a_profile_lacks_is_told(store: Store, name: str, told: str) -> None:
    with pytest.raises(StorageError, match=told):
        count(store, **{"client.profile-name": name})
    assert store.requests == []


def test_without_botocore_a_profile_is_left_to_pyarrow(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config").write_text("[default]\n")
    monkeypatch.setattr("icesql.storage.stores.options.find_spec", lambda name: None)
    assert options.make_store("s3", "lake", {"s3.region": "r"}) is None


def test_botocore_itself_runs_a_credential_process(home: Path, store: Store) -> None:
    pytest.importorskip("botocore", reason="botocore, of the extras for AWS, is missing")
    printed = {"Version": 1, "AccessKeyId": "AKIAOFAPROCESS", "SecretAccessKey": "x" * 20}
    (home / "told.json").write_text(json.dumps(printed))
    process = f"credential_process = cat {home}/told.json\n"
    (home / "config").write_text(f"[profile team]\nregion = eu-west-3\n{process}")
    assert count(store, **{"client.profile-name": "team"}) == [(960,)]
    assert store.keys == {"AKIAOFAPROCESS"}
    with pytest.raises(StorageError, match="gone"):
        count(store, **{"client.profile-name": "gone"})


@pytest.fixture
def role(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """The variables that a pod has for its role."""
    (home / "token").write_text("a.b.c")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(home / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/reader")
    monkeypatch.setattr("icesql.storage.stores.client._clients", BoundedCache(1))


@pytest.mark.usefixtures("role")
@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("http://127.0.0.1:1", "no credentials came from AWS STS: its address has to be https"),
        ("https://127.0.0.1:1", "no credentials came from AWS STS: it cannot be reached"),
    ],
)
def test_a_role_without_its_token_service_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch, place: str, told: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", place)
    with pytest.raises(StorageError, match=told):
        count(store, **{"s3.region": "eu-west-1"})
    assert store.requests == []


def test_what_the_token_service_says_is_told_as_its_own() -> None:
    """The message is that of obstore 0.12, which calls the service by https alone."""
    told = (
        "Generic S3 error: Error performing POST REDACTED in 1.6ms - Server returned non-2xx "
        'status code: 403 Forbidden: <ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15'
        '/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not authorized to perform '
        "sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>\n\nDebug source:\nGeneric"
    )
    found = failure_of(RuntimeError(told), "s3:GetObject")
    assert found.text(1) == (
        "no credentials came from AWS STS: AccessDenied: Not authorized to perform "
        "sts:AssumeRoleWithWebIdentity; check AWS_ROLE_ARN, its trust policy and "
        "AWS_WEB_IDENTITY_TOKEN_FILE (status 403)"
    )
    assert not found.is_refusal  # no request to the store: a catalog has nothing to renew


@pytest.mark.usefixtures("role")
def test_a_role_without_its_token_is_told(home: Path, store: Store) -> None:
    (home / "token").unlink()
    with pytest.raises(StorageError, match=f"token file '{home}/token'"):
        count(store, **{"s3.region": "eu-west-1"})
