"""The scripts for shells of the system complete what the command line takes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from icesql.arguments import COMMANDS, SHELLS
from icesql.completion import completion_script
from tests.processes import ran


def offered(*words: str, cwd: Path) -> list[str]:
    """What bash offers for the last of the words."""
    typed = " ".join(f"'{word}'" for word in ("icesql", *words))
    program = f"""
{completion_script("bash")}
compopt() {{ [[ $2 != nospace ]] || space=none; }}
COMP_WORDS=({typed}) COMP_CWORD={len(words)}
_icesql
printf '%s\\n' "${{COMPREPLY[@]/%=/=$space}}"
"""
    done = ran(["bash", "-c", program], check=True, cwd=cwd)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_offers_commands_options_values_and_folders(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake.csv").touch()
    assert set(offered("", cwd=tmp_path)) == {*COMMANDS}
    assert set(offered("-", cwd=tmp_path)) >= {"--warehouse", "-c", "--output"}
    assert offered("do", cwd=tmp_path) == ["doctor"]
    assert offered("doctor", "--fa", cwd=tmp_path) == ["--fail-on"]
    assert offered("doctor", "t", "--fail-on", "", cwd=tmp_path) == ["high", "medium", "low"]
    assert offered("mcp", "--fa", cwd=tmp_path) == []
    assert offered("--format", "p", cwd=tmp_path) == ["parquet"]
    assert offered("--set", "memory", cwd=tmp_path) == ["memory_limit=none"]
    assert offered("--warehouse", "la", cwd=tmp_path) == ["lake"]
    assert set(offered("query", "-f", "la", cwd=tmp_path)) == {"lake", "lake.csv"}
    assert offered("help", "mai", cwd=tmp_path) == ["maintain"]
    assert offered("completion", "", cwd=tmp_path) == [*SHELLS]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_of_its_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = ran([shell, "-n"], input=completion_script(shell))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_offers_commands_and_options_of_one(tmp_path: Path) -> None:
    (tmp_path / "icesql.fish").write_text(completion_script("fish"))

    def completed(typed: str) -> set[str]:
        done = ran(
            ["fish", "-N", "-c", f"source icesql.fish; complete -C '{typed}'"],
            check=True,
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        )
        return {line.partition("\t")[0] for line in done.stdout.splitlines()}

    assert completed("icesql d") == {"demo", "doctor"}
    assert completed("icesql doctor --fail") == {"--fail-on"}
    assert completed("icesql doctor --fail-on ") == {"high", "medium", "low"}
    assert completed("icesql mcp --fail") == set()


def test_the_command_prints_it() -> None:
    done = ran([sys.executable, "-m", "icesql", "completion", "zsh"])
    assert (done.returncode, done.stdout) == (0, completion_script("zsh"))
    assert done.stdout.startswith("#compdef icesql\n")
