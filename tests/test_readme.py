"""README.md: what it says works, also where the package index shows it."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
SCRIPT = ROOT / "docs" / "reference" / "readme.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_it_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_what_is_lost_is_said_in_the_same_sentence(page: str) -> None:
    sentences = re.split(r"\.\s", (ROOT / page).read_text("utf-8"))
    claims = [sentence for sentence in sentences if re.search("lossless|is lost", sentence)]
    assert claims
    assert all("float64" in sentence for sentence in claims)


@pytest.mark.parametrize("page", runpy.run_path(str(SCRIPT))["PAGES"])
def test_a_release_replaces_the_line_that_installs(script: dict[str, Any], page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    clone, release = (script["with_install"](text, script[line]) for line in ("CLONE", "RELEASE"))
    assert text in (clone, release)
    assert script["CLONE"] in clone.splitlines()
    assert script["RELEASE"] in release.splitlines()
    assert script["with_install"](release, script["CLONE"]) == clone


def test_extras_are_those_of_a_clone_until_a_release(script: dict[str, Any]) -> None:
    """Before anything is published, ``pip install 'tfrecord_io[s3]'`` finds no package, or another one."""
    published = re.compile(r"'tfrecord_io\[")
    assert [str(page) for page in script["pages_with_extras"]() if published.search(page.read_text("utf-8"))] == []
    text = "pip install '.[image,s3]' and `'.[zstd]'`"
    release = script["with_extras"](text, script["RELEASE"])
    assert release == "pip install 'tfrecord_io[image,s3]' and `'tfrecord_io[zstd]'`"
    assert script["with_extras"](release, script["CLONE"]) == text
    assert "'tfrecord_io[image,s3]'" in script["for_the_index"]("", "v1.2.3")


def test_a_page_without_the_line_is_an_error(script: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected one line"):
        script["with_install"]("pip install somethingelse\n", script["RELEASE"])


def test_the_package_index_gets_absolute_links(script: dict[str, Any]) -> None:
    text = script["for_the_index"]("https://example.org/owner/name/", "v1.2.3")
    assert script["relative_links"](text) == []
    assert "](https://example.org/owner/name/blob/v1.2.3/docs/performance.md)" in text
    assert 'src="https://example.org/owner/name/raw/v1.2.3/docs/images/parquet.svg"' in text
    assert script["RELEASE"] in text.splitlines()


def test_the_package_index_shows_it(script: dict[str, Any]) -> None:
    markdown = pytest.importorskip("readme_renderer.markdown")
    shown = markdown.render(script["for_the_index"]("https://example.org/owner/name", "v1.2.3"))
    assert shown is not None, "twine check --strict would fail"
    assert re.findall(r'(?:src|href)="(?!https://|#)([^"]*)"', shown) == []
    assert shown.count("<img") == 5
    assert shown.count("<table") == 1


@pytest.mark.skipif("TFRECORD_IO_FRESH" not in os.environ, reason="builds the package: dev/readme-check")
@pytest.mark.timeout(1800)
def test_its_commands_run_in_a_fresh_environment(tmp_path: Path) -> None:
    """As they are: those of shells in a clone, then the programs, up to the section that needs images and a bucket."""
    clone, place, venv = tmp_path / "clone", tmp_path / "place", tmp_path / "venv"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    place.mkdir()
    dropped = ("PYTHONPATH", "PYTHONSAFEPATH")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment["PATH"] = f"{venv / 'bin'}{os.pathsep}{environment['PATH']}"

    def run(*command: str, folder: Path) -> None:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"

    text = README.read_text("utf-8").partition("## From a folder")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert {language for language, _ in blocks} == {"sh", "python", "text", "console"}
    program = ""
    for language, block in sorted(blocks, key=lambda block: block[0] != "sh"):  # the first program stands above them
        if language == "python":  # each continues those before it
            program += block
            for path in place.iterdir():
                path.unlink()
            run("python", "-c", program, folder=place)
        elif language == "sh":  # make runs these tests
            run("bash", "-euc", re.sub(r"^make .*", "", block, flags=re.MULTILINE), folder=clone)
        elif language == "console":
            run("bash", "-euc", re.sub(r"^\$ ", "", block, flags=re.MULTILINE), folder=place)
