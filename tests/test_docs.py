"""What the documents show works: their Python runs, their commands succeed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tfrecord_io.cli import tfr as command

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md"))]
NEEDS = {"docs/howto/buckets.md": "example_buckets"}  # pages and their fixtures
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[int, str, str]]:
    """(line, language, text) of each fenced block that runs."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start()) + 2, m[1], m[2]) for m in BLOCK.finditer(text)]


def run_console(text: str, where: str) -> None:
    for line in text.splitlines():
        if line.startswith("$ tfr "):
            done = CliRunner().invoke(command, shlex.split(line.removeprefix("$ tfr "), comments=True))
            assert done.exit_code == 0, f"{where}: {line}: {done.output}"


@pytest.mark.filterwarnings("ignore::tfrecord_io.PrecisionWarning")
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)])
def test_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The blocks of a page run in their order, in one namespace and an empty folder."""
    if page in NEEDS:
        request.getfixturevalue(NEEDS[page])
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page}
    for line, language, text in blocks(page):
        if language == "python":  # padded, so that a traceback shows the page's own line
            exec(compile("\n" * (line - 1) + text, str(ROOT / page), "exec"), namespace)
        else:
            run_console(text, f"{page}:{line}")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}"


def test_demo_runs(capsys: pytest.CaptureFixture[str]) -> None:
    import runpy

    runpy.run_path(str(ROOT / "demo" / "run.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "equal, including dtypes" in shown
    assert "PrecisionWarning: " in shown
    assert "bill_length_mm" in shown
