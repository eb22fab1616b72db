"""The configuration file of the command."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from icesql.config import config_path
from icesql.errors import ProgrammingError
from icesql.repl.preferences import _VALUES, ConfigFile, ShellPreferences, read_config
from icesql.repl.results import TEXT_FORMATS
from icesql.repl.run_command import variable
from tests.rows import rows_of

GOOD = """\
warehouse = "/data"
timezone = "Asia/Tokyo"
[shell]
keys = "vi"
pager = false
[settings]
threads = 2
prune = false
"""


def read(tmp_path: Path, text: str, **environment: str) -> ConfigFile:
    path = tmp_path / "c.toml"
    path.write_text(text)
    return read_config({"ICESQL_CONFIG": str(path), **environment})


def test_a_file_says_what_a_person_wants(tmp_path: Path) -> None:
    config = read(tmp_path, GOOD)
    assert config.connect == {"warehouse": "/data", "timezone": "Asia/Tokyo"}
    assert config.settings == {"threads": "2", "prune": "false"}
    assert config.shell == ShellPreferences(keys="vi", pager=False)


def test_variables_win_over_the_file(tmp_path: Path) -> None:
    config = read(tmp_path, GOOD, ICESQL_THREADS="1", ICESQL_TIMEZONE="UTC")
    assert config.settings == {"prune": "false"}
    assert "timezone" not in config.connect


def test_no_file_is_no_matter_unless_it_was_named(tmp_path: Path) -> None:
    assert read_config({"HOME": str(tmp_path)}) == ConfigFile()
    assert read_config({"HOME": str(tmp_path), "ICESQL_CONFIG": ""}) == ConfigFile()
    assert config_path({"XDG_CONFIG_HOME": "/x"}) == "/x/icesql/config.toml"
    with pytest.raises(ProgrammingError, match="ICESQL_CONFIG: cannot read"):
        read_config({"ICESQL_CONFIG": str(tmp_path / "nothing.toml")})


@rows_of(__file__, "wrong_preferences.tsv", "text", "told")
def test_what_a_file_says_wrong_is_an_error_with_its_name(
    tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(ProgrammingError) as caught:
        read(tmp_path, text.replace("⏎", "\n"))
    assert told in str(caught.value)
    assert "c.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1", 1),
        ("a=-2.50", Decimal("-2.50")),
        ("a='7'", "7"),
        ("a=", ""),
        ("a=true", True),
        ("a=null", None),
        ("a=1 OR 1=1", "1 OR 1=1"),
        ("a='it''s'", "it's"),
    ],
)
def test_variables_have_types(text: str, value: object) -> None:
    assert variable(text) == ("a", value)


def test_wrong_variables_are_refused() -> None:
    with pytest.raises(ProgrammingError, match="is not NAME=VALUE"):
        variable("a")
    with pytest.raises(ProgrammingError, match="no name of a variable"):
        variable("a b=1")


def test_what_each_key_may_be_is_told_of_every_key() -> None:
    assert list(_VALUES) == list(ShellPreferences.__struct_fields__)
    formats = _VALUES["format"].replace(" or", ",").replace('"', "").split(", ")
    assert tuple(formats) == TEXT_FORMATS


def test_a_file_that_is_there_and_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "icesql" / "config.toml"
    folder.mkdir(parents=True)
    with pytest.raises(ProgrammingError, match=r"^cannot read .*config.toml: Is a directory$"):
        read_config({"XDG_CONFIG_HOME": str(tmp_path)})
    folder.rmdir()
    folder.write_bytes(b"\xff")
    with pytest.raises(ProgrammingError, match=r"config.toml: it is not UTF-8 text$"):
        read_config({"XDG_CONFIG_HOME": str(tmp_path)})
    folder.write_bytes(b"\xef\xbb\xbfdialect = 'spark'\r\n")  # of an editor on Windows
    assert read_config({"XDG_CONFIG_HOME": str(tmp_path)}).connect == {"dialect": "spark"}
