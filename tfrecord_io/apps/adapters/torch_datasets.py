"""Datasets of `to_torch` and `to_torch_map`: a stream of epochs for ranks and workers, and rows by number.

The module imports torch, and is imported by these calls only.

Tests: tests/apps/adapters/test_torch.py and tests/apps/adapters/test_torch_epochs.py.
"""

from __future__ import annotations

import multiprocessing
import operator
import os
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import torch
from torch import distributed
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_convert, get_worker_info
from torch.utils.data._utils.collate import collate, default_collate_fn_map

from tfrecord_io.apps.adapters.torch_batches import Array, WorkerBatch, is_sent, tensor_of, tensors_of
from tfrecord_io.kit import ArraysByNumber, BatchesByNumber, ModelInputs, check_integer, counted, workers_in_state
from tfrecord_io.typing import ArrayIterator

_SEED_BITS = 48
_EPOCH_SLOTS = 1024
_BITS = 32
_LOW = 2**_BITS - 1
_FIRST_BITS = 16  # of an iteration number: lower bits for its first process, the upper ones for its loader
_FIRST = 2**_FIRST_BITS - 1
_LOADERS = 2**15 - 1
_PLAIN = ModelInputs()
# Classes of accelerate, or of older versions of transformers, that distribute among ranks: the first the batches of
# rank 0, the second the rows that each rank gets.
_DISPATCHER, _SHARD = "DataLoaderDispatcher", "IterableDatasetShard"


def _row(tensors: Mapping[str, Any], row: int) -> dict[str, Any]:
    """One row of a batch."""
    return {name: values[row] for name, values in tensors.items()}


# ---- streams


@dataclass(frozen=True, slots=True)
class _Place:
    """Part of the rows that a process reads."""

    rank: tuple[int, int] = (0, 1)  # the index of the part, and the number of parts
    dealer: str = ""  # the class that distributes among the ranks what this process reads
    # Rows that the dealer distributes at a time. At the end it fills up the block, or if negative, drops it.
    block: int = 0

    @classmethod
    def of_process(cls, rank: tuple[int, int] | None) -> Self | None:
        """Part of this process, or of the `rank` that the caller states; None without ``torch.distributed``."""
        if not (distributed.is_available() and distributed.is_initialized()):
            return None
        ranks = distributed.get_world_size()
        dealer, block = _dealer() if ranks > 1 else ("", 0)
        if not dealer:
            return cls(rank or (distributed.get_rank(), ranks))
        if rank is not None and rank[1] > 1:
            reason = f"rank={rank!r}: {dealer} of accelerate splits the batches among {ranks} processes again"
            raise ValueError(f"{reason}; omit rank=, or use the loader without accelerator.prepare")
        return cls(dealer=dealer, block=block)


def _only_rank() -> tuple[int, int]:
    """Rank of a process without ``torch.distributed``; ValueError if a launcher, such as torchrun, started several."""
    ranks = os.environ.get("WORLD_SIZE", "1")
    if ranks.isdecimal() and int(ranks) > 1:
        reason = f"WORLD_SIZE={ranks}, but torch.distributed is not initialized: each process would read all rows"
        advice = f"call init_process_group first, or pass rank=(i, {ranks}), or rank=(0, 1) for all rows"
        raise ValueError(f"{reason}; {advice}")
    return 0, 1


