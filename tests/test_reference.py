"""The API reference lists and describes every public name."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "reference" / "api.py"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_of_names_is_up_to_date(reference: ModuleType) -> None:
    assert reference.LIST.read_text(encoding="utf-8") == reference.names(), "run: make reference"


def test_the_pages_of_the_site_describe_every_name(reference: ModuleType) -> None:
    """Each is on the page of its task, and linked by the list."""
    pages = reference.render()
    for task, (_, groups) in reference.TASKS.items():
        for name in " ".join(reference.GROUPS[group] for group in groups).split():
            assert f"\n### `{reference.FULL[name]}` {{#{reference.anchor(name)}}}\n" in pages[task]
            assert f"({task}.md#{reference.anchor(name)})" in pages["api"]
    assert sorted(group for _, groups in reference.TASKS.values() for group in groups) == sorted(reference.GROUPS)
    for page in pages.values():
        anchors = re.findall(r"^### .* \{#(.*)\}$", page, re.MULTILINE)
        assert len({*anchors}) == len(anchors)
        assert "{keywords}" not in page
        assert "{path}" not in page


def test_links_of_the_pages_lead_to_names(reference: ModuleType) -> None:
    pages = reference.render()
    for page, text in pages.items():
        for target, anchor in re.findall(r"\]\((?:(\w+)\.md)?#([\w-]+)\)", text):
            found = pages[target or page].lower()
            assert f" {{#{anchor}}}" in found or f"## {anchor.replace('-', ' ')}\n" in found, (page, target, anchor)


def test_every_public_name_is_in_one_group(reference: ModuleType) -> None:
    assert sorted(" ".join(reference.GROUPS.values()).split()) == sorted(reference.FULL)


def test_every_public_name_has_a_summary(reference: ModuleType) -> None:
    assert [name for name in reference.FULL if not reference.summary(name)] == []


def test_examples_of_the_script(reference: ModuleType) -> None:
    assert doctest.testmod(reference).failed == 0


def test_examples_of_docstrings_are_blocks_of_code(reference: ModuleType) -> None:
    """A line that begins with >>> is a quotation in Markdown otherwise."""
    for task, page in reference.render().items():
        prose = re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
        assert ">>>" not in prose, task
        assert "# doctest:" not in page
