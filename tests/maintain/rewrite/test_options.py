from __future__ import annotations

from ast import literal_eval

import pytest

from icesql.errors import ProgrammingError
from icesql.maintain.rewrite.plan import rewrite_options
from tests.maintain.rewrite.tables import catalog_of, new_table
from tests.tables import read_table

MB = 1 << 20


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    folder = tmp_path_factory.mktemp("t")
    table = new_table(folder, **{"write.target-file-size-bytes": str(100 * MB)})
    return catalog_of(table).load(("ns", "t")).metadata


@pytest.mark.parametrize(("given", "read"), read_table(__file__, "options.tsv"))
def test_options_are_read_and_the_others_are_those_of_spark(metadata, given, read):
    options = rewrite_options(literal_eval(given), metadata)
    assert {name: getattr(options, name) for name in literal_eval(read)} == literal_eval(read)


@pytest.mark.parametrize(("given", "said"), read_table(__file__, "refused_options.tsv"))
def test_what_cannot_be_is_refused(metadata, given, said):
    with pytest.raises(ProgrammingError, match=said):
        rewrite_options(literal_eval(given), metadata)


def test_options_of_z_order_are_known_there_alone(metadata):
    assert rewrite_options({"var-length-contribution": "2"}, metadata, "zorder")
    with pytest.raises(ProgrammingError, match="no option"):
        rewrite_options({"max-output-size": "2"}, metadata, "sort")
    assert (
        rewrite_options({"compression-factor": "0.5"}, metadata, "sort").compression_factor == 0.5
    )
