"""The options of ``tfr copy`` that do another thing than in other commands: their help says so."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("command", "option", "text"),
    [
        ("copy", "--mode", "by default, that is an error"),
        ("convert", "--mode", "by default, a file is replaced, and a dataset is an error"),
    ],
)
def test_the_help_says_what_an_option_does_here(run, command: str, option: str, text: str) -> None:
    words = " ".join(run(command, "--help").output.split())
    assert text in words[words.index(f" {option} ") :]
