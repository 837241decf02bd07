"""Fixtures that run the command."""

from command_runs import run  # noqa: F401
