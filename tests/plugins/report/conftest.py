"""Fixtures of the tests of reports."""

from browser import page  # noqa: F401
