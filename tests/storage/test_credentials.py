"""Secrets are masked wherever they may be shown."""

from __future__ import annotations

import base64
import random
import string
import time
from urllib.parse import quote, quote_plus

import pytest

from icesql.errors import CatalogError
from icesql.storage.credentials import masked, redact, without_secrets
from tests.rows import rows_of


def test_secret_properties_are_masked_and_others_are_shown() -> None:
    shown = masked(
        {
            "s3.secret-access-key": "SSSS",
            "s3.session-token": "TTTT",
            "credential": "id:secret",
            "adls.sas-token.acc.blob.core.windows.net": "sig",
            "s3.endpoint": "http://localhost:9000",
            "uri": "postgresql://me:hunter2@db/iceberg",
        }
    )
    assert shown["s3.endpoint"] == "http://localhost:9000"
    assert shown["uri"] == "postgresql://me:***@db/iceberg"
    assert "SSSS" not in str(shown)
    assert "TTTT" not in str(shown)
    assert "id:secret" not in str(shown)


def test_secrets_in_foreign_messages_are_replaced() -> None:
    text = redact(
        "403 for key wJalrXUtnFEMI at redis://u:pw@h", {"s3.secret-access-key": "wJalrXUtnFEMI"}
    )
    assert text == "403 for key *** at redis://u:***@h"


@rows_of(__file__, "masked_texts.tsv", "text", "shown")
def test_secrets_are_known_by_their_place(text: str, shown: str) -> None:
    assert redact(text, {}) == shown


SECRET = "VALUE/of+mine:9"


@rows_of(__file__, "secret_properties.tsv", "name", "form")
def test_every_part_and_form_of_a_secret_is_masked(name: str, form: str) -> None:
    value = form.replace("SECRET", SECRET).replace("QUOTED", quote(SECRET, safe=""))
    basic = base64.b64encode(f"me:{SECRET}".encode()).decode()
    value = value.replace("BASIC", basic).replace("⏎", "\n")
    shown = str(masked({name: value}))
    encoded = base64.b64encode(SECRET.encode()).decode()
    for form in (SECRET, SECRET.lower(), quote(SECRET, safe=""), quote_plus(SECRET), encoded):
        echoed = redact(f"you said <{form}>", {name: value})
        if name == "ssl.pem":
            echoed = redact(f"you said <{form}{form}>", {name: value}) if form is SECRET else ""
        assert form not in echoed
        assert form not in shown


def test_secrets_of_the_environment_are_known_and_paths_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__CREDENTIAL", "id:halfsecret")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json")
    text = "wJalrXUtnFEMI and halfsecret from /home/me/key.json"
    assert redact(text, {}) == "*** and *** from /home/me/key.json"


def test_settings_about_secrets_are_shown() -> None:
    public = {
        "oauth2-server-uri": "https://h/token",
        "token-refresh-enabled": "true",
        "auth.type": "oauth2",
        "header.X-Iceberg-Access-Delegation": "vended-credentials",
        "gcs.oauth2.token-expires-at": "1700000000000",
    }
    assert masked(public) == public


class Immutable(Exception):
    """As thrift's exceptions are: no attribute can be set, not even Python's own."""

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("can't modify immutable instance")


def test_an_exception_that_cannot_be_changed_is_no_obstacle() -> None:
    """What hangs on to it is cleaned all the same, and the error that was meant comes out."""
    properties = {"token": "tok-of-the-user"}

    def fail() -> None:
        try:
            try:
                raise ValueError("GET with tok-of-the-user")
            except ValueError as below:
                raise Immutable("table not found") from below
        except Immutable as error:
            raise CatalogError("no such table") from error

    with pytest.raises(CatalogError, match="no such table") as caught, without_secrets(properties):
        fail()
    behind = caught.value.__cause__
    assert behind is not None
    assert (type(behind).__name__, str(behind)) == ("Immutable", "table not found")
    assert str(behind.__cause__) == "GET with ***"


MESSAGES = {
    "known": "no thing with {} in it",
    "user": "cannot open https://me:{}@host/t of you",
    "query": "GET https://h/x?a=b&X-Amz-Signature={}&z=1 was refused",
    "encoded": "GET https://h/x?next=https%3A%2F%2Fh%3Fsig%3D{}%26z was refused",
    "pair": "login with password={} was refused",
    "json": '{{"error": {{"client_secret": "{}", "x": 1}}}}',
    "header": "the header Authorization: Bearer {} was refused",
}


@pytest.mark.parametrize("length", [5, 6, 8, 20, 60, 300, 5000])
@pytest.mark.parametrize("kind", MESSAGES)
def test_no_six_characters_of_a_secret_come_out_of_a_cut_message(kind: str, length: int) -> None:
    drawn = random.Random(f"{kind} {length}")
    letters = string.ascii_letters + string.digits + "-_+~."
    # Six lower-case letters alone are a word of the message, wherever it is cut.
    secret = "qX7." + "".join(drawn.choice(letters) for _ in range(length - 4))
    parts = {secret[at : at + 6] for at in range(length - 5)}
    message = MESSAGES[kind].format(secret)
    known = {"token": secret} if kind == "known" else {}
    cuts = range(len(message) + 1) if length < 1000 else drawn.sample(range(len(message) + 1), 60)
    whole = redact(message, known)
    assert not any(part in whole for part in parts)
    for cut in cuts:
        shown = redact(message[:cut], known)
        assert not any(part in shown for part in parts), (cut, shown[-60:])
        if kind == "known":
            for text in (message[cut:], f"it said: {message[:cut]}...", f"… {message[cut:]}"[2:]):
                shown = redact(text, known)
                assert not any(part in shown for part in parts), (cut, shown)


@pytest.mark.parametrize(
    "piece",
    ["x://", "://a:", "://a@", "pwd=;", 'password="', "token a1b2c3d4 ", "?a-secret", "<", "a",
     "eyJaaaaa-", "bearer ", "@", " ", "a_secret_", "'", "secret:'"],
)  # fmt: skip
def test_masking_takes_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        start = time.thread_time()
        redact(piece * (length // len(piece)), {"token": "Ab3defghij" * 10})
        return time.thread_time() - start

    least = min(seconds(20_000) for _ in range(3))
    assert seconds(160_000) < 30 * max(least, 0.005)
