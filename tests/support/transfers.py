"""Copies between stores whose options differ."""

from __future__ import annotations

from typing import Any

import tfrecord_io as tfr


def transfer(source: Any, own: dict[str, Any] | None, target: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """What to pass as the source, and which keywords, where the storage of both has these options."""
    if own is None or target is None or own == target:
        return source, {"storage_options": own or target}
    return tfr.dataset(source, storage_options=own, record_type="bytes"), {"storage_options": target}


def convert_flat(source: Any, target: Any, **keywords: Any) -> Any:
    """`tfr.convert`, with options of formats among the keywords, as the command line has them."""
    from tfrecord_io.file_formats.convert import Sides, convert_given

    formats = [keywords.pop(f"{side}_format", None) for side in ("source", "target")]
    own = [dict(keywords.pop(f"{side}_options", {})) for side in ("source", "target")]
    places = {name: keywords.pop(name, None) for name in ("storage_options", "filesystem")}
    whole = {"columns": keywords.pop("columns", None), "files": keywords.pop("files", None)}
    whole["resume"] = keywords.pop("resume", False)
    return convert_given(source, target, Sides(*formats, *own), places, keywords, **whole)
