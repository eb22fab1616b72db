"""Partition specs: which transforms of which columns a file was written by."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One partition value; ``transform`` is the text of the metadata, such as "bucket[16]".

    ``source_ids`` has several ids for multi-argument transforms (v3), else one.
    """

    source_ids: tuple[int, ...]
    field_id: int
    transform: str
    name: str

    @property
    def source_id(self) -> int:
        return self.source_ids[0]


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The partition fields of a spec, in order; partition tuples follow this order."""

    spec_id: int = 0
    fields: tuple[PartitionField, ...] = field(default=())

    @property
    def is_unpartitioned(self) -> bool:
        """True also for a spec of void transforms only: its deletes are global."""
        return all(each.transform.lower() == "void" for each in self.fields)
