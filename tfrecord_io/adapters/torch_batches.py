"""How the workers of a DataLoader send batches: their arrays in shared memory that is used again, or in one buffer.

By itself, torch sends each tensor as a new file of shared memory, and lists after a look at each of their values.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterable, Mapping
from multiprocessing import reduction
from types import NoneType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tfrecord_io.adapters.masked_arrays import without_masks
from tfrecord_io.engine.contract import Array

if TYPE_CHECKING:
    import torch

_ALIGNMENT = 64
# Of a batch: without shared memory, tensors of more bytes are better sent by torch.
_BUFFER_BYTES = 1 << 20
# Of a worker. A DataLoader asks for two batches in advance, and the loop that reads it holds one or two.
_SHARED_MEMORIES = 6
_FREE, _LENT, _LEFT = range(3)  # the first byte of a shared memory, which is left to processes that may still read it
_TORCH_KINDS = "biufcmMV"  # of arrays that become tensors; V is bfloat16

_Form = tuple[str, np.dtype[Any], tuple[int, ...], int]  # name, dtype and shape of an array, and its offset
_Parts = tuple[dict[str, Array], dict[str, Any]]  # what is sent as tensors, and all names, with the other values


def tensors_of(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as tensors and lists, by name."""
    return {
        name: tuple(map(tensor_of, array)) if isinstance(array, tuple) else tensor_of(array)
        for name, array in without_masks(arrays).items()
    }


def tensor_of(array: Array) -> torch.Tensor | list[Any]:
    """A tensor of an array, without a copy of writable memory; a list of what torch has no type for."""
    import torch

    kind = array.dtype.kind
    if kind == "O":
        return [tensor_of(cell) if isinstance(cell, np.ndarray) else cell for cell in array.tolist()]
    if kind in "TSU":
        return array.tolist()
    if not array.flags.writeable:
        array = array.copy()
    if kind in "mM":
        return torch.from_numpy(array.view(np.int64))
    if kind == "V" and array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


# ---- in the worker


class WorkerBatch(dict[str, Any]):
    """A batch of tensors of a worker, which the process of the DataLoader gets as a dict."""

    def __copy__(self) -> Self:  # default_convert of torch makes one
        return type(self)(self)

    def _parts(self) -> _Parts:
        arrays = {name: value.numpy() for name, value in self.items() if _is_plain(value)}
        return arrays, {name: None if name in arrays else value for name, value in self.items()}


class FinishedBatch:
    """Arrays that the process of the DataLoader gets as a dict of tensors, and in which torch converts nothing."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._given = arrays

    def _parts(self) -> _Parts:
        given = without_masks(self._given)
        arrays = {
            name: array
            for name, array in given.items()
            if isinstance(array, np.ndarray) and array.dtype.kind in _TORCH_KINDS
        }
        return arrays, {name: None if name in arrays else _converted(array) for name, array in given.items()}


def _converted(array: Any) -> Any:
    """What default_convert of torch makes of what a batch has instead of a tensor, without a look at each text."""
    import torch

    made = tuple(map(tensor_of, array)) if isinstance(array, tuple) else tensor_of(array)
    if isinstance(made, list) and {*map(type, made)} <= {str, bytes, NoneType, torch.Tensor}:
        return made
    return torch.utils.data.default_convert(made)


def _is_plain(value: Any) -> bool:
    """Whether a value is a tensor that NumPy has as an array of the same memory."""
    import torch

    is_own = type(value) is torch.Tensor and value.layout is torch.strided and not value.requires_grad
    return is_own and value.device.type == "cpu" and value.dtype is not torch.bfloat16


def _sent(batch: WorkerBatch | FinishedBatch) -> tuple[Any, ...]:
    """How a batch is pickled for another process."""
    arrays, values = batch._parts()
    if not arrays:
        return dict, (values,)
    forms, size = list[_Form](), 0
    for name, array in arrays.items():
        forms.append((name, array.dtype, array.shape, size))
        size += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    memory = _shared.lend(size)
    if memory is None and size > _BUFFER_BYTES:
        return dict, (values | {name: tensor_of(array) for name, array in arrays.items()},)
    content = bytearray(size) if memory is None else memory.content
    for array, view in zip(arrays.values(), _views(content, forms), strict=True):
        view[...] = array
    return _received, (values, forms, content if memory is None else memory)


reduction.ForkingPickler.register(WorkerBatch, _sent)
reduction.ForkingPickler.register(FinishedBatch, _sent)


class _SharedMemory:
    """A memory that a worker lends to the process of the DataLoader, until that process has dropped what was sent."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        file = os.memfd_create("tfrecord_io")
        try:
            os.ftruncate(file, size + _ALIGNMENT)  # what is not written to takes no memory
            self._mapped = mmap.mmap(file, 0)
            self._handle: Any = reduction.DupFd(file)  # what another process opens it by
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
        handle, self._handle = self._handle, None
        if handle is None:
            return _known, (os.getpid(), self.number)
        return _opened, (os.getpid(), self.number, handle)


