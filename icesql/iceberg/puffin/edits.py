"""The footer of a Puffin file with other names of data files in it; its blobs stay where they are.

Source: Iceberg spec, "Puffin" and "deletion-vector-v1 blob type".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from icesql.errors import CorruptFileError
from icesql.iceberg.metadata.json_fields import Malformed, as_object, load_json, objects
from icesql.iceberg.puffin.container import MAGIC, footer_parts, read_puffin_payload

_REFERENCED: Final = "referenced-data-file"


def edited_footer(
    path: str, size: int, read: Callable[[int, int], bytes], change: Callable[[str], str]
) -> tuple[int, bytes]:
    """The offset of the footer in a file of ``size`` bytes, and its new bytes.

    ``change`` returns the new path of a data file. Raises CorruptFileError and what ``read`` does.
    """
    text, start = read_puffin_payload(path, size, read)
    try:
        footer = as_object(load_json(text), "footer")
        for blob in objects(footer, "blobs", "footer"):
            properties = blob.get("properties")
            if isinstance(properties, dict) and isinstance(properties.get(_REFERENCED), str):
                properties[_REFERENCED] = change(properties[_REFERENCED])
    except Malformed as error:
        raise CorruptFileError(path, f"bad Puffin footer: {error}", offset=start) from error
    return start - len(MAGIC), b"".join(footer_parts(footer, ascii_only=True))
