"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pandas as pd
import pytest

import tfrecord_io
from border import PUBLIC, public
from extras import EXTRAS, library
from tfrecord_io.base.libraries import ADAPTERS

PACKAGE = Path(tfrecord_io.__file__).parent
MODULES = [  # with an example; another one has no docstring but its own
    ".".join(("tfrecord_io", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]

# Those of large libraries are run by make test-adapters.
LIBRARIES = {row.module: library(row.name) if row.name in EXTRAS else row.name for row in ADAPTERS.own}
LIBRARIES["tfrecord_io.plugins.browse.browse_server"] = "uvicorn"

PANDAS_2 = pd.__version__.startswith("2.")
SHOWN_BY_PANDAS_3 = ["tfrecord_io.plugins.engines.dask", "tfrecord_io.apps.api"]


USING = {"tfrecord_io.bytes.format.known_formats": "tensorflow", "tfrecord_io.columns.schema.schema": "tensorflow"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.plugins(*filter(None, [USING.get(name)]))) for name in MODULES]
)
def test_examples_of_module(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for home in (home for home in LIBRARIES if re.fullmatch(rf"{home}([._]\w+)?", name)):
        pytest.importorskip(LIBRARIES[home])
    if PANDAS_2 and name in SHOWN_BY_PANDAS_3:
        pytest.skip("pandas 2 shows it in another way")
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0


@pytest.mark.plugins("engines")  # which has some of them
def test_modules_that_pandas_2_shows_in_another_way_are_there() -> None:
    assert set(SHOWN_BY_PANDAS_3) <= set(MODULES)


FUNCTIONS = [name for name in PUBLIC if name.islower()]


def test_public_calls_have_an_example_before_their_parameters() -> None:
    before = {name: (inspect.getdoc(public(name)) or "").partition("\nParameters\n---")[0] for name in FUNCTIONS}
    assert [name for name, text in before.items() if ">>> " not in text] == []


def test_examples_of_public_names_import_public_names() -> None:
    for name in PUBLIC:
        imported = re.findall(r">>> from (tfrecord_io\.\w+)", inspect.getdoc(public(name)) or "")
        assert set(imported) <= {"tfrecord_io.errors", "tfrecord_io.typing"}, name
