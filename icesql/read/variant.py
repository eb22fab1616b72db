"""Variants as JSON text."""

from __future__ import annotations

import pyarrow as pa

from icesql.read.convert import ArrayReader


def variant_reader(source: pa.DataType) -> ArrayReader | None:
    """How a variant column of this stored type becomes JSON text; None when it cannot."""
    return None
