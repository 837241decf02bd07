"""PyTorch: an IterableDataset that ranks and workers share, and a map-style Dataset of rows by number.

Their classes are subclasses of torch's, which are made when torch is first used: also in a process that unpickles one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrecord_io.adapters.libraries import needs
from tfrecord_io.adapters.masks import without_masks
from tfrecord_io.arrays.random_rows import ByNumber, random_rows
from tfrecord_io.engine.contract import Array
from tfrecord_io.keyword_docs import check_keywords, document_keywords
from tfrecord_io.options import IterOptions
from tfrecord_io.training.iterator import OF_FILES, ArrayIterator, iterate
from tfrecord_io.training.windows import Trainable
from tfrecord_io.typing import Missing

if TYPE_CHECKING:
    import torch

_SEED_BITS = 48


@check_keywords
@document_keywords(IterOptions, without={*OF_FILES, "batch_size", "epochs", "worker", "state"})
def to_torch(
    scan: Trainable, *, batch_size: int | None = None, rank: tuple[int, int] | None = None, **keywords: Any
) -> torch.utils.data.IterableDataset[dict[str, Any]]:
    """A PyTorch IterableDataset, whose rows the ranks and the workers of a DataLoader share.

    Parameters
    ----------
    batch_size : int, optional
        Rows of a batch; pass ``batch_size=None`` to the DataLoader then. By default, single rows, for a DataLoader that
        makes the batches: many times slower.
    rank : tuple of int, optional
        The index of this process, and the number of processes; by default those of ``torch.distributed``, if it is
        initialized, else (0, 1).
    {keywords}

    Returns
    -------
    torch.utils.data.IterableDataset
        Of dicts by column. Numbers, bools, times and tensors are torch tensors that share the memory of the decoded
        arrays; times and durations are int64, counts of the unit in the schema. Text, bytes, decimals and lists of
        different lengths are lists of str, bytes, Decimal and tensors, with None for a missing value. With
        ``missing="mask"`` there is a bool tensor ``<column>/mask`` for each tensor column, True where a value is
        missing. ``set_epoch(n)`` chooses the order of an epoch, and its iterators have ``state_dict`` and
        ``load_state_dict``, which torchdata's StatefulDataLoader uses.

    Raises
    ------
    MissingDependencyError
        torch is not installed.
    TypeError, ValueError
        A keyword does not exist, or its value is invalid.
    """
    with needs("torch"):
        import torch
    if rank is None:
        distributed = torch.distributed
        active = distributed.is_available() and distributed.is_initialized()
        rank = (distributed.get_rank(), distributed.get_world_size()) if active else (0, 1)
    iteration = iterate(scan, batch_size=batch_size or 1, worker=rank, **keywords)
    seed = int(torch.randint(2**_SEED_BITS, ())) if iteration.options.seed is None else iteration.options.seed
    return _stream_class()(iteration, batch_size is None, seed, torch.zeros((), dtype=torch.int64))


def to_torch_map(scan: Trainable, *, missing: Missing = "error") -> torch.utils.data.Dataset[dict[str, Any]]:
    """A map-style PyTorch Dataset: rows by number, for samplers. Files must not be compressed.

    An index (``write_index=True`` or ``tfr index``) saves scanning the files. It can be pickled, and several processes
    may use it.

    Parameters
    ----------
    missing : {"error", "mask"}
        As in `tfrecord_io.read_arrays`.

    Returns
    -------
    torch.utils.data.Dataset
        Of dicts by column, whose values are those of a row of `to_torch`. A DataLoader gets the rows of a batch by one
        call, which reads the records that are near each other together.

    Raises
    ------
    MissingDependencyError
        torch is not installed.
    ValueError
        A file is compressed, or the dataset has an `on_error`.
    """
    with needs("torch"):
        import torch  # noqa: F401
    return _map_class()(random_rows(scan, missing))


# ---- arrays to tensors


def _tensors(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as tensors and lists, by name."""
    return {
        name: tuple(map(_tensor, array)) if isinstance(array, tuple) else _tensor(array)
        for name, array in without_masks(arrays).items()
    }