def _dealer() -> tuple[str, int]:
    """Name and block of the class that distributes the rows or the length of a stream among ranks; "" if none does.

    The stream is passed neither, so the frames of the callers are searched; forked workers have those of their parent.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_qualname.partition(".")[0]
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if name in (_DISPATCHER, _SHARD) and package in ("accelerate", "transformers"):
            loader = frame.f_locals["self"]
            if name == _DISPATCHER:
                return name, 0
            if loader.batch_size is None:
                reason = f"{_SHARD} of accelerate (dispatch_batches is off) distributes rows"
                advice = "omit batch_size= in to_torch and give it to the DataLoader"
                raise ValueError(f"{reason}, and a loader with batch_size=None has none: {advice}")
            is_split = getattr(loader, "split_batches", False)
            block = loader.batch_size * (1 if is_split else loader.num_processes)
            return name, -block if loader.drop_last else block
        frame = frame.f_back
    return "", 0


def _workers_of_loader() -> int | None:
    """Workers of the DataLoader that asks a stream for its length; None if the caller asks the stream itself.

    A loader asks by ``len(dataset)``, also through a dataset around the stream, and passes nothing.
    """
    frame: FrameType | None = sys._getframe(1)  # of the stream's own __len__
    while frame is not None and frame.f_code.co_name == "__len__":
        if isinstance(loader := frame.f_locals.get("self"), DataLoader):
            return loader.num_workers
        frame = frame.f_back
    return None


class _TensorIterator:
    """An iterator over the batches or rows of an epoch, whose position can be saved."""

    def __init__(self, dataset: Any) -> None:
        info = get_worker_info()
        index, count = (0, 1) if info is None else (info.id, info.num_workers)
        if dataset.workers is not None and count != max(dataset.workers, 1):
            reason = f"the DataLoader has num_workers={0 if info is None else count}"
            raise ValueError(f"workers={dataset.workers}, but {reason}: pass the same to to_torch")
        place = dataset.place(is_worker=info is not None)
        self._iteration, self._by_row, self._epochs = dataset.iteration_at(place), dataset.by_row, dataset.epochs
        self._form = dataset.form
        seed = self._iteration.options.seed
        self._seed = self._epochs.seed if seed is None else seed
        self._is_idle = place.dealer == _DISPATCHER and index > 0
        if place.dealer == _DISPATCHER:
            index, count = 0, 1
        self._changes: dict[str, Any] = {"worker": place.rank, "loader": (index, count)}
        if info is not None and self._iteration.options.threads is None:
            self._changes["threads"] = 1  # the processes share the processors already
        self._slot, self._epoch = self._epochs.begin(info)
        self._chosen = self._epochs.chosen
        self._may_change = info is None  # workers begin at once, and have to agree
        self._collate = None if info is None else default_convert  # changes nothing in a batch that a worker sends
        self._state = dataset.state
        if self._by_row and place.rank[1] * count > 1 and dataset.leaves_out_steps:
            reason = (
                "parts= of several workers, with an on_error that leaves out rows, needs batches, which may be empty"
            )
            raise ValueError(f"{reason}: pass batch_size=")
        self._arrays: ArrayIterator = self._begin_epoch()

    def _begin_epoch(self) -> ArrayIterator:
        """Begin the epoch, or go on with that of the state that `to_torch` was given."""
        if self._state is None:
            return self._begin(seed=self._seed)
        if self._epoch != self._state.epoch:
            return self._begin(seed=self._seed, **self._state.order)
        arrays = self._begin(state=self._state.positions)
        if self._iteration.options.seed is None:
            self._epochs.seed = self._seed = arrays.seed
        return arrays

    def _begin(self, **changes: Any) -> ArrayIterator:
        return self._iteration.begin_epoch(self._epoch, epochs=self._epoch + 1, **self._changes, **changes)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        iter(self._arrays)  # ValueError if they have been consumed
        return self

    def __next__(self) -> Any:
        if self._is_idle:
            raise StopIteration
        if self._may_change:  # StatefulDataLoader.state_dict makes an iterator that is used later
            self._may_change = False
            if self._epochs.chosen != self._chosen:
                self._slot, self._epoch = self._epochs.begin(None)
                self._arrays = self._begin_epoch()
        arrays, form = self._form.arrays(next(self._arrays)), self._form
        if self._by_row:
            return form.pair(_row(tensors_of(arrays), 0))
        if self._collate is not None and is_sent(sys._getframe(1), self._collate):
            return WorkerBatch.from_arrays(arrays, form if form.is_pair else None)  # the loop gets a dict, or a pair
        return form.pair(tensors_of(arrays))

    def state_dict(self) -> dict[str, Any]:
        """Position after the last batch or row, as numbers and text."""
        position, ahead = self._arrays.state(), self._arrays.ahead
        return {"epoch": self._epoch, "position": position, "ahead": ahead, "loader": [*self._changes["loader"]]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at a position; ValueError if it is that of other files, options, ranks or workers."""
        before, now = workers_in_state(state["position"]), self._changes["worker"][1] * self._changes["loader"][1]
        if before not in (None, now):
            reason = f"the state was made with {counted(before, 'worker')} in all ranks, and this is one of {now}"
            advice = "pass the same num_workers to the DataLoader, in as many ranks, or begin with parts="
            raise ValueError(f"{reason}; {advice}")
        self._epoch, self._may_change = int(state["epoch"]), False
        self._epochs.note(self._slot, self._epoch)
        self._arrays.close()
        self._arrays = self._begin(state=state["position"], ahead=self._ahead(state))
        if self._iteration.options.seed is None:
            self._epochs.seed = self._seed = self._arrays.seed

    def _ahead(self, state: Mapping[str, Any]) -> int | None:
        """Steps of other workers before the next one of this worker; None: they begin with worker 0."""
        index, count = self._changes["loader"]
        ahead: int | None = state.get("ahead")
        saved_by, saved_count = state.get("loader") or (index, count)
        return None if ahead is None or saved_count != count else (index - saved_by + ahead) % count


