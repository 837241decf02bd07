"""Fixtures that run the command."""

from command_runs import in_terminal, run  # noqa: F401
