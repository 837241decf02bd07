"""Fixtures of the tests of commands and adapters."""

from column_indexes_used import column_indexes_are_used  # noqa: F401
from command_runs import run  # noqa: F401