class _EpochNumbers:
    """Numbers the epochs of a stream: an iteration is the epoch after the last one, on which all workers have to agree.

    `table` is shared with the workers of a DataLoader. Its first item is the seed that was drawn, the second the epoch
    that `set` chose. Each further item is a note of one worker, and only that worker writes it: the iteration in the
    upper half, the number of the epoch plus 1 in the lower half. Both are stored at once, so no lock is needed; workers
    that do not find their iteration in the notes yet count alike. A process that is not a worker has a table of its
    own: ranks that shared the table of the process which started them would take each other's epochs for earlier ones.
    """

    def __init__(self, table: torch.Tensor, process: int | None = None) -> None:
        self._share(table, process or os.getpid())
        self._begun = 0  # iterations of this process
        self.chosen = 0  # how often it chose an epoch
        _all_numbers.add(self)

    def _share(self, table: torch.Tensor, process: int) -> None:
        self.table, self._process = table.share_memory_(), process
        self._items = self.table.numpy()[1:]

    def unshare(self) -> None:
        """Continue in a table of this process alone, unless the process is a worker."""
        if self._process != os.getpid() and get_worker_info() is None:
            self._share(self.table.clone(), os.getpid())

    def __reduce__(self) -> tuple[Any, ...]:
        self.unshare()
        return _EpochNumbers, (self.table, self._process)

    @property
    def seed(self) -> int:
        """Seed of all epochs, if the caller stated none."""
        return int(self.table[0])

    @seed.setter
    def seed(self, seed: int) -> None:
        seed = check_integer("seed", seed, 0, 2**63 - 1)
        self.table[0] = seed

    def set(self, epoch: int) -> None:
        """Choose the number of the next epoch."""
        self.unshare()
        self.chosen += 1
        self._items[1:] = 0
        self._items[0] = epoch

    def begin(self, info: Any) -> tuple[tuple[int, int], int]:
        """Begin an iteration, in a worker with its `info`; return the slot and iteration of its note, and its epoch."""
        if info is None:
            self.unshare()
        self._begun += 1
        # A copy: if notes changed between two looks, a note of this iteration could seem to be of an earlier one.
        notes, slot, iteration = self._items[1:].copy(), 1, 0
        of_iteration = notes[:0]
        if info is not None:
            iteration = self._iteration(info)
            slot = 1 + hash((iteration, info.id)) % _EPOCH_SLOTS
            of_iteration = notes[self._mask_iteration(notes, iteration, info.num_workers)] & _LOW
        if len(of_iteration):
            epoch = int(of_iteration[0]) - 1
        else:
            epoch = int((notes & _LOW).max()) if notes.any() else int(self._items[0])
        self._items[slot] = iteration << _BITS | epoch + 1
        return (slot, iteration), epoch

    def _iteration(self, info: Any) -> int:
        """Number of the iteration that a worker belongs to.

        The seed of the loader says little, as it may be the same in each iteration. But processes are numbered in
        sequence: those of the next iteration come after all of this one. Workers that persist count iterations.
        """
        *parents, number = multiprocessing.current_process()._identity or (0,)
        of_loader = hash((info.seed - info.id, self._begun, *parents)) % _LOADERS + 1
        return of_loader << _FIRST_BITS | (number - info.id) & _FIRST

    @staticmethod
    def _mask_iteration(notes: Array, iteration: int, workers: int) -> Array:
        """Mask of the notes of an iteration, with tolerance for processes that another thread began meanwhile."""
        of_loader, first = (notes >> _BITS) ^ iteration, (notes >> _BITS) - iteration & _FIRST
        return (of_loader >> _FIRST_BITS == 0) & (np.minimum(first, _FIRST + 1 - first) < workers)

    def note(self, place: tuple[int, int], epoch: int) -> None:
        """Note that an iteration continues with another epoch, after which later iterations count on."""
        slot, iteration = place
        self._items[1:][self._items[1:] >> _BITS != iteration] = 0
        self._items[slot] = iteration << _BITS | epoch + 1