def _tensor(array: Array) -> torch.Tensor | list[Any]:
    """A tensor of an array, without a copy of writable memory; a list of what torch has no type for."""
    import torch

    kind = array.dtype.kind
    if kind == "O":
        return [_tensor(cell) if isinstance(cell, np.ndarray) else cell for cell in array.tolist()]
    if kind in "TSU":
        return array.tolist()
    if not array.flags.writeable:
        array = array.copy()
    if kind in "mM":
        return torch.from_numpy(array.view(np.int64))
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _row(tensors: Mapping[str, Any], row: int) -> dict[str, Any]:
    """One row of a batch."""
    return {name: values[row] for name, values in tensors.items()}


# ---- streams


class _TensorIterator:
    """An iterator over the batches or rows of an epoch, whose position can be saved."""

    def __init__(self, dataset: Any, epoch: int) -> None:
        from torch.utils.data import get_worker_info

        info = get_worker_info()
        index, count = (0, 1) if info is None else (info.id, info.num_workers)
        self._iteration, self._by_row, self._seed = dataset.iteration, dataset.by_row, dataset.seed
        rank, ranks = self._iteration.options.worker
        self._changes: dict[str, Any] = {"worker": (rank * count + index, ranks * count)}
        if info is not None and self._iteration.options.threads is None:
            self._changes["threads"] = 1  # the processes share the processors already
        self._epoch = epoch
        self._arrays: ArrayIterator = self._begin(seed=self._seed)

    def _begin(self, **changes: Any) -> ArrayIterator:
        return self._iteration.begun_at(self._epoch, epochs=self._epoch + 1, **self._changes, **changes)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        tensors = _tensors(next(self._arrays))
        return _row(tensors, 0) if self._by_row else tensors

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch or row, as numbers and text."""
        return {"epoch": self._epoch, "position": self._arrays.state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at a position; ValueError if it is that of other files, options, ranks or workers."""
        self._epoch = int(state["epoch"])
        self._arrays.close()
        self._arrays = self._begin(state=state["position"])


@cache
def _stream_class() -> type[Any]:
    import torch

    class TFRecordStream(torch.utils.data.IterableDataset):  # type: ignore[misc]
        """Rows of TFRecord files, or batches of them, in an order that `set_epoch` chooses."""

        def __init__(self, iteration: ArrayIterator, by_row: bool, seed: int, epoch: torch.Tensor) -> None:
            self.iteration, self.by_row, self.seed = iteration, by_row, seed
            self._epoch = epoch.share_memory_()  # workers that persist see what is set

        def set_epoch(self, epoch: int) -> None:
            """Choose the order of the next iterations, in workers, too: 0, 1, … are shuffled differently."""
            self._epoch.fill_(epoch)

        def __iter__(self) -> Iterator[dict[str, Any]]:
            return _TensorIterator(self, int(self._epoch))

        def __reduce__(self) -> tuple[Any, ...]:
            return _made, (_stream_class, self.iteration, self.by_row, self.seed, self._epoch)

    return TFRecordStream


# ---- rows by number


@cache
def _map_class() -> type[Any]:
    import torch

    class TFRecordRows(torch.utils.data.Dataset):  # type: ignore[misc]
        """Rows of TFRecord files by number."""

        def __init__(self, rows: ByNumber) -> None:
            self.rows = rows

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, number: int) -> dict[str, Any]:
            return self.__getitems__([number])[0]

        def __getitems__(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
            """The rows of a batch."""
            tensors = _tensors(self.rows.arrays(np.asarray(numbers, np.int64)))
            return [_row(tensors, row) for row in range(len(numbers))]

        def __reduce__(self) -> tuple[Any, ...]:
            return _made, (_map_class, self.rows)

    return TFRecordRows


def _made(of_class: Callable[[], type[Any]], *arguments: Any) -> Any:
    return of_class()(*arguments)
