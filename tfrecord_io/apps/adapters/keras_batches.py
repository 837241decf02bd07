"""The PyDataset of `to_keras`, which imports keras, and is imported by that call only.

Tests: tests/apps/adapters/test_keras.py.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from tfrecord_io.apps.adapters.mask_tensors import split_masks
from tfrecord_io.kit import BatchesByNumber, ModelInputs


class KerasBatches(keras.utils.PyDataset):  # type: ignore[misc]
    """Batches by number; with `shuffles`, their rows are in another order in each epoch."""

    def __init__(self, rows: BatchesByNumber, form: ModelInputs, shuffles: bool, **queue: Any) -> None:
        super().__init__(**queue)
        self._rows, self._form, self._shuffles, self._epoch = rows, form, shuffles, 0

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> Any:
        """The arrays of a batch, or with targets a pair of them; models take an array alone, not in a dict."""
        (batch,) = self._rows.take([number])
        arrays = {name: _plain(array) for name, array in split_masks(batch).items()}
        arrays = self._form.arrays(arrays)
        is_alone = len(arrays) == 1 and not self._form.is_pair
        return next(iter(arrays.values())) if is_alone else self._form.pair(arrays)

    def on_epoch_end(self) -> None:
        """Put the rows in the order of the next epoch."""
        if self._shuffles:
            self._epoch += 1
            self._rows.set_epoch(self._epoch)


def _plain(array: Any) -> Any:
    """An array that every backend takes: text as objects, times as counts of their unit."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "TmM":
        return array.astype(object) if array.dtype.kind == "T" else array.view(np.int64)
    return array