_all_numbers: weakref.WeakSet[_EpochNumbers] = weakref.WeakSet()


def _unshare_all() -> None:
    """Give each stream a table of this process, which is about to fork, perhaps workers."""
    for numbers in list(_all_numbers):
        numbers.unshare()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_unshare_all)


@dataclass(frozen=True, slots=True)
class _SavedState:
    """A state of a stream, from which any number of workers go on."""

    epoch: int
    positions: Sequence[Mapping[str, Any]]

    @property
    def order(self) -> dict[str, Any]:
        """The parts that other epochs have, too."""
        parts = self.positions[0].get("parts")
        return {} if parts is None else {"parts": tuple(parts)}

    @classmethod
    def of(cls, state: Mapping[str, Any] | Sequence[Any] | None) -> Self | None:
        """The most advanced state in one or more states of iterators or loaders; None if there is none.

        ValueError for a value that has no state, or one of a loader that took more batches since it was saved.
        """
        if state is None:
            return None
        found = list(_states_in(state))
        if not found:
            raise ValueError("state= has no position: pass the state_dict() of an iterator or of a StatefulDataLoader")
        epoch = max(int(own["epoch"]) for own in found)
        return cls(epoch, [own["position"] for own in found if int(own["epoch"]) == epoch])


def _states_in(state: Any) -> Iterator[Mapping[str, Any]]:
    """All states of iterators in those of loaders."""
    if isinstance(state, Mapping):
        if state.get("_steps_since_snapshot"):
            reason = (
                f"the loader took {counted(state['_steps_since_snapshot'], 'batch')} since its workers saved theirs"
            )
            raise ValueError(f"state=: {reason}; pass snapshot_every_n_steps=1 to the StatefulDataLoader")
        if {"epoch", "position"} <= state.keys():
            yield state
            return
    elif not isinstance(state, list | tuple):
        return
    for value in state.values() if isinstance(state, Mapping) else state:
        yield from _states_in(value)


