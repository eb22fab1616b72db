from __future__ import annotations

import pytest

from icesql.errors import ProgrammingError
from icesql.maintain.rewrite.options import rewrite_options
from tests.maintain.rewrite.tables import catalog_of, new_table

MB = 1 << 20


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    folder = tmp_path_factory.mktemp("t")
    table = new_table(folder, **{"write.target-file-size-bytes": str(100 * MB)})
    return catalog_of(table).load(("ns", "t")).metadata


def test_sizes_follow_the_target(metadata):
    options = rewrite_options({}, metadata)
    assert options.target_file_size_bytes == 100 * MB
    assert options.min_file_size_bytes == 75 * MB
    assert options.max_file_size_bytes == 180 * MB
    assert options.write_max == 140 * MB
    given = rewrite_options({"target-file-size-bytes": "1000"}, metadata)
    assert (given.min_file_size_bytes, given.max_file_size_bytes) == (750, 1800)


def test_defaults_are_those_of_spark(metadata):
    options = rewrite_options({}, metadata)
    assert options.min_input_files == 5
    assert options.delete_ratio_threshold == 0.3
    assert options.max_file_group_size_bytes == 107374182400
    assert options.partial_progress_max_commits == 10
    assert options.max_concurrent_file_group_rewrites == 5
    assert options.use_starting_sequence_number
    assert not options.partial_progress_enabled
    assert not options.remove_dangling_deletes


def test_every_option_is_read_by_its_name(metadata):
    given = {
        "min-file-size-bytes": "1", "max-file-size-bytes": "999999999", "min-input-files": "2",
        "rewrite-all": "TRUE", "max-file-group-size-bytes": "7", "max-file-group-input-files": "8",
        "delete-file-threshold": "9", "delete-ratio-threshold": "0.5", "max-files-to-rewrite": "10",
        "partial-progress.enabled": "true", "partial-progress.max-commits": "3",
        "max-concurrent-file-group-rewrites": "4", "use-starting-sequence-number": "false",
        "remove-dangling-deletes": "true", "rewrite-job-order": "bytes-desc", "output-spec-id": "0",
    }  # fmt: skip
    options = rewrite_options(given, metadata)
    assert options.rewrite_all
    assert options.max_file_group_input_files == 8
    assert options.delete_file_threshold == 9
    assert options.partial_progress_max_commits == 3
    assert options.partial_progress_max_failed_commits == 3
    assert options.rewrite_job_order == "bytes-desc"
    assert options.output_spec_id == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"min-imput-files": "2"}, "no option 'min-imput-files'.*did you mean min-input-files"),
        ({"var-length-contribution": "2"}, "no option"),
        ({"min-input-files": "many"}, "'many'; it has to be a number"),
        ({"min-input-files": "0"}, "min-input-files must be > 0"),
        ({"rewrite-all": "yes"}, "it can be true or false"),
        ({"target-file-size-bytes": "0"}, "target-file-size-bytes must be > 0"),
        ({"min-file-size-bytes": str(100 * MB)}, "all new files would be too small"),
        ({"max-file-size-bytes": str(100 * MB)}, "all new files would be too large"),
        ({"delete-ratio-threshold": "1.5"}, "must be > 0 and <= 1"),
        ({"delete-ratio-threshold": "nan"}, "must be > 0 and <= 1"),
        ({"output-spec-id": "7"}, "the table has the partition specs 0"),
        ({"rewrite-job-order": "size"}, "it can be none, bytes-asc"),
        ({"partial-progress.enabled": "true", "partial-progress.max-commits": "0"}, "must be > 0"),
    ],
)
def test_what_cannot_be_is_refused(metadata, given, said):
    with pytest.raises(ProgrammingError, match=said):
        rewrite_options(given, metadata)


def test_options_of_z_order_are_known_there_alone(metadata):
    assert rewrite_options({"var-length-contribution": "2"}, metadata, "zorder")
    with pytest.raises(ProgrammingError, match="no option"):
        rewrite_options({"max-output-size": "2"}, metadata, "sort")
    assert (
        rewrite_options({"compression-factor": "0.5"}, metadata, "sort").compression_factor == 0.5
    )
