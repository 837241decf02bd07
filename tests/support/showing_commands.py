"""The commands that show what is in files, as they are declared."""

from __future__ import annotations

import click

from tfrecord_io.apps.cli import tfr as group


def takes_paths(command: click.Command) -> bool:
    """True if a command has files as its only arguments, and the options of all commands that read some."""
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    options = {param.name for param in command.params}
    return [(each.name, each.nargs) for each in arguments] == [("path", -1)] and "allow_missing_shards" in options


# A new command is tried with them; `browse` serves until it is stopped.
READING = sorted(name for name, command in group.commands.items() if takes_paths(command) and name != "browse")
SHOWING = [name for name in READING if name != "index"]  # which writes files
