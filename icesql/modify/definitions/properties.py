"""Check that icesql can use the values of table properties, before they are set.

A value that a later statement would reject is rejected here, by the function that reads it there;
otherwise users would learn of it from an INSERT. Properties of other engines are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icesql.commit.manifests.store import ManifestSettings
from icesql.commit.retries import check_retries
from icesql.errors import CorruptFileError, ProgrammingError, UnsupportedTableError
from icesql.iceberg.metadata.file_names import is_gzipped
from icesql.iceberg.metadata.name_mapping import PROPERTY, parse_name_mapping
from icesql.iceberg.metadata.property_numbers import number_property
from icesql.iceberg.partitioning import PartitionSpec
from icesql.maintain.deletes.plan import delete_granularity
from icesql.maintain.expiry_plan import check_ages
from icesql.modify.rows.target import check_modes
from icesql.scan.tasks.packing import LOOKBACK, OPEN_FILE_COST, TARGET_SIZE
from icesql.write.options import FORMATS, check_properties_of_table, write_options
from icesql.write.write_task import distribution

_FILES: Final = ("parquet", "orc", "avro")
_POSITIVE: Final = (TARGET_SIZE, LOOKBACK)
_NUMBERS: Final = (
    OPEN_FILE_COST,
    "write.metadata.previous-versions-max",
    "write.metadata.metrics.max-inferred-column-defaults",
)


def check_properties(given: Mapping[str, str]) -> None:
    """Raise ProgrammingError naming a property whose value a statement could not use."""
    try:
        check_retries(given)
        is_gzipped(given)
        ManifestSettings.of(given)
        check_ages(given)
        check_modes(given)
        check_properties_of_table(given)
        for deletes in (False, True):
            write_options({**given, **dict.fromkeys(FORMATS, "parquet")}, deletes=deletes)
        distribution(given, PartitionSpec(0), is_sorted=False)
        delete_granularity(given)
        if PROPERTY in given:
            parse_name_mapping(given[PROPERTY])
    except (UnsupportedTableError, CorruptFileError) as error:
        raise ProgrammingError(f"cannot set a property that icesql cannot use: {error}") from error
    for name in _NUMBERS:
        number_property(given, name, 0)
    for name in _POSITIVE:
        number_property(given, name, 1, least=1)
    for name in FORMATS:
        text = given.get(name, "parquet")
        if text.lower() not in _FILES:
            raise ProgrammingError(
                f"property {name} is {text!r}; it has to be parquet, orc or avro"
            )
