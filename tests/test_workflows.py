"""The steps of the hosted workflows can be run here: they are targets of the Makefile, or `.ci/run`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import tfrecord_io as tfr

ROOT = Path(__file__).parents[1]
if not (ROOT / ".github").is_dir():
    pytest.skip("they are not in the sdist", allow_module_level=True)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)) | {"test-adapters"}
# What only the hosted machines can do: the release needs their identity, and wheels of other platforms their systems.
# Compilers for other processors are installed there.
HOSTED = ("sudo apt-get ", "bash .ci/run", "pipx run build", "gh release create", "test ")


def test_there_are_workflows() -> None:
    assert {path.stem for path in WORKFLOWS} == {"quick", "full", "nightly", "wheels", "docs", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_steps_are_targets(path: Path) -> None:
    text = path.read_text("utf-8")
    commands = re.findall(r"^\s*-? ?run: (.+)$", text, re.MULTILINE)
    matrix = re.search(r"^( +)target:\n((?:\1  - .+\n)+)", text, re.MULTILINE)
    listed = re.findall(r"- (.+)", matrix[2]) if matrix else []
    for command in [*commands, *(f"make {each}" for each in listed)]:
        if command.startswith("make ${{") or command.startswith(HOSTED):
            continue
        assert command.startswith("make "), command
        words = re.findall(r"(?:[^\s']|'[^']*')+", command)[1:]
        assert {word for word in words if "=" not in word} <= TARGETS, command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_are_bounded_and_have_few_permissions(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE)
    assert text.count("runs-on:") == text.count("timeout-minutes:")


def test_the_recipe_for_conda_has_the_dependencies_and_the_version() -> None:
    text = (ROOT / ".ci" / "recipe.yaml").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    stated = {
        name.removeprefix("python-"): bound for name, bound in re.findall(r"^    - ([\w-]+) ([<>=].*)$", text, re.M)
    }
    for needed in project["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)([^;]*)(?:;.*)?", needed).groups()  # type: ignore[union-attr]
        assert stated[name] == bound, needed
    assert f'version: "{tfr.__version__}"' in text
