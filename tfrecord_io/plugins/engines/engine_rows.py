"""Adapters that this plugin adds, for libraries that work on several machines.

Tests: tests/plugins/engines.
"""

from __future__ import annotations

from tfrecord_io.kit import Adapter

_CODE = "tfrecord_io.plugins.engines."

DASK = Adapter("dask", ("to_dask",), module=f"{_CODE}dask")
DAFT = Adapter("daft", ("to_daft",), module=f"{_CODE}daft")
BEAM = Adapter("beam", module=f"{_CODE}beam")
RAY = Adapter("ray", ("to_ray",), module=f"{_CODE}ray")
SPARK = Adapter("spark", ("to_spark",), module=f"{_CODE}spark")
