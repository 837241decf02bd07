"""The table of adapters: the libraries that read and write datasets, each imported when it is used.

Tests: tests/base/test_registry.py and tests/test_rows_page.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tfrecord_io.base.options.call_errors import check_keywords
from tfrecord_io.base.registry import ADAPTERS as POINTS
from tfrecord_io.base.registry import Registry


@dataclass(frozen=True, slots=True)
class Adapter:
    """A library, and the calls that it is used by: a row of the table.

    Attributes
    ----------
    name : str
        Of the adapter, and of the extra that installs the library, whose name has ``-`` for ``_``.
    methods : tuple of str
        Functions of `module` that are methods of `Dataset`: the first argument is the dataset.
    module : str
        The module that defines them, by default the one of this name in `adapters`.

    Examples
    --------
    Another package, whose module ``tfrecord_lance`` has a function ``to_lance(dataset, uri)``, makes that a method
    of each dataset by the entry point ``lance = "tfrecord_lance:ADAPTER"`` of the group ``tfrecord_io.adapters``:

    >>> ADAPTER = Adapter("lance", methods=("to_lance",), module="tfrecord_lance")
    """

    name: str
    methods: tuple[str, ...] = ()
    module: str = ""

    def __post_init__(self) -> None:
        if not self.module:
            object.__setattr__(self, "module", f"tfrecord_io.apps.adapters.{self.name}")

    @staticmethod
    def added_method(name: str) -> Callable[..., Any] | None:
        """The function that an adapter of another package makes a method of datasets, or None."""
        return next((_method(adapter, name) for adapter in ADAPTERS if name in adapter.methods), None)


CORE = (
    Adapter("polars", ("to_polars",)),
    Adapter("duckdb", ("to_duckdb",)),
    Adapter("pandas"),
    Adapter("xarray", ("to_xarray",)),
    Adapter("torch", ("to_torch", "to_torch_map")),
    Adapter("tf", ("to_tf",)),
    Adapter("hf", ("to_hf",)),
    Adapter("grain", ("to_grain",)),
    Adapter("keras", ("to_keras",)),
)  # a new adapter is a row here
ADAPTERS: Registry[Adapter] = Registry("adapter", Adapter, CORE, POINTS)


class AdapterMethod:
    """A method of datasets that an adapter has: its module is imported when it is first used."""

    def __init__(self, adapter: str) -> None:
        self._adapter = adapter

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, dataset: Any, owner: type) -> Any:
        setattr(owner, self._name, _method(ADAPTERS[self._adapter], self._name))
        return getattr(owner if dataset is None else dataset, self._name)


def _method(adapter: Adapter, name: str) -> Callable[..., Any]:
    method: Callable[..., Any] = getattr(import_module(adapter.module), name)
    return check_keywords(method)
