"""Which properties are secret, and how they are kept out of everything that is shown.

Two rules that need each other: what a property holds is masked wherever it is met, in every form
that a server or a library may echo (a part of it, URL-encoded, base64); and what is a secret by
its place is masked without being known, such as ``user:password@`` and ``?X-Amz-Signature=``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

MASK: Final = "***"

# A name with one of these in it holds a secret, unless it ends like one that says how or where.
_SECRET: Final = (
    r"(?i)secret|token|passw|passphrase|\bpass\b|\bpwd?\b|credential|(?<!mon)key(?!word)|"
    r"\bsas\b|sas-|signature|\bsig\b|auth|connection[-_.]?string|\bpem\b|\bheader\.|cookie|bearer|"
    r"private|\bjwt\b|assertion"
)
_PUBLIC: Final = (
    r"(?i)[-_.](enabled|uri|url|endpoint|type|expires-(at|in)(-ms)?|expiration(-ms)?|scope|"
    r"authority|authentication|host|region|name|delegation|user(name)?|client[-_]id|provider|class|"
    r"timeout(-ms)?|file|path)$"
)
# Variables of the environment that stores and catalogs take credentials from.
_ENVIRONMENT: Final = r"(?!GOOGLE_APPLICATION)(AWS|AZURE|GOOGLE|GCP|PYICEBERG|PG|HF)_?\w*"

_WORDS: Final = (
    r"x-amz-(?:signature|security-token|credential)|x-goog-(?:signature|credential)|signature|sig|"
    r"(?:[\w-]*[-_])?token|(?:[\w-]*[-_])?secret(?:[-_][\w-]*)?|pass(?:word|wd|phrase)?|pwd?|"
    r"(?:api|account|access|secret|private|shared|subscription|encryption)?[-_]?(?:access)?[-_]?key|"
    r"sas|sharedaccess(?:key|signature)|authorization|auth|credentials?|jwt|assertion|"
    r"awsaccesskeyid|client_assertion"
)
_NO_SECRET: Final = r"(?i)true|false|none|null|\d{1,5}|oauth2|sigv4"
_SHORTEST_KNOWN: Final = 4


def is_secret(name: str) -> bool:
    """Whether a property of that name holds a secret."""
    return bool(re.search(_SECRET, name)) and not re.search(_PUBLIC, name)


def masked(properties: Mapping[str, Any]) -> dict[str, str]:
    """The properties with the values of everything that may be secret as "***"."""
    return {
        key: MASK if is_secret(key) else redact(str(value), properties)
        for key, value in properties.items()
    }


def names_password(uri: str) -> bool:
    """Whether a URI has ``user:password@`` before its host."""
    return "@" in uri and bool(_user_info().search(uri))


def redact(text: str, properties: Mapping[str, Any], *, foreign: bool = True) -> str:
    """``text`` without the secrets of ``properties`` and of the environment, in any form.

    What is secret by its place in a URL is masked, too. With ``foreign``, for messages of other
    libraries and of servers, so is ``password=…`` in free text, and a known secret of four
    characters; a text of icesql's own may say ``password = 'x'`` because a query does.
    """
    known = _forms(properties, _SHORTEST_KNOWN if foreign else 2 * _SHORTEST_KNOWN)
    if known:
        alternatives = "|".join(re.escape(one) for one in sorted(known, key=len, reverse=True))
        text = re.sub(alternatives, MASK, text, flags=re.IGNORECASE)
    text = redact_urls(text)
    if not foreign:
        return text
    secrets = {found[1] for found in _said().finditer(text)}
    secrets |= {
        part for each in secrets if len(part := each.rpartition(":")[2]) >= 2 * _SHORTEST_KNOWN
    }
    for each in sorted(secrets, key=len, reverse=True):
        text = text.replace(each, MASK)
    return _pairs().sub(_masked_pair, text)


def redact_urls(text: str) -> str:
    """``text`` without what is secret by its place in a URL or in a header."""
    if "://" in text:
        text = _user_info().sub(rf"\g<1>{MASK}@", text)
    if "=" in text or "%3" in text:
        text = _query().sub(lambda found: f"{found[1] or found[2]}{MASK}", text)
    if "eyJ" in text or "earer" in text or "asic" in text or "EARER" in text:
        text = _headers().sub(lambda found: f"{found[1] or ''}{MASK}", text)
    return text


# ------------------------------------------------------------------ secret by its place


@cache
def _user_info() -> re.Pattern[str]:
    """The password, up to the last @ before the path; a lone user is one only over http.

    A container before an @ (abfss://container@account) is none.
    """
    return re.compile(
        r"((?<=://)[^/\s:@'\"<>]*:)(?!\d{1,5}/)[^\s'\"<>@]+(?:@[^\s'\"<>@/]+(?=@))*@|"
        r"((?<=http://)|(?<=https://))[^/\s:@'\"<>?]+@"
    )


@cache
def _query() -> re.Pattern[str]:
    # The second form is a URL inside the query of another one.
    return re.compile(
        rf"(?i)((?:[?&#]|&amp;)(?:{_WORDS})=)[^&\s\"'<>)\]}}]+|"
        rf"((?:%3F|%26)(?:{_WORDS})%3D)(?:(?!%26|&)[^\s\"'<>)\]}}])+"
    )


@cache
def _headers() -> re.Pattern[str]:
    return re.compile(
        r"(?i)\b((?:bearer|basic)\s+)(?=[\w+/=.~-]*\d)[\w+/=.~-]{8,}|"
        r"\beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?"
    )


@cache
def _pairs() -> re.Pattern[str]:
    """``password=x``, ``"client_secret": "x"`` and their like, but no folder ``/token=x/``."""
    return re.compile(
        rf"(?i)(?<![\w/.-])((['\"]?)(?:{_WORDS}|client[-_]secret)\2\s*[:=]\s*)"
        r"(?:\"((?:[^\"\\]|\\.)+)\"|'((?:[^'\\]|\\.)+)'|((?=\S*[\d=]|\S{12})[^\s,;&)\]}'\"<>]+))"
    )


@cache
def _said() -> re.Pattern[str]:
    """``bad credential id:x``: a word, and behind it what looks like no other word."""
    return re.compile(
        r"(?i)\b(?:credentials?|password|passwd|secret|token|(?:api|access|secret)[ -]key)\s+"
        r"(?:is\s+)?['\"]?(?=[^\s'\"]*\d)([^\s'\",;()<>=/]{8,})"
    )


def _masked_pair(found: re.Match[str]) -> str:
    mark = '"' if found[3] is not None else "'" if found[4] is not None else ""
    return f"{found[1]}{mark}{MASK}{mark}"


# ------------------------------------------------------------------ secret by its value


def _forms(properties: Mapping[str, Any], shortest: int) -> set[str]:
    """Every encoding in which a secret may appear, none shorter than ``shortest``."""
    import base64
    import json
    from urllib.parse import quote, quote_plus, unquote, unquote_plus

    forms: set[str] = set()
    for secret in {*_secrets(properties), *_of_environment()}:
        if len(secret) < shortest:
            continue
        encoded = base64.b64encode(secret.encode("utf-8", "surrogatepass")).decode()
        safe = encoded.replace("+", "-").replace("/", "_")
        forms |= {
            secret, quote(secret, safe=""), quote(secret), quote_plus(secret), unquote(secret),
            unquote_plus(secret), encoded, safe, encoded.rstrip("="), safe.rstrip("="),
            json.dumps(secret)[1:-1], repr(secret)[1:-1],
        }  # fmt: skip
    return {form for form in forms if len(form) >= shortest}


def _secrets(properties: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in properties.items():
        name = f"{above}.{key}" if is_secret(above) else str(key)
        if isinstance(value, Mapping):
            yield from _secrets(value, name)
        elif value is not None:
            yield from _parts(name, str(value))


def _of_environment() -> Iterator[str]:
    for name, value in os.environ.items():
        if re.fullmatch(_ENVIRONMENT, name):
            yield from _parts(name.replace("__", ".").replace("_", "-"), value)


def _parts(name: str, value: str) -> Iterator[str]:
    """The secret texts of one property: the whole value, and what it is made of."""
    import json
    from urllib.parse import unquote

    value = value.strip()
    if is_secret(name) and not re.fullmatch(_NO_SECRET, value):
        yield value
        scheme, space, rest = value.partition(" ")
        if space and scheme.lower() in ("bearer", "basic", "token"):
            yield rest.strip()
            if scheme.lower() == "basic":
                yield from _after_colon(_decoded(rest.strip()))
        elif "://" not in value:
            yield from _after_colon(value)
        if "\n" in value:  # a key in PEM: a library may quote one line
            yield from (line for line in value.split("\n") if len(line) >= 16)
    if value.startswith("{"):  # a service account's key file
        try:
            held = json.loads(value)
        except ValueError:
            held = None
        if isinstance(held, dict):
            yield from _secrets(held, name if name.endswith("auth") else "")
    for found in re.finditer(r"://[^/\s:@]*:(?!\d{1,5}/)([^\s]+)@", value):
        yield found[1]
        yield unquote(found[1])
    for found in re.finditer(rf"(?i)(?:^|[?&;])(?:{_WORDS})=([^&;\s]+)", value):
        yield found[1]
        yield unquote(found[1])


def _after_colon(value: str) -> Iterator[str]:
    import base64

    user, colon, secret = value.partition(":")
    if colon and secret:
        yield secret
        yield base64.b64encode(f"{user}:{secret}".encode()).decode()


def _decoded(text: str) -> str:
    import base64

    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:  # no base64, or no text
        return ""
