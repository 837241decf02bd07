"""The pictures of the documentation are up to date with the text that they are drawn from."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from forked import interpreter

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def architecture() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "diagrams" / "architecture.py"))


def test_architecture_is_up_to_date(architecture: dict[str, Any]) -> None:
    drawn = architecture["render"](architecture["parse"](architecture["SOURCE"].read_text(encoding="utf-8")))
    assert architecture["TARGET"].read_text(encoding="utf-8") == drawn, "run: make reference DIAGRAMS=1"


def test_performance_is_up_to_date() -> None:
    """The pictures are those of the saved results, and the pages state the figures of Parquet's picture."""
    performance = runpy.run_path(str(DOCS / "diagrams" / "performance.py"))
    measured = json.loads(performance["SOURCE"].read_text(encoding="utf-8"))
    ratios = performance["beside_parquet"](performance["PAGE"].read_text(encoding="utf-8"))
    drawings = {
        "performance.svg": performance["render"](measured),
        "parquet.svg": performance["render_parquet"](ratios),
    }
    for name, drawn in drawings.items():
        assert (DOCS / "images" / name).read_text(encoding="utf-8") == drawn, "run: make reference DIAGRAMS=1"
        root = ElementTree.fromstring(drawn)
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
    page = (DOCS / "performance.md").read_text(encoding="utf-8")
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    for call, values in ratios.items():
        own, parquet = call.split(" ÷ ")
        assert f"| `{own}` ÷ `{parquet}` | {values[-1]:.2f} | {min(values[:-1]):.2f} | {max(values[:-1]):.2f} |" in page
        assert f"`{own}` {values[-1]:.2f}" in readme


def test_architecture_is_well_formed(architecture: dict[str, Any]) -> None:
    root = ElementTree.parse(architecture["TARGET"]).getroot()
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


def test_unknown_lines_are_refused(architecture: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unknown line: lane: x"):
        architecture["parse"]("row:\nlane: x\n")


def test_architecture_has_the_floors_of_the_code(architecture: dict[str, Any]) -> None:
    """The numbers in the boxes are the floors that test_layout.py enforces."""
    floors = runpy.run_path(str(Path(__file__).with_name("test_layout.py")))["FLOORS"]
    drawing = architecture["parse"](architecture["SOURCE"].read_text(encoding="utf-8"))
    for box in [*drawing.bars.values(), *(box for row in drawing.rows for box in row.boxes.values())]:
        low, _, high = box.floor.replace(", ", "–").partition("–")
        paths = [*box.path.split(), *(line for line in box.lines if line.endswith("/"))]
        units = [re.match(r"(apps/)?\w+", path) for path in paths]
        found = {floors[unit[0]] for unit in units if unit}
        assert {min(found), max(found)} == {int(low), int(high or low)}, box.path


@pytest.mark.skipif(not (DOCS.parent / "demo").exists(), reason="the data of the demonstration are not installed")
def test_casts_show_what_the_commands_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shlex.join(interpreter()))
    drawn = runpy.run_path(str(DOCS / "diagrams" / "casts.py"))["casts"]()
    assert {path: path.read_text(encoding="utf-8") for path in drawn} == drawn, "run: make reference DIAGRAMS=1"
