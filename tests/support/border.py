"""The tests of the rest without a plugin: TFRECORD_IO_WITHOUT=vision, as ``make test-border`` runs them.

The folder of the plugin is not in that copy of the package, and its own tests do not run. A test of the rest that uses
the plugin is skipped by the error that says so, also where a command prints it; any other error is a failure. A test
that states what plugins add is marked: ``@pytest.mark.plugins("vision")``.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from operator import attrgetter
from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.base.public_names import SHOWN_IN, public_names
from tfrecord_io.base.registry import NAMES, OWN
from tfrecord_io.errors import MissingDependencyError

WITHOUT = os.environ.get("TFRECORD_IO_WITHOUT", "")
# Each public name, and the same with the module that shows it: "open_npy": "formats.open_npy"; those that are there.
FULL_NAMES = {name: f"{shown_in}.{name}".lstrip(".") for shown_in in (*SHOWN_IN, "") for name in public_names(shown_in)}
PUBLIC = [n for n, full in FULL_NAMES.items() if not WITHOUT or f".plugins.{WITHOUT}." not in OWN[NAMES].get(full, "")]
_SAID = f"tfrecord_io.plugins.{WITHOUT}, which this installation does not have"


def public(name: str) -> Any:
    """Object of a public name, whichever module shows it."""
    return attrgetter(FULL_NAMES[name])(tfr)


def _says_so(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MissingDependencyError | AssertionError) and _SAID in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _skipping() -> Generator[None, Any, Any]:
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as error:  # `pytest.warns` fails where the call raised
        if WITHOUT and _says_so(error):
            pytest.skip(f"it uses the plugin {WITHOUT}")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Skip a module that uses the plugin where it is imported, such as for the cases of a test."""
    report = yield
    if WITHOUT and report.failed and _SAID in str(report.longrepr):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"it uses the plugin {WITHOUT}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    if any(WITHOUT in marker.args for marker in item.iter_markers("plugins")):
        pytest.skip(f"it states what the plugin {WITHOUT} adds")
    return (yield from _skipping())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    return (yield from _skipping())
