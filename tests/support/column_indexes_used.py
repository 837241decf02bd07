"""A fixture of the tests of adapters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from reading_modes import matching_records_only


@pytest.fixture(autouse=True)
def column_indexes_are_used(request: pytest.FixtureRequest) -> Iterator[None]:
    """In this process all of them are used; others read such small files whole."""
    concerns = request.node.originalname == "test_a_filter_on_files_with_column_indexes"
    with matching_records_only() if concerns else nullcontext():
        yield
