"""How many bytes a file of metadata may have; a pointer to it says about how many there are."""

from __future__ import annotations

from typing import Final

from icesql.errors import ScanLimitError

VERSION_HINT: Final = 1 << 10
METADATA: Final = 256 << 20
# A manifest list does not say elsewhere how long it is; one entry takes some hundred bytes.
MANIFEST_LIST: Final = 256 << 20
_MANIFEST: Final = 1 << 30
_SLACK: Final = 1 << 20


def most_of_manifest(stated: int | None) -> int:
    """Bytes that a manifest may have where its list says ``stated``.

    A manifest that was rewritten in place, as when a table moves, has another length than its
    list says, so twice the length and 1 MiB are allowed; 1 GiB is the end in any case.
    """
    return _MANIFEST if stated is None or stated <= 0 else min(2 * stated + _SLACK, _MANIFEST)


def check_size(location: str, size: int, most: int) -> None:
    """Raises ScanLimitError for a file of metadata that is longer than ``most`` bytes."""
    if size > most:
        raise ScanLimitError(
            f"{location} has {size:,} bytes, where at most {most:,} are expected and read; "
            "the file is damaged, or it is not what its place in the table says"
        )
