"""Send the batches of the workers of a DataLoader: all arrays in shared memory that is used again, or in one buffer.

By itself, torch sends each tensor as a new file of shared memory, and looks at each value of a list.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from multiprocessing import reduction
from types import FrameType, NoneType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from tfrecord_io.apps.adapters.mask_tensors import split_masks
from tfrecord_io.kit import Dtype, ModelInputs, needs

Array = npt.NDArray[Any]

_ALIGNMENT = 64
# Without shared memory, torch sends batches of more bytes in less time.
_BUFFER_BYTES = 1 << 20
# For each worker: a DataLoader asks for two batches in advance, and the loop that reads from it holds one or two.
_SHARED_MEMORIES = 6
_FREE, _LENT, _LEFT = range(3)  # the first byte of a shared memory; see `_Memories`
_WORKER_LOOP, _FETCH = "_worker_loop", "fetch"  # functions of torch: the loop of a worker, and its call for each batch
_TORCH_KINDS = "biufcmMV"  # of arrays that become tensors; V is for dtypes of ml_dtypes

_Key = tuple[str] | tuple[str, int]  # key of an array in a batch: the name, and the index in a list
# Key, dtype and shape of an array, its offset, and the axes in the order in which they lie in memory.
_Form = tuple[_Key, np.dtype[Any], tuple[int, ...], int, tuple[int, ...]]


def tensors_of(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arrays to tensors and lists, by name."""
    return {
        name: tuple(map(tensor_of, array)) if isinstance(array, tuple) else tensor_of(array)
        for name, array in split_masks(arrays).items()
    }


def tensor_of(array: Array) -> torch.Tensor | list[Any]:
    """Convert an array to a tensor, without a copy of writable memory; to a list if torch has no such type."""
    kind = array.dtype.kind
    if kind == "O":
        return [tensor_of(cell) if isinstance(cell, np.ndarray) else cell for cell in array.tolist()]
    if kind in "TSU":
        return array.tolist()
    if not array.flags.writeable:
        array = array.copy()
    if kind in "mM":
        return torch.from_numpy(array.view(np.int64))
    if (row := Dtype.extension_of(array.dtype)) is None:
        return torch.from_numpy(array)
    if row.torch != row.name:  # the wider dtype, which torch has
        return torch.from_numpy(array.astype(row.wide))
    return torch.from_numpy(array.view(f"i{row.itemsize}")).view(_torch_dtype(row))


def _torch_dtype(row: Dtype) -> torch.dtype:
    """The dtype of torch for a row that has one; MissingDependencyError if this version has none of its name."""
    with needs("torch", row.name, requirement=f"torch>{torch.__version__}"):
        if not hasattr(torch, row.torch or ""):
            raise ImportError(f"torch {torch.__version__} has no {row.torch}", name="torch")
    dtype: torch.dtype = getattr(torch, row.torch or "")
    return dtype


# ---- in the worker


class WorkerBatch:
    """A batch of a worker that arrives in the process of the DataLoader as a dict of tensors.

    Values are converted when the instance is made, not when it is pickled: a thread does that, whose errors are lost.
    """

    def __init__(self, arrays: dict[str, Array], values: Mapping[str, Any], form: ModelInputs | None = None) -> None:
        self.form = form  # of pairs, which it arrives as
        self.arrays: dict[_Key, Array] = {(name,): array for name, array in arrays.items()}
        self.values = {**values}  # all names; None for values sent as arrays
        for name, value in values.items():
            if type(value) is list and torch.Tensor in {*map(type, value)}:
                items = [_array_of(item) for item in value]
                self.arrays |= {(name, i): array for i, array in enumerate(items) if array is not None}
                self.values[name] = [item if array is None else None for item, array in zip(value, items, strict=True)]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], form: ModelInputs | None = None) -> Self:
        """Make the batch of arrays from `iter_arrays`."""
        plain = split_masks(arrays)
        sent = {
            name: array
            for name, array in plain.items()
            if isinstance(array, np.ndarray) and array.dtype.kind in _TORCH_KINDS
        }
        values = {name: None if name in sent else _convert_value(array) for name, array in plain.items()}
        return cls(sent, values, form)

    @classmethod
    def from_tensors(cls, batch: Mapping[str, Any], form: ModelInputs | None = None) -> Self:
        """Make the batch of a dict of tensors and other values."""
        sent = {name: array for name, value in batch.items() if (array := _array_of(value)) is not None}
        return cls(sent, {name: None if name in sent else value for name, value in batch.items()}, form)


