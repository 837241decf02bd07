"""Apache Beam: the module of the adapter, which names the transforms; `beam_transforms` has them, and imports Beam."""

from __future__ import annotations

from typing import Any

from tfrecord_io.base import needs

TRANSFORMS = ("ReadTable", "ReadAllTables", "WriteTable")


def __getattr__(name: str) -> Any:
    if name not in TRANSFORMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs("beam"):
        from tfrecord_io.plugins.engines.beam import beam_transforms
    return getattr(beam_transforms, name)
