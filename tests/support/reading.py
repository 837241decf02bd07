"""Call what reads files with any keywords of reading: those that it does not have are passed to `dataset`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import tfrecord_io as tfr

T = TypeVar("T")


@lru_cache
def _parameters(verb: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(verb).parameters


def read_by(verb: Callable[..., T], source: Any, *arguments: Any, **keywords: Any) -> T:
    """``verb(source, …)``, of a dataset where keywords need one."""
    own = _parameters(verb)
    if "filesystem" in keywords and "filesystem" not in own:
        keywords["storage_options"] = keywords.pop("filesystem")
    reading = {name: keywords.pop(name) for name in [*keywords] if name not in own}
    if not reading:
        return verb(source, *arguments, **keywords)
    for name in {"storage_options", "filesystem"} & keywords.keys():
        reading[name] = keywords.pop(name)
    return verb(tfr.dataset(source, **reading), *arguments, **keywords)
