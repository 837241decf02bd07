"""Which tests the fast tier leaves out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tiers import LONG, light_tests


@pytest.mark.parametrize("page", ["README.md"])
def test_a_page_of_the_documentation_is_no_browser(page: str, request: pytest.FixtureRequest) -> None:
    item: Any = request.node
    assert item.callspec.params == {"page": page}
    assert [*light_tests([item], LONG)] == [item]
    with_fixture: Any = SimpleNamespace(
        nodeid="tests/test_a.py::test", fixturenames=["page"], get_closest_marker=lambda name: None
    )
    assert [*light_tests([with_fixture], LONG)] == []