class _Collated:
    """A `collate_fn` whose dicts a worker sends as `WorkerBatch`."""

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        self._collate = collate

    def __call__(self, data: Any) -> Any:
        batch = self._collate(data)
        return WorkerBatch.from_tensors(batch) if type(batch) is dict else batch


def is_sent(caller: FrameType, collate: Callable[[Any], Any]) -> bool:
    """True if a worker sends the batch that `caller` gets at once, with this `collate_fn`, to no other code before.

    Other code of the worker must get a dict, as torch looks for tensors in no other class. Another `collate_fn` is
    wrapped here, so that dicts from it are sent as `WorkerBatch`.
    """
    fetch: FrameType | None = caller
    while fetch is not None and (fetch.f_back is None or fetch.f_back.f_code.co_name != _WORKER_LOOP):
        fetch = fetch.f_back
    if fetch is None or fetch.f_code.co_name != _FETCH:  # torchdata skips batches in its loop
        return False
    fetcher = fetch.f_locals["self"]
    if fetch is caller and fetcher.collate_fn is collate:
        return True
    if not isinstance(fetcher.collate_fn, _Collated):
        fetcher.collate_fn = _Collated(fetcher.collate_fn)
    return False


def _convert_value(array: Any) -> Any:
    """Convert a batch value as torch's default_convert does, without a look at each text."""
    value = tuple(map(tensor_of, array)) if isinstance(array, tuple) else tensor_of(array)
    if isinstance(value, list) and {*map(type, value)} <= {str, bytes, NoneType, torch.Tensor}:
        return value
    return torch.utils.data.default_convert(value)


def _array_of(value: Any) -> Array | None:
    """View a tensor as an array; None if torch has to send the value."""
    if type(value) is not torch.Tensor:
        return None
    try:
        array: Array = value.resolve_conj().resolve_neg().numpy()  # torch, too, resolves these
    except (TypeError, RuntimeError):  # NumPy has no such dtype or layout, or the value needs a gradient
        return None
    return array


def _reduce_batch(batch: WorkerBatch) -> tuple[Any, ...]:
    """Pickle a batch for another process."""
    arrays, values, pairs = batch.arrays, batch.values, () if batch.form is None else (batch.form,)
    size = sum(map(_room, arrays.values()))
    memory = _memories.lend(size) if arrays else None
    if memory is None and size > _BUFFER_BYTES:  # torch opens a file for each tensor: too many for lists
        values = values | {name: tensor_of(array) for (name, *number), array in arrays.items() if not number}
        arrays = {key: array for key, array in arrays.items() if len(key) > 1}
    if not arrays:
        return (_pair, (values, *pairs)) if pairs else (dict, (values,))
    forms, begin = list[_Form](), 0
    for key, array in arrays.items():
        axes = tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))
        forms.append((key, array.dtype, array.shape, begin, axes))
        begin += _room(array)
    content = bytearray(begin) if memory is None else memory.content
    for array, view in zip(arrays.values(), _views(content, forms), strict=True):
        view[...] = array
    return _rebuild_batch, (values, forms, content if memory is None else memory, *pairs)


def _room(array: Array) -> int:
    """Bytes that an array takes among several."""
    return -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT


reduction.ForkingPickler.register(WorkerBatch, _reduce_batch)


# ---- shared memories


