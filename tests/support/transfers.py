"""Copies between stores whose options differ, and conversions whose options are in one dict."""

from __future__ import annotations

import inspect
import os
from typing import Any

import tfrecord_io as tfr
from tfrecord_io.apps.file_formats.choose_formats import format_of_target
from tfrecord_io.bytes.format.known_formats import FORMATS

_SHARED = inspect.signature(tfr.convert).parameters


def transfer(source: Any, own: dict[str, Any] | None, target: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """Choose the source to pass, and the keywords, for storage options of source and target."""
    if own is None or target is None or own == target:
        return source, {"storage_options": own or target}
    return tfr.dataset(source, storage_options=own, record_type="bytes"), {"storage_options": target}


def convert_flat(source: Any, target: Any, **keywords: Any) -> Any:
    """`tfr.convert`, with options of formats among the keywords: those of the target's format are its options."""
    shared = {name: value for name, value in keywords.items() if name in _SHARED}
    format = keywords.get("target_format")
    writes = (FORMATS.get(format) if format else format_of_target(os.fspath(target))) or FORMATS.tfrecord
    for name in keywords.keys() - _SHARED.keys():
        is_read = any(name in row.reads for row in FORMATS)
        side = "target_options" if name in writes.writes or not is_read else "source_options"
        shared[side] = {**shared.get(side, {}), name: keywords[name]}
    return tfr.convert(source, target, **shared)
