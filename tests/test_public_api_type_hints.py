"""The annotations of public calls can be evaluated, as pydantic, FastAPI and typer do."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

import tfrecord_io as tfr
from border import FULL_NAMES, PUBLIC
from tfrecord_io.base.public_names import SHOWN_IN


def public_calls() -> Iterator[tuple[str, Any]]:
    """Functions, and the methods of classes."""
    for module in (tfr, *(getattr(tfr, name) for name in SHOWN_IN)):
        for name in getattr(module, "__all__", dir(module)):
            if name in FULL_NAMES and name not in PUBLIC:
                continue
            item = getattr(module, name)
            if inspect.isfunction(item):
                yield f"{module.__name__}.{name}", item
            elif inspect.isclass(item) and item.__module__.startswith("tfrecord_io"):
                for method, _ in inspect.getmembers(item, inspect.isroutine):
                    if not method.startswith("_"):
                        yield f"{module.__name__}.{name}.{method}", inspect.unwrap(getattr(item, method))


CALLS = {name: call for name, call in public_calls() if hasattr(call, "__annotations__")}


@pytest.mark.parametrize("name", CALLS)
def test_type_hints_of_each_public_call_are_found(name: str) -> None:
    assert get_type_hints(CALLS[name]).keys() == CALLS[name].__annotations__.keys()


def test_hints_are_the_types_themselves() -> None:
    import pandas as pd

    assert get_type_hints(tfr.read_tfrecord)["return"] is pd.DataFrame
    report = get_type_hints(tfr.write_tfrecord)["return"]
    assert isinstance(tfr.write_tfrecord({"x": [1]}, "memory://hints.tfrecord"), report)


def test_libraries_are_imported_when_they_are_evaluated_only() -> None:
    code = "import sys, tfrecord_io as tfr; tfr.read_table; assert 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
