"""Batches in the form that models take them: images with channels first, and pairs of inputs and targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import Selection
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, RawImages
from tfrecord_io.errors import FeatureNotFoundError, SchemaError
from tfrecord_io.rows.arrays.image_arrays import image_decoder
from tfrecord_io.rows.arrays.stacked_or_ragged import SHAPE


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Form of batches, which are dicts by column."""

    _columns: frozenset[str] = frozenset()  # all of them
    _images: frozenset[str] = frozenset()  # columns whose channels become the first axis of an image
    _targets: tuple[str, ...] = ()  # columns of the second dict of a pair

    @classmethod
    def from_schema(
        cls, schema: pa.Schema, channels_first: bool = False, targets: Sequence[str] | str | None = None
    ) -> ModelInputs:
        """The form of batches with a schema.

        FeatureNotFoundError or ValueError if `targets` are not columns, or are all columns.
        """
        if not isinstance(channels_first, bool):
            raise TypeError(f"channels_first={channels_first!r}: expected True or False")
        fields = Column.leaf_fields(schema)
        columns = frozenset(field.name for field in fields)
        names = () if targets is None else tuple(Selection.check_names("targets", targets))
        for name in names:
            if name not in columns:
                valid = f"the columns are {', '.join(field.name for field in fields)}"
                raise FeatureNotFoundError("targets= names a column that is not read", feature=name, hint=valid)
        if targets is not None and not 0 < len({*names}) < len(columns):
            raise ValueError(f"targets={targets!r}: name some of the columns, as the others are the inputs")
        images = frozenset(field.name for field in fields if channels_first and _has_channels_last(field))
        return cls(columns, images, names)

    @property
    def is_pair(self) -> bool:
        """True if a batch is a pair."""
        return bool(self._targets)

    def arrays(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """A batch, or a row, whose images have their channels first: views of its arrays."""
        moved = {**batch}
        for name in self._images:
            shapes = moved.get(f"{name}/{SHAPE}")
            if shapes is not None and isinstance(moved.get(name), tuple):
                reason = "the values of images of several sizes are flat, and their channels cannot be moved"
                advice = 'pass ragged="pad" with channels_first=True'
                raise SchemaError(reason, feature=name, got="ragged='offsets'", hint=advice)
            if name in moved:
                moved[name] = _channels_first(moved[name])
            if shapes is not None:
                moved[f"{name}/{SHAPE}"] = shapes[..., [-1, -3, -2]]
        return moved

    def pair(self, batch: Mapping[str, Any]) -> Any:
        """A batch as (inputs, targets), each a dict, or the value of its only array; itself without targets."""
        if not self._targets:
            return batch
        parts: tuple[dict[str, Any], dict[str, Any]] = {}, {}
        for name, value in batch.items():
            owner = name if name in self._columns else name.rpartition("/")[0]  # of a mask, or of lengths
            parts[owner in self._targets][name] = value
        return tuple(next(iter(part.values())) if len(part) == 1 else part for part in parts)


def _has_channels_last(field: pa.Field) -> bool:
    raw = RawImages.from_field(field)  # which need no decoder unless they are resized
    return image_decoder(field) is not None if raw is None else not raw.form.has_channels_first


def _channels_first(images: Any) -> Any:
    """Images, or values and offsets of lists of them, with their last axis before the other two."""
    if isinstance(images, tuple):
        return (_channels_first(images[0]), *images[1:])
    if not isinstance(images, np.ndarray):
        return images
    if images.dtype != object:
        return np.moveaxis(images, -1, -3)
    cells: Array = np.empty(images.shape, object)
    for at, image in np.ndenumerate(images):
        cells[at] = _channels_first(image)
    return cells
