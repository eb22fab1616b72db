"""Whether the manifests of a list hold what the list says: rows, or deletes of rows.

A list whose ``content`` is wrong hides rows, or brings deleted ones back, and is good Avro. It is
told by the totals of its snapshot; only where these do not fit is a manifest looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile


def doubtful(summary: Mapping[str, str], manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
    """The manifests whose content is to be looked at, by the ``summary`` of their snapshot."""
    live = [each for each in manifests if each.has_live_files]
    by_content = {
        content: [each for each in live if each.content is content] for content in ManifestContent
    }
    deletes = by_content[ManifestContent.DELETES]
    found, deleting = (_files(by_content[each]) for each in ManifestContent)
    total = _total(summary, "total-data-files")
    total_deleting = _total(summary, "total-delete-files")
    if found is None or total is None:
        # The totals say nothing: deletes without a row that they could be of are odd enough.
        return [] if by_content[ManifestContent.DATA] or total == 0 else deletes
    if found < total:
        return deletes
    if deleting is not None and total_deleting is not None:
        more, fewer = found - total, total_deleting - deleting
        if more == fewer > 0:
            return by_content[ManifestContent.DATA]
    return []


def _files(manifests: Sequence[ManifestFile]) -> int | None:
    """How many live files manifests list, None where that is unknown."""
    total = 0
    for each in manifests:
        if each.added_files_count is None or each.existing_files_count is None:
            return None
        total += each.added_files_count + each.existing_files_count
    return total


def _total(summary: Mapping[str, str], name: str) -> int | None:
    text = summary.get(name, "")
    return int(text) if text.isdecimal() else None


def check_content(file: AvroFile, manifest: ManifestFile) -> None:
    """Raise CorruptFileError where a manifest says in its header that it has other content."""
    told = file.metadata.get("content", b"").decode("utf-8", "replace").lower()
    if not told and file.metadata.get("format-version", b"1") == b"1":
        told = "data"
    listed = manifest.content.name.lower()
    if told and told != listed:
        raise CorruptFileError(
            file.path, f"a manifest of {told} that the manifest list says is one of {listed}"
        )
