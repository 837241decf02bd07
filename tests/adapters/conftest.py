"""Fixtures of the tests of adapters."""

from column_indexes_used import column_indexes_are_used  # noqa: F401
