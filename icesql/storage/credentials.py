"""Which properties are secret, and how they are masked in everything that is shown, and in errors.

Two rules complement each other: the value of a secret property is masked wherever it occurs, in
every form that a server or a library may echo (a part of it, URL-encoded, base64); and a text that
is secret by its place is masked without being known, such as ``user:password@`` and
``?X-Amz-Signature=``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from icesql.errors import Error, printable

MASK: Final = "***"

# A name with one of these in it holds a secret, unless its ending shows a method or a place.
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

# Names of parameters with a secret, besides those that end in -token or have a part "secret".
_WORDS: Final = (
    r"(?i)x-amz-(?:signature|credential)|x-goog-(?:signature|credential)|signature|sig|token|"
    r"pass(?:word|wd|phrase)?|pwd?|"
    r"(?:api|account|access|secret|private|shared|subscription|encryption)?[-_]?(?:access)?[-_]?key|"
    r"sas|sharedaccess(?:key|signature)|authorization|auth|credentials?|jwt|assertion|"
    r"awsaccesskeyid|client_assertion"
)
_NO_SECRET: Final = r"(?i)true|false|none|null|\d{1,5}|oauth2|sigv4"
_SHORTEST_KNOWN: Final = 4
# The least characters of a secret that are masked where a text is cut, and anywhere.
_PART_AT_A_CUT: Final = 6
_PART: Final = 12
_FEW: Final = 200


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
    return _without_users(uri) != uri


def redact(text: str, properties: Mapping[str, Any], *, foreign: bool = True) -> str:
    """``text`` without the secrets of ``properties`` and of the environment, in any form.

    Secrets by their place in a URL are masked, too. With ``foreign``, for messages of other
    libraries and of servers, so is ``password=…`` in free text, and a known secret of four
    characters; a text of icesql itself may contain ``password = 'x'`` because a query does. A
    foreign text may have been cut in the middle of a secret: the rest of it is masked.

    It takes time in proportion to the text, which is untrusted: cut it afterwards.
    """
    text = _without(text, _forms(properties, _SHORTEST_KNOWN if foreign else 2 * _SHORTEST_KNOWN))
    text = redact_urls(text)
    if not foreign:
        return text
    secrets = {found[1] or found[2] for found in _said().finditer(text)}
    secrets |= {
        part for each in secrets if len(part := each.rpartition(":")[2]) >= 2 * _SHORTEST_KNOWN
    }
    text = _masked_values(_without(text, secrets), *_pairs())
    return _without_users(text, cut=True) if "://" in text else text


def redact_urls(text: str) -> str:
    """``text`` without secrets by their place in a URL or in a header."""
    if "://" in text and "@" in text:
        text = _without_users(text)
    if "=" in text or "%3" in text:
        for name, value in _query():
            text = _masked_values(text, name, value)
    if "eyJ" in text or "earer" in text or "asic" in text or "EARER" in text:
        text = _headers().sub(lambda found: f"{found[1] or ''}{MASK}", text)
    return text


# ------------------------------------------------------------------ secret by its place
# Each pattern takes linear time: a run of characters that did not match from one start is not read
# again from the next one, because runs are bounded or possessive.


def _without_users(text: str, *, cut: bool = False) -> str:
    """``text`` without the passwords before the hosts of URLs; ``cut``: nor one that it ends in."""

    def masked_user(found: re.Match[str]) -> str:
        is_rest = cut and found.end() == len(text) and not re.fullmatch(r"\d{0,5}", found[2] or "")
        if found[3] or not found[1]:
            return f"{found[1] or ''}{MASK}@"
        return f"{found[1]}{MASK}" if is_rest else found[0]

    return _user_info().sub(masked_user, text)


@cache
def _user_info() -> re.Pattern[str]:
    """The password, up to the last @ before the path; a lone user is one only over http.

    A container before an @ (abfss://container@account) is not a password. A text without an @ after
    it is matched, too, though not a password, so that no later start searches for the @ again.
    """
    return re.compile(
        r"((?<=://)[^/\s:@'\"<>]*+:)(?!\d{1,5}/)([^\s'\"<>@]++)"
        r"((?:@[^\s'\"<>@/]++(?=@))*+@)?|"
        r"(?:(?<=http://)|(?<=https://))[^/\s:@'\"<>?]++@"
    )


# No word of a sentence.
_NO_WORD: Final = r"(?-i:(?![A-Za-z]?[a-z]*+[.!,;:)]*+(?:\s|\Z)))"


@cache
def _query() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    # The second form is a URL inside the query of another one.
    return (
        (
            re.compile(r"(?:[?&#]|&amp;)([\w-]++)="),
            re.compile(r"([^&\s\"'<>)\]}]++)"),
        ),
        (
            re.compile(r"(?i)(?:%3F|%26)([\w-]++)%3D"),
            re.compile(r"((?:(?!%26|&)[^\s\"'<>)\]}])++)"),
        ),
    )


_TOKEN: Final = r"[\w+/=.~-]"


@cache
def _headers() -> re.Pattern[str]:
    return re.compile(
        rf"(?i)\b((?:bearer|basic)\s++)(?:(?={_TOKEN}*\d){_TOKEN}{{8,}}|{_NO_WORD}{_TOKEN}{{6,}})|"
        r"\beyJ(?:[\w-]{16,}+(?:\.[\w-]*+){0,2}|[\w-]{5,15}\.[\w-]{5,}+(?:\.[\w-]*+)?|[\w-]{3,15}\Z)"
    )


@cache
def _pairs() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """``password=x``, ``"client_secret": "x"`` and their like, but no folder ``/token=x/``."""
    return re.compile(
        r"(?<![\w/.-])(?:(['\"])(?=[\w-]++\1))?([\w-]++)['\"]?\s*+[:=]\s*+"
    ), re.compile(
        r"(?s)\"((?:[^\"\\]++|\\.)++)|'((?:[^'\\]++|\\.)++)|"
        rf"((?=\S{{12}}|\S*[\d=]|(?<==)|{_NO_WORD}\S{{5}})"
        r"[^\s,;&)\]}'\"<>]++)"
    )


@cache
def _said() -> re.Pattern[str]:
    """``bad credential id:x``: a word, followed by a text that does not look like a word."""
    return re.compile(
        r"(?i)\b(?:credentials?|password|passwd|secret|token|(?:api|access|secret)[ -]key)\s++"
        r"(?:is\s++)?['\"]?(?:(?=[^\s'\"]*\d)([^\s'\",;()<>=/]{8,})|"
        rf"{_NO_WORD}([^\s'\",;()<>=/]{{6,}})\Z)"
    )


def _is_word(name: str) -> bool:
    parts = re.split("[-_]", name.lower())
    return parts[-1] == "token" or "secret" in parts or bool(re.fullmatch(_WORDS, name))


def _values(text: str, name: re.Pattern[str], value: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The spans of the values after names of secrets: the last group of a pattern."""
    done = 0
    for found in name.finditer(text):
        if found.start() >= done and _is_word(found[name.groups]):
            held = value.match(text, found.end())
            if held is not None:
                done = held.end()
                yield held.span(held.lastindex or 0)


def _masked_values(text: str, name: re.Pattern[str], value: re.Pattern[str]) -> str:
    pieces, done = [], 0
    for start, stop in _values(text, name, value):
        pieces += [text[done:start], MASK]
        done = stop
    return "".join([*pieces, text[done:]])


# ------------------------------------------------------------------ secret by its value


def _without(text: str, secrets: Collection[str]) -> str:
    """``text`` with ``***`` for these, however their letters are written, and for parts of them.

    A part is six characters where the text may have been cut, and twelve elsewhere.
    """
    # Whole ones first: a part may begin in a character that two secrets share.
    wholes = sorted(secrets, key=len, reverse=True)
    wholes = [each for each in wholes if len(secrets) <= _FEW or len(each) < _PART_AT_A_CUT]
    if wholes:
        text = re.sub("|".join(map(re.escape, wholes)), MASK, text, flags=re.IGNORECASE)
    length = _PART_AT_A_CUT
    known = {each.lower() for each in secrets if len(each) >= length}
    if not known:
        return text
    grams = {each[at : at + length] for each in known for at in range(len(each) - length + 1)}
    whole = {each for each in known if len(each) < _PART}
    lowered = "".join(each.lower()[:1] for each in text)
    pieces, done, at = [], 0, 0
    while at <= len(text) - length:
        if lowered[at : at + length] not in grams:
            at += 1
            continue
        start = at
        while lowered[at : at + length] in grams:
            at += 1
        at += length - 1
        found = lowered[start:at]
        cut = start == 0 or at == len(text) or _is_cut(text[max(start - 3, 0) : start])
        if (
            cut
            or _is_cut(text[at : at + 3])
            or len(found) >= _PART
            or any(w in found for w in whole)
        ):
            pieces += [text[done:start], MASK]
            done = at
    return "".join([*pieces, text[done:]])


def _is_cut(beside: str) -> bool:
    return "…" in beside or beside == "..."


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
    """The secret texts of one property: the whole value, and its parts."""
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
    for run in value.split():
        head = run.rpartition("@")[0]
        found = re.search(r"://[^/:@]*+:(?!\d{1,5}/)(.++)", head)
        if found is not None:
            yield found[1]
            yield unquote(found[1])
    name_of, value_of = re.compile(r"(?:^|[?&;])([\w-]++)="), re.compile(r"([^&;\s]++)")
    for start, stop in _values(value, name_of, value_of):
        yield value[start:stop]
        yield unquote(value[start:stop])


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


# ------------------------------------------------------------------ errors without secrets


# Attributes of foreign exceptions that hold a whole request, with its headers.
_REQUESTS: Final = ("request", "response", "params", "statement", "hide_parameters")


@contextmanager
def without_secrets(properties: Mapping[str, Any]) -> Iterator[None]:
    """Errors raised in the block, and the exceptions behind them, contain no secret."""
    try:
        yield
    except Exception as error:  # each is raised again once it is clean
        clean(error, properties)
        raise


def clean(
    error: BaseException,
    properties: Mapping[str, Any],
    seen: dict[int, tuple[BaseException, BaseException]] | None = None,
) -> BaseException:
    """Remove the secrets of ``properties``, and those in URLs, from an error in place.

    Message, attributes and notes of icesql's errors are rewritten. A foreign exception in its chain
    that contains a secret, or whose own chain cannot be changed, is replaced by one of the same
    class name and traceback without the secret; it is returned.
    """
    seen = {} if seen is None else seen
    if id(error) in seen:
        return seen[id(error)][1]
    cleaned = _own(error, properties)
    # Both are held: the chain lets go of the first one.
    seen[id(error)] = error, cleaned
    seen[id(cleaned)] = cleaned, cleaned
    suppressed = error.__suppress_context__
    if error.__cause__ is not None:
        cleaned.__cause__ = clean(error.__cause__, properties, seen)
    if error.__context__ is not None:
        cleaned.__context__ = clean(error.__context__, properties, seen)
    cleaned.__suppress_context__ = suppressed
    return cleaned


def spell_out(error: BaseException) -> None:
    """Spell out control characters in the message of an error of icesql, in place.

    A name in a table, or the text of an engine or server, may hold any.
    """
    if isinstance(error, Error):
        error.args = tuple(
            printable(each, lines=True) if isinstance(each, str) else each for each in error.args
        )


def _own(error: BaseException, properties: Mapping[str, Any]) -> BaseException:
    ours = isinstance(error, Error)

    def clean(text: str) -> str:
        return redact(text, properties, foreign=not ours)

    if ours:
        error.args = tuple(_cleaned(each, clean) for each in error.args)
        for name, value in list(vars(error).items()):
            vars(error)[name] = _cleaned(value, clean)
        return error
    for name in _REQUESTS:
        if name in getattr(error, "__dict__", {}):
            vars(error)[name] = None
    if (notes := getattr(error, "__notes__", None)) and _may_change(error):
        error.__notes__ = _cleaned(notes, clean)
    kind, text = type(error), _text(str, error)
    if kind.__module__.startswith("pydantic"):
        # It shows both ends of the text that it read, which may be the end of a secret.
        text = text.partition("\n")[0]
    else:
        shown = "\n".join([text, _text(repr, error), _text(repr, _attributes(error))])
        if clean(shown) == shown and _may_change(error):
            return error
    stand_in: type[Exception] = type(kind.__name__, (Exception,), {"__module__": kind.__module__})
    return stand_in(clean(text)).with_traceback(error.__traceback__)


def _may_change(error: BaseException) -> bool:
    """Whether attributes can be set: those of thrift refuse even Python's own."""
    try:
        error.__suppress_context__ = error.__suppress_context__
    except Exception:  # of whatever class
        return False
    return True


def _attributes(error: BaseException) -> dict[str, Any]:
    return {name: value for name, value in vars(error).items() if name != "__notes__"}


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    match value:
        case str():
            return clean(value)
        case tuple() | list():
            cleaned = [_cleaned(each, clean) for each in value]
            return tuple(cleaned) if isinstance(value, tuple) else cleaned
        case dict():
            return {key: _cleaned(each, clean) for key, each in value.items()}
        case _:
            return value


def _text(form: Callable[[Any], str], value: Any) -> str:
    try:
        return form(value)
    except Exception:  # a foreign exception that cannot be shown reveals no secret
        return ""