class _SharedMemories:
    """Those of a worker."""

    def __init__(self) -> None:
        self._process, self._all = -1, list[_SharedMemory]()

    def lend(self, size: int) -> _SharedMemory | None:
        """One that is free and has this size; None if all are lent, or the system has none that other processes get."""
        if sys.platform != "linux":
            return None
        if self._process != os.getpid():  # not those of the process that this one was forked from
            self._process, self._all = os.getpid(), []
        unused = [memory for memory in self._all if memory.state != _LENT]
        large = [memory for memory in unused if memory.state == _FREE and memory.size >= size]
        if large:
            return min(large, key=lambda memory: memory.size).lend()
        if len(self._all) < _SHARED_MEMORIES:
            number = len(self._all)
        elif unused:
            number = unused[0].number
        else:
            return None
        try:
            made = _SharedMemory(number, 1 << max(size - 1, 0).bit_length())
        except OSError:  # too many open files, or no memory
            return None
        self._all[number : number + 1] = [made]
        return made.lend()


_shared = _SharedMemories()


# ---- in the process of the DataLoader

_lent: dict[int, mmap.mmap] = {}  # by the id of the `_Lent`
_mapped: dict[tuple[int, int], mmap.mmap] = {}  # by process and number


class _Lent:
    """The content of a shared memory, which is free once the last array of it is dropped."""

    def __init__(self, memory: mmap.mmap) -> None:
        _lent[id(self)] = memory
        self.__array_interface__ = np.frombuffer(memory, np.uint8, offset=_ALIGNMENT).__array_interface__

    def __del__(self, lent: Any = _lent, free: int = _FREE, left: int = _LEFT) -> None:
        memory = lent.pop(id(self))
        if memory[0] != left:
            memory[0] = free


def _leave_all() -> None:
    """Have no memory used again that a process is about to share with one that it forks."""
    for memory in list(_lent.values()):
        memory[0] = _LEFT


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_leave_all)


def _opened(process: int, number: int, handle: Any) -> Array:
    """The content of a shared memory that a worker made."""
    for key in list(_mapped):
        if not _runs(key[0]):
            _mapped.pop(key, None)
    file = handle.detach()
    try:
        _mapped[process, number] = mmap.mmap(file, 0)
    finally:
        os.close(file)
    return _known(process, number)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)  # one of another user may have got its number
    return True


def _known(process: int, number: int) -> Array:
    """The content of a shared memory that a worker has lent before."""
    return np.asarray(_Lent(_mapped[process, number]))


def _views(content: Any, forms: Iterable[_Form]) -> list[Array]:
    return [np.ndarray(shape, dtype, content, offset) for _, dtype, shape, offset in forms]


def _received(values: dict[str, Any], forms: list[_Form], content: Any) -> dict[str, Any]:
    """The batch that a worker sent."""
    for (name, *_), view in zip(forms, _views(content, forms), strict=True):
        values[name] = tensor_of(view)
    return values