class _Memories:
    """The shared memories of this process: those it lends, as a worker, and those it has borrowed, for a DataLoader.

    The first byte of a memory is its state, which both processes see:

    - FREE → LENT: the worker takes it for a batch, and sends the batch.
    - LENT → FREE: the process of the DataLoader has dropped the last array of the batch, so `_Borrowed` is deleted. The
      worker may use it again.
    - LENT → LEFT: the process of the DataLoader forks while it has the batch. From then on its child may read the
      arrays, too, for an unknown time. So it stays LEFT: the worker makes another memory instead.

    A worker that is forked begins with no memories of its own: those of its parent are lent by its parent.
    """

    def __init__(self) -> None:
        self._process = -1  # that has made the next ones
        self._own: list[_SharedMemory] = []
        self._opened: dict[tuple[int, int], mmap.mmap] = {}  # those of workers, by process and number
        self._borrowed: dict[int, mmap.mmap] = {}  # those whose arrays are used, by the id of the `_Borrowed`

    # In the worker

    def lend(self, size: int) -> _SharedMemory | None:
        """Lend a free memory of at least this size; None if all are lent, or the system has no shared memory."""
        if sys.platform != "linux":
            return None
        if self._process != os.getpid():  # forked
            self._process, self._own = os.getpid(), []
        unused = [memory for memory in self._own if memory.state != _LENT]
        large = [memory for memory in unused if memory.state == _FREE and memory.size >= size]
        if large:
            return min(large, key=lambda memory: memory.size).lend()
        if len(self._own) < _SHARED_MEMORIES:
            number = len(self._own)
        elif unused:
            number = unused[0].number
        else:
            return None
        try:
            memory = _SharedMemory(number, 1 << max(size - 1, 0).bit_length())
        except OSError:  # too many open files, or no memory
            return None
        self._own[number : number + 1] = [memory]
        return memory.lend()

    # In the process of the DataLoader

    def open(self, process: int, number: int, handle: Any) -> None:
        """Open a new memory of a worker, and close those of workers that have ended."""
        for key in list(self._opened):
            if not _runs(key[0]):
                self._opened.pop(key, None)
        file = handle.detach()
        try:
            self._opened[process, number] = mmap.mmap(file, 0)
        finally:
            os.close(file)

    def borrow(self, process: int, number: int) -> Array:
        """The content of an open memory, as an array."""
        return np.asarray(_Borrowed(self._opened[process, number], self._borrowed))

    def leave_all(self) -> None:
        """Mark the borrowed memories as left: the process is about to fork."""
        for memory in list(self._borrowed.values()):
            memory[0] = _LEFT


_memories = _Memories()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_memories.leave_all)


class _SharedMemory:
    """Memory that a worker lends to the process of the DataLoader, until the arrays in it are dropped there."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        file = os.memfd_create("tfrecord_io")
        try:
            os.ftruncate(file, size + _ALIGNMENT)  # pages without data take no memory
            self._mapped = mmap.mmap(file, 0)
            self._handle: Any = reduction.DupFd(file)  # by which another process opens the file
        finally:
            os.close(file)

    @property
    def size(self) -> int:
        return len(self._mapped) - _ALIGNMENT

    @property
    def content(self) -> memoryview:
        return memoryview(self._mapped)[_ALIGNMENT:]

    @property
    def state(self) -> int:
        return self._mapped[0]

    def lend(self) -> Self:
        self._mapped[0] = _LENT
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Arrive as an array of the content; the file is sent the first time."""
        handle, self._handle = self._handle, None
        return _borrow, (os.getpid(), self.number, handle)


def _borrow(process: int, number: int, handle: Any) -> Array:
    if handle is not None:
        _memories.open(process, number, handle)
    return _memories.borrow(process, number)


class _Borrowed:
    """Content of a shared memory, which is free again once the last array of it is dropped."""

    def __init__(self, memory: mmap.mmap, borrowed: dict[int, mmap.mmap]) -> None:
        self._borrowed = borrowed
        borrowed[id(self)] = memory
        self.__array_interface__ = np.frombuffer(memory, np.uint8, offset=_ALIGNMENT).__array_interface__

    # At the exit of Python the names of the module may be gone before the last array: the defaults are not.
    def __del__(self, free: int = _FREE, left: int = _LEFT) -> None:
        memory = self._borrowed.pop(id(self))
        if memory[0] != left:
            memory[0] = free


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)  # a process of another user may have got the number
    return True


# ---- in the process of the DataLoader


def _views(content: Any, forms: Iterable[_Form]) -> list[Array]:
    """The arrays, each in the order of its axes in the memory of the worker."""
    views = list[Array]()
    for _, dtype, shape, offset, axes in forms:
        view: Array = np.ndarray([shape[axis] for axis in axes], dtype, content, offset)
        views.append(view.transpose([axes.index(axis) for axis in range(len(axes))]))
    return views


def _pair(values: dict[str, Any], form: ModelInputs) -> Any:
    return form.pair(values)


def _rebuild_batch(values: dict[str, Any], forms: list[_Form], content: Any, form: ModelInputs | None = None) -> Any:
    """Rebuild the batch that a worker sent."""
    for ((name, *number), *_), view in zip(forms, _views(content, forms), strict=True):
        if number:
            values[name][number[0]] = tensor_of(view)
        else:
            values[name] = tensor_of(view)
    return values if form is None else form.pair(values)
