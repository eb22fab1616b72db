"""The configuration file on the command line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests import warm


def run(tmp_path: Path, *words: str, config: str = "") -> subprocess.CompletedProcess[str]:
    path = tmp_path / "config.toml"
    path.write_text(config)
    return warm.icesql(*words, env={**os.environ, "ICESQL_CONFIG": str(path)})


def test_the_file_names_the_warehouse_and_settings(tmp_path: Path, warehouse: Path) -> None:
    config = f'warehouse = "{warehouse}"\ntimezone = "Asia/Tokyo"\n[settings]\nthreads = 1\n'
    done = run(tmp_path, "-c", "SHOW timezone; SHOW threads; SHOW TABLES", config=config)
    assert done.returncode == 0, done.stderr
    assert "Asia/Tokyo" in done.stdout
    assert "shop.orders" in done.stdout
    over = run(tmp_path, "--timezone", "UTC", "-c", "SHOW timezone", config=config)
    assert "Tokyo" not in over.stdout
    told = run(tmp_path, "config", "--format", "csv", config=config).stdout
    assert f"threads,1,{tmp_path}/config.toml" in told
    assert f"config.warehouse,{warehouse}," in told
    assert "shell.keys,emacs,default" in told


def test_a_mistake_in_the_file_stops_the_command(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", "SELECT 1", config="warehose = 'x'")
    assert done.returncode == 1
    assert 'config.toml: unknown key "warehose"; did you mean warehouse?' in done.stderr


def test_variables_are_parameters_and_errors_may_be_passed_over(tmp_path: Path) -> None:
    done = run(
        tmp_path, "-v", "a=1 OR 1=1", "-v", "n=41", "--format", "csv",
        "-c", "SELECT $a AS a", "-c", "SELECT :n + 1 AS n",
    )  # fmt: skip
    assert done.stdout == "a\n1 OR 1=1\nn\n42\n", done.stderr
    done = run(
        tmp_path, "--continue-on-error", "--format", "csv",
        "-c", "SELECT 1 AS a", "-c", "SELECT nothing", "-c", "SELECT 2 AS a",
    )  # fmt: skip
    assert done.stdout == "a\n1\na\n2\n"
    assert done.returncode == 1
    assert "error: -c:2, statement 2: " in done.stderr
    assert run(tmp_path, "-v", "demo").returncode == 2
