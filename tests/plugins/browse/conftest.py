"""Fixtures of the tests of the page."""

from browser import page  # noqa: F401
