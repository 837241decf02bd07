"""The pictures of the documentation are up to date with the text that they are drawn from."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def architecture() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "diagrams" / "architecture.py"))


def test_architecture_is_up_to_date(architecture: dict[str, Any]) -> None:
    drawn = architecture["render"](architecture["parse"](architecture["SOURCE"].read_text(encoding="utf-8")))
    assert architecture["TARGET"].read_text(encoding="utf-8") == drawn, "run: make diagrams"


def test_architecture_is_well_formed(architecture: dict[str, Any]) -> None:
    root = ElementTree.parse(architecture["TARGET"]).getroot()
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


def test_unknown_lines_are_refused(architecture: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unknown line: lane: x"):
        architecture["parse"]("row:\nlane: x\n")
