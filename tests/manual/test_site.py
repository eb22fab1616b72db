"""The manual builds as a static site that asks nothing of the network."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from icesql.manual.lookup import chapters
from tests.processes import ran

SCRIPT = Path(__file__).parents[2] / ".ci" / "site"


@pytest.mark.skipif(not SCRIPT.exists(), reason="not a git checkout")
@pytest.mark.skipif(
    importlib.util.find_spec("zensical") is None, reason="needs pip install zensical"
)
def test_the_site_has_a_page_for_each_chapter_and_loads_nothing(tmp_path: Path) -> None:
    done = ran([sys.executable, str(SCRIPT), str(tmp_path / "site")])
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {each.stem: each for each in (tmp_path / "site").rglob("*.html")}
    assert set(pages) == {*chapters(), "404"}
    for page in pages.values():
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'(?:src|rel="stylesheet" href)="https?://', text) == []