class TFRecordStream(IterableDataset):  # type: ignore[misc]
    """Rows of TFRecord files, or batches of them; each iteration is an epoch."""

    def __init__(
        self,
        iteration: ArrayIterator,
        by_row: bool,
        workers: int | None,
        # For spawned workers: the values of the process that pickled the stream.
        epochs: _EpochNumbers | None = None,
        place: _Place | None = None,
        form: ModelInputs = _PLAIN,
        state: Any = None,
    ) -> None:
        self.state = state if isinstance(state, _SavedState) else _SavedState.of(state)
        if epochs is None:
            table = torch.zeros(2 + _EPOCH_SLOTS, dtype=torch.int64)
            if iteration.options.seed is None:
                table[0] = torch.randint(2**_SEED_BITS, ())
            epochs = _EpochNumbers(table)
            if self.state is not None:
                epochs.set(self.state.epoch)
        self.iteration, self.by_row, self.workers, self.form = iteration, by_row, workers, form
        self.epochs = epochs  # workers that persist see what is set
        self._place = place
        self._lengths: dict[tuple[_Place, int | None], int] = {}

    @property
    def leaves_out_steps(self) -> bool:
        """True if the rows of a step of several workers may be left out, as each row of a stream in parts may be."""
        options = self.iteration.options
        has_parts = options.parts is not None or (self.state is not None and bool(self.state.order))
        return has_parts and options.damage.goes_on

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next iteration, or of one without a batch yet; later iterations count on."""
        epoch = check_integer("epoch", epoch, 0, _LOW - 1)
        _dealer()  # raises an error before accelerate counts rows that the loader lacks
        self.epochs.set(epoch)

    def place(self, *, is_worker: bool = False) -> _Place:
        """Part of the rows that this process, or worker, would read if an iteration began now."""
        rank = self.iteration.options.worker
        if (place := _Place.of_process(rank)) is not None:
            return place
        if not is_worker or self._place is None:
            return _Place(rank or _only_rank())
        dealer, block = _dealer()  # a shard is iterated over in the worker
        return _Place(dealer=dealer, block=block) if dealer else self._place

    def iteration_at(self, place: _Place) -> ArrayIterator:
        """Part of a process, before its workers split it; ValueError if ranks that need one seed would draw several."""
        options = self.iteration.options
        if place.dealer == _SHARD and options.shuffle_buffer and options.seed is None:
            reason = f"needs the same seed= in all ranks: {_SHARD} of accelerate takes the part of each from all"
            raise ValueError(f"shuffle_buffer= {reason} rows, in an order that they share")
        if place.rank == options.share:
            return self.iteration
        return self.iteration.begin_epoch(0, worker=place.rank)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return _TensorIterator(self)

    def __len__(self) -> int:
        """Number of batches, or rows, of an epoch, all workers together."""
        place, workers = self.place(), _workers_of_loader() if self.workers is None else self.workers
        if (place, workers) not in self._lengths:
            self._lengths[place, workers] = self._count(place, workers)
        return self._lengths[place, workers]

    def _count(self, place: _Place, known_workers: int | None) -> int:
        iteration, ranks, workers = self.iteration_at(place), place.rank[1], max(known_workers or 1, 1)
        if place.dealer == _DISPATCHER:
            workers = 1
        elif known_workers is None and (
            place.block or not (self.by_row and ranks == 1 and iteration.options.uneven == "keep")
        ):
            reason = "the number of batches depends on the workers"
            raise TypeError(f"{reason}: ask the DataLoader for its len(), or pass workers=, num_workers of the loader")
        seats = ((i, workers) for i in range(workers))
        counts = [len(iteration.begin_epoch(0, epochs=1, worker=place.rank, loader=seat)) for seat in seats]
        if place.block:  # each worker distributes by itself
            counts = [count // -place.block * -place.block for count in counts]
        return sum(counts)

    def __bool__(self) -> bool:
        return True  # without looking up the length

    def __reduce__(self) -> tuple[Any, ...]:
        place = _Place.of_process(self.iteration.options.worker)
        return TFRecordStream, (self.iteration, self.by_row, self.workers, self.epochs, place, self.form, self.state)


# ---- rows by number


class _Row(dict[str, Any]):
    """A row of a `_LazyBatch`, by whose type torch knows how to collate the batch."""


class _Pair(tuple[Any, Any]):
    """A row with targets of a `_LazyBatch`."""

    __slots__ = ()


class _LazyBatch(Sequence[Any]):
    """Rows of a batch, made when they are asked for; to collate them needs one at most."""

    def __init__(self, tensors: dict[str, Any], count: int, form: ModelInputs) -> None:
        self.tensors, self._count, self.form = tensors, count, form

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[at] for at in range(self._count)[row]]
        values = _row(self.tensors, range(self._count)[row])
        return _Pair(self.form.pair(values)) if self.form.is_pair else _Row(values)


def _collate_whole(rows: Any, *, collate_fn_map: Any = None) -> Any:
    """Return the batch that rows belong to; torch collates them by this function unless it has another."""
    if isinstance(rows, _LazyBatch):
        return rows.form.pair(rows.tensors)
    plain = [{**row} if isinstance(row, _Row) else (*row,) for row in rows]
    return collate(plain, collate_fn_map=collate_fn_map)


default_collate_fn_map.update({_Row: _collate_whole, _Pair: _collate_whole})


def _collate(rows: Any) -> Any:
    """Return the batch that rows belong to, as to_torch makes it: a `collate_fn` that copies nothing."""
    if not isinstance(rows, _LazyBatch):
        reason = "it takes the rows that a DataLoader gets of to_torch_map by one call, with batch_size= of the loader"
        advice = "leave it out where rows come one by one, as from a ConcatDataset"
        raise TypeError(f"collate_fn: {reason}; got {type(rows).__name__}; {advice}")
    if get_worker_info() is not None and is_sent(sys._getframe(1), _collate):
        return WorkerBatch.from_tensors(rows.tensors, rows.form if rows.form.is_pair else None)
    return rows.form.pair(rows.tensors)


def _plain_row(row: Any) -> Any:
    """A row as a dict or a tuple."""
    return {**row} if isinstance(row, _Row) else (*row,) if isinstance(row, _Pair) else row


class TFRecordRows(Dataset):  # type: ignore[misc]
    """Rows of TFRecord files, or batches of them, by number."""

    def __init__(self, rows: ArraysByNumber | BatchesByNumber, form: ModelInputs = _PLAIN) -> None:
        self.rows, self.form = rows, form

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """No `set_epoch` without an order of rows: trainers call it of every dataset that has one."""
            reason = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name == "set_epoch":
                reason = "set_epoch() orders the rows of batches: pass batch_size= and seed=, or use a sampler"
            raise AttributeError(reason, name=name, obj=self)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: Any) -> Any:
        """A row by its number; a list of rows by a slice or a sequence of numbers."""
        if isinstance(number, slice):
            return list(map(_plain_row, self.__getitems__(range(len(self))[number])))
        if np.ndim(number):
            return list(map(_plain_row, self.__getitems__(number)))
        if (row := self.rows.row(operator.index(number))) is None:
            return _plain_row(self.__getitems__([number])[0])
        tensors = {
            name: tensor_of(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value
            for name, value in self.form.arrays(row).items()
        }
        return self.form.pair(tensors)

    def __getitems__(self, numbers: Sequence[int]) -> Sequence[Any]:
        """The rows of a batch, for a DataLoader."""
        form = self.form
        if isinstance(self.rows, BatchesByNumber):
            return [form.pair(tensors_of(form.arrays(batch))) for batch in self.rows.take(numbers)]
        return _LazyBatch(tensors_of(form.arrays(self.rows.arrays(numbers))), len(numbers), form)

    collate_fn = staticmethod(_collate)

    def arrays(self, numbers: Sequence[int]) -> dict[str, Any]:
        """The rows of these numbers, in this order, as arrays by column: a batch as those of `iter_arrays`."""
        return self.rows.arrays(numbers)


class TFRecordBatches(TFRecordRows):
    """Batches of rows of TFRecord files by number, whose rows come in another order in each epoch."""

    rows: BatchesByNumber

    def set_epoch(self, epoch: int) -> None:
        """Put the rows of batches in another order; before a loader makes workers."""
        self.rows.set_epoch(check_integer("epoch", epoch, 0, np.iinfo(np.int64).max))
