"""The history of typed texts in a file that shells share; secrets stay out of it.

The file is that of prompt-toolkit's ``FileHistory``: a comment with the time, then each line of
the text with a plus in front.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from prompt_toolkit.history import History

from icesql.storage.credentials import is_secret, redact_urls

# The bytes of it that are read: some ten thousand statements. It is searched on every key.
_MOST_BYTES: Final = 2 << 20
# A text as the file has it.
_KEPT: Final = re.compile(r"^\+.*(?:\n\+.*)*+", re.MULTILINE)
_WORDS: Final = r"passw|passphrase|\bpwd\b|secret|credential|token"
# name = 'value', 'name' = 'value', name => 'value', "name": "value", SET name TO 'value'
_GIVEN: Final = re.compile(
    r"(?<![\w.-])(?P<quote>['\"]?)(?P<name>[\w.-]++)(?P=quote)(?:\s*(?:=>?|:|\bto\b)\s*|\s+)['\"](?!['\"])",
    re.IGNORECASE,
)
_VARIABLE: Final = re.compile(
    r"\s*(?:\\set|set)\s+(?P<name>[\w.-]+)\s*(?:=|\s)\s*\S", re.IGNORECASE
)


def holds_secret(text: str) -> bool:
    """Whether a statement seems to hold a password, a token or a key of a store.

    A column may be called ``key``; a name with a dot or a hyphen is a property, not a column.
    """
    if redact_urls(text) != text:
        return True
    named = [*_GIVEN.finditer(text), *filter(None, [_VARIABLE.match(text)])]
    return any(_names_secret(found["name"]) for found in named)


def _names_secret(name: str) -> bool:
    if "." in name or "-" in name:
        return is_secret(name)
    return bool(re.search(_WORDS, name, re.IGNORECASE)) and is_secret(name)


class HistoryFile(History):
    """The history of all shells of a user; an unreadable file is an empty history.

    A text that begins with a blank, as in other shells, or holds a secret is kept until this shell
    ends, and never written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """The texts, newest first."""
        try:
            with open(self._path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - _MOST_BYTES, 0))
                data = file.read(_MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            return []
        if size > _MOST_BYTES:  # the first text may have lost its beginning
            _, _, data = data.partition("\n#")
        return [each[1:].replace("\n+", "\n") for each in _KEPT.findall(data)[::-1]]

    def store_string(self, string: str) -> None:
        """Append a text in one write, so that lines of several open shells do not mix."""
        if string[:1].isspace() or holds_secret(string):
            return
        text = f"\n# {datetime.now()}\n" + "".join(f"+{line}\n" for line in string.split("\n"))
        with suppress(OSError):  # a full disk is no reason not to run a statement
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, text.encode("utf-8", "replace"))
            finally:
                os.close(descriptor)
