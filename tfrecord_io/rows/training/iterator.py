"""`iter_arrays` and its iterator: read files or a dataset in batches of arrays for training.

An iterator can save its position and continue from one; see `training.iterator_state`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import pyarrow as pa

from tfrecord_io.base import LIMITS, MIB, Closing, OnDamage, Shared, cached_property, check_keywords, warn
from tfrecord_io.bytes import Array
from tfrecord_io.errors import DamagedDataWarning, SchemaWarning
from tfrecord_io.read import CallSource, LazyScan, ReadReport, Scan, ScanHolder, options_from_call
from tfrecord_io.rows.arrays.stacked_or_ragged import TableRepresentation
from tfrecord_io.rows.training.background_generator import BackgroundGenerator
from tfrecord_io.rows.training.batches_of_parts import PartBatching
from tfrecord_io.rows.training.batching import ArrayChunk, Batching, Position
from tfrecord_io.rows.training.epochs import Epochs
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.iterator_state import IteratorPosition, ReadIdentity
from tfrecord_io.rows.training.lane_batching import LaneBatching
from tfrecord_io.rows.training.order import OrderPosition, Seat
from tfrecord_io.rows.training.order_state import order_state, read_states
from tfrecord_io.rows.training.plan_order import OrderedRead, RowCounts, plan_order
from tfrecord_io.rows.training.row_source import RowSource
from tfrecord_io.rows.training.scan_row_source import ScanRowSource, source_of
from tfrecord_io.typing import ArrayLayout, FilesLike, Lengths, Missing, OnError, SchemaLike, StorageLike, UnevenParts

_CHUNK_BYTES = 4 * MIB  # read at a time: for each, the shuffle buffer is copied once
_SEED_BITS = 48
_READY = 2  # chunks made ahead by the thread


@dataclass(slots=True)
class _Place:
    """Progress of an iteration: the position before a chunk, and how many of its rows were delivered."""

    before: Callable[[], Position]
    chunk: ArrayChunk | None = None
    delivered: int = 0

    def position(self) -> Callable[[], Position]:
        """Return a function that computes the position: to compute it takes as long as to draw the rows again."""
        if self.chunk is None or not (self.delivered or self.chunk.is_end):
            return self.before
        return partial(replace(self.chunk, columns=[], dense=None).position, self.delivered)


class ArrayIterator(Closing, Shared):
    """Batches of arrays; made by `tfrecord_io.iter_arrays`.

    An iterator and a context manager. Its batches are dicts of arrays, as from `read_arrays`; each belongs to the
    caller. It is consumed once: a second loop continues where the first one stopped, and is an error after the end.
    ``len()`` is the number of batches, if the row count is known from manifests or index files.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the records, fixed when the iterator was made.
    seed : int
        The one given, or the one that was drawn.

    Notes
    -----
    It may be pickled, and used in a forked process, until the first batch was requested.
    """

    def __init__(
        self,
        source: RowSource,
        options: IterOptions,
        lengths: dict[str, int],
        damage: Exception | None,
        row_counts: RowCounts,
        epoch: int = 0,
        loader: tuple[int, int] = (0, 1),
        has_drawn_seed: bool = False,
    ) -> None:
        """See `iter_arrays`; for `lengths` `RowSource.list_lengths`.

        `damage` is the error that ended the sample before any column was found, `epoch` the first one; `row_counts` has
        what is known of the files; `loader` says which of how many workers reads for the rank that is ``worker=``;
        `has_drawn_seed` is True if each rank drew the seed that is in its `options`.
        """
        self._row_counts = row_counts
        self._seat = Seat(*options.share, *loader)
        if loader[1] > 1:
            options = replace(options, worker=self._seat.part)
        self._source, self.options, self.lengths, self._damage = source, options, lengths, damage
        self._representation = TableRepresentation(source.schema, options, complete=False, lengths=lengths)
        self.seed = secrets.randbits(_SEED_BITS) if options.seed is None else int(options.seed)
        self._chunks: Generator[ArrayChunk] | BackgroundGenerator[ArrayChunk] | None = None
        self._batching: Batching | None = None
        self._share()
        self._read: OrderedRead | None = None  # None: workers have parts of their own
        if options.state is not None:
            self.restore(options.state)
            return
        draws_seed = options.shuffle_buffer > 0 and (has_drawn_seed or options.seed is None)
        seeds_agree = self._seat.ranks == 1 or not draws_seed
        self._read = plan_order(source, options, self._seat, row_counts, seeds_agree=seeds_agree)
        order = None if self._read is None else self._read.order
        self._begin(IteratorPosition(epoch, 0, 0) if order is None else order.begin(epoch, self._seat.worker))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from tfrecord_io.base import OTHER_NAMES  # for mistakes only

            raise OTHER_NAMES.attribute_error(self, name)

    def __repr__(self) -> str:
        return f"<ArrayIterator of {self._source.files_and_columns()}>"

    @property
    def schema(self) -> pa.Schema:
        """Schema of the records."""
        return self._source.schema

    @cached_property
    def _records(self) -> int:
        return self._own_epochs().count()

    def _own_epochs(self) -> Epochs:
        """The rows of this worker, where workers have files, or records, of their own."""
        counts = self._row_counts.count_equal_parts(self._source) if self.options.has_equal_parts else None
        return self._source.epochs(self.options, self.seed, counts)

    @cached_property
    def _identity(self) -> ReadIdentity:
        return self._source.identity(self.options)

    def _begin(self, position: Position) -> None:
        self._stop()
        self._batching = None
        self._beginning, self._has_delivered = position, False
        self._place = _Place(lambda: position)
        self._end: Exception | type[StopIteration] | None = None  # what further calls raise

    def _stop(self) -> None:
        chunks, self._chunks = self._chunks, None
        if chunks is not None:
            chunks.close()

    @property
    def report(self) -> ReadReport:
        """Report of the current epoch: what was read, and what ``on_error="skip"`` or a callable left out.

        It counts what is read ahead of the batches, and starts from zero in each epoch.
        """
        reader = None if self._batching is None else self._batching.reader
        return ReadReport(schema_source=self._source.schema_source) if reader is None else reader.report

    def begin_epoch(
        self, epoch: int, loader: tuple[int, int] = (0, 1), ahead: int | None = None, **changes: Any
    ) -> ArrayIterator:
        """Iterate from the beginning of an epoch on, or from a `state`; `changes`: other values of keywords.

        `loader`: the number of a worker that reads for the rank ``worker=``, and their number; `ahead`: see the
        attribute, by default as if all workers began with this state.
        """
        options = replace(self.options, **{"state": None, **changes})
        if self.options.share[1] > 1:  # other workers draw seeds, too
            worker = Seat(*options.share, *loader).part
            self._source.refuse_own_seeds(replace(options, seed=self.options.seed, worker=worker))
        begun = ArrayIterator(
            self._source.with_options(threads=options.thread_count),
            options,
            lengths=self.lengths,
            damage=self._damage,
            row_counts=self._row_counts,
            epoch=epoch,
            loader=loader,
            has_drawn_seed=self.options.seed is None,
        )
        if ahead is not None and isinstance(begun._beginning, OrderPosition):
            begun._begin(replace(begun._beginning, ahead=ahead))
        return begun

    @property
    def ahead(self) -> int:
        """Number of steps of other workers of a loader before the next one of this worker."""
        if self._has_delivered and self._read is not None:
            return self._seat.workers - 1
        return self._beginning.ahead if isinstance(self._beginning, OrderPosition) else 0

    def state(self) -> dict[str, Any]:
        """The position after the last batch delivered, as a dict that JSON can hold.

        Records that were only read ahead do not count. The state holds the seed, the epoch, the numbers of the records
        in the shuffle buffer, and what `restore` needs to recognize the files and options.
        """
        with self._lock:
            position = self._place.position()()
            if self._read is None:
                assert isinstance(position, IteratorPosition)
                return self._identity.state(self.seed, position)
            assert isinstance(position, OrderPosition)
            return order_state(self._identity, self._read, self.seed, position)

    def restore(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Continue after the batch of a state, or of a list of states of several workers.

        Earlier records are skipped; those that were in the shuffle buffer are read again.

        Raises
        ------
        ValueError
            The state is that of other files or options; the message says which.
        """
        with self._lock:
            seed, read, position = read_states(
                self._identity, self._source, state, options=self.options, seat=self._seat, counts=self._row_counts
            )
            self._read = read
            self._begin(position)
            self.seed = seed

    def __iter__(self) -> Iterator[dict[str, Array]]:
        if self._end is StopIteration:
            advice = "make another one, or restore() a state of it"
            raise ValueError(f"the iterator has been consumed, or was closed: {advice}")
        return self

    def __len__(self) -> int:
        """Number of batches of all epochs from the position on at which the iterator was made or restored.

        The number does not change while batches are taken; damaged records are not deducted.

        Raises
        ------
        TypeError
            The batches never end (``epochs=None``), or the number of records is not known without reading the files.
        """
        drop_last, epochs = self.options.drop_last, self.options.epochs
        if epochs is None:
            raise TypeError("the number of batches has no end with epochs=None; pass a number of epochs")
        if self.options.arranges:
            raise TypeError("the number of batches is unknown: with bucket_by= and pack= it depends on all lengths")
        if (later := epochs - self._beginning.epoch - 1) < 0:
            return 0
        if self._read is not None:
            assert isinstance(self._beginning, OrderPosition)
            options, seat, order = self.options, self._seat, self._read.order
            begins = self._beginning, order.begin(0, seat.worker)
            in_first, in_others = (
                order.count(at, options.batch_size, seat, uneven=options.uneven, drop_last=drop_last) for at in begins
            )
        else:
            size, first = self.options.batch_size, max(0, self._records - self._beginning.delivered)
            in_first, in_others = (n // size if drop_last else -(-n // size) for n in (first, self._records))
        return in_first + later * in_others

    def __bool__(self) -> bool:
        return True  # without looking up the number of batches

    def __next__(self) -> dict[str, Array]:
        """The next batch.

        Raises
        ------
        StopIteration
            After the last epoch.
        TFRecordError
            After all records before the damage, those of the shuffle buffer included.
        """
        before = None
        try:
            with self._lock:
                delivered = self._place.delivered
                before = place = self._place
                while True:
                    while place.chunk is None or place.delivered == place.chunk.rows:
                        place = self._advance()
                    place.delivered, arrays = place.chunk.batch(place.delivered, self.options.batch_size)
                    if arrays is None and self._read is not None and not self._seat.is_alone:
                        # Its rows were left out. The next batch would be of a step that other workers have not taken.
                        arrays = self._representation.empty_arrays(self.schema)
                    if arrays is not None:
                        self._has_delivered = True
                        return arrays
        except Exception:
            raise
        except BaseException:  # Ctrl-C: the next call makes the same batch again
            if before is not None:
                before.delivered = delivered
                self._rewind(before)
            raise

    def _rewind(self, place: _Place) -> None:
        with self._lock:
            self._stop()
            self._place = _Place(place.position())

    def _make_batching(self) -> Batching:
        source, options, seed = self._source, self.options, self.seed
        if self._read is None:
            return Batching(self._own_epochs(), self._representation, options, seed)
        order, counts = self._read
        batching = PartBatching if options.arranges else LaneBatching
        return batching(source, self._representation, options, seed, order=order, seat=self._seat, counts=counts)

    def _advance(self) -> _Place:
        """Take the next chunk, or raise what ended the previous one."""
        if self._end is not None:
            raise self._end
        failure = self._damage or (None if self._place.chunk is None else self._place.chunk.error)
        if failure is not None:
            self._finish(failure, self.options.on_error)
        chunks = self._chunks
        try:
            if chunks is None:
                self._batching = self._make_batching()
                make = partial(self._batching.chunks, self._place.position()())
                chunks = make() if self.options.thread_count == 1 else BackgroundGenerator(make, _READY)
            self._chunks = None  # Ctrl-C ends a generator: the next call begins another one
            following = next(chunks)
            self._chunks = chunks
            self._issue_warnings()
        except Exception as error:
            self._chunks = chunks
            if not isinstance(error, StopIteration):
                self._finish(error, "raise")
            self.close()
            self._issue_warnings()
            raise
        self._place = _Place(self._place.position(), following)
        return self._place

    def _issue_warnings(self) -> None:
        """Issue the warnings of the thread that reads, at the line that takes the batch."""
        assert self._batching is not None
        epochs = self._batching.epochs
        while epochs.warnings:
            warn(epochs.warnings.pop(), SchemaWarning)
        while epochs.damage:
            warn(epochs.damage.pop(), DamagedDataWarning)

    def _finish(self, error: Exception, on_error: object) -> NoReturn:
        """End the iteration: raise `error`, now and in further calls, or warn of it."""
        damage = OnDamage.of(on_error)
        if not damage.ends_quietly:
            self._end = error
        self.close()
        damage.end_read(error)
        raise StopIteration

    def close(self) -> None:
        """End reading; no more batches."""
        if self._is_forked:
            return  # the parent process still reads
        with self._lock:
            self._stop()
            self._place = _Place(self._place.position())
            self._end = StopIteration if self._end is None else self._end

    def _after_fork(self) -> None:
        if self._chunks is None:
            self._share()
        else:
            super()._after_fork()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._chunks is not None or self._end is not None:
            raise TypeError("the iterator has begun; pickle the result of state(), and pass it as state= to a new one")
        options = replace(self.options, state=self.state())
        worker = None if options.worker is None else self._seat[:2]
        options, loader = replace(options, worker=worker), self._seat[2:]
        return ArrayIterator, (self._source, options, self.lengths, self._damage, self._row_counts, 0, loader)


@check_keywords
def iter_arrays(
    source: FilesLike,
    *,
    batch_size: int,
    columns: Sequence[str] | str | None = None,
    filters: Any = None,
    schema: SchemaLike | Literal["infer"] | None = None,
    on_error: OnError | None = None,
    storage_options: StorageLike | None = None,
    filesystem: Any = None,
    shuffle_buffer: int | None = None,
    seed: int | None = None,
    epochs: int | None = 1,
    drop_last: bool = False,
    worker: tuple[int, int] | None = None,
    uneven: UnevenParts = "keep",
    parts: int | tuple[int, int] | None = None,
    ragged: ArrayLayout | Mapping[str, ArrayLayout] | None = None,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
    missing: Missing = "error",
    bucket_by: Sequence[str] | str | None = None,
    bucket_sizes: Sequence[int] | None = None,
    pack: Mapping[str, int] | None = None,
    cut: bool = False,
    end_token: Any = None,
    cu_seqlens: bool = False,
    state: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
) -> ArrayIterator:
    """Iterate over TFRecord files in batches of NumPy arrays, shuffled, for several epochs and workers.

    >>> import tfrecord_io as tfr
    >>> ten, ids = "ten.tfrecord", "ids.tfrecord"
    >>> _ = tfr.write_tfrecord({"x": list(range(10))}, ten)
    >>> epoch = tfr.iter_arrays(ten, batch_size=4, shuffle_buffer=8, seed=1)
    >>> [len(batch["x"]) for batch in epoch]
    [4, 4, 2]
    >>> batches = tfr.iter_arrays(ten, batch_size=4, shuffle_buffer=8, seed=1)
    >>> first, state = next(batches), batches.state()
    >>> again = tfr.iter_arrays(ten, batch_size=4, shuffle_buffer=8, seed=1, state=state)
    >>> all((next(again)["x"] == batch["x"]).all() for batch in batches)
    True
    >>> _ = tfr.write_tfrecord({"t": [[1, 2, 3], [4], [5, 6]]}, ids)
    >>> for batch in tfr.iter_arrays(ids, batch_size=2, pack={"t": 4}, cut=True, end_token=9):
    ...     print(*(batch[name].tolist() for name in ("t", "t/segment_ids", "t/positions")))
    [[1, 2, 3, 9], [4, 9, 5, 6]] [[1, 1, 1, 1], [1, 1, 2, 2]] [[0, 1, 2, 3], [0, 1, 0, 1]]
    [[9, 0, 0, 0]] [[1, 0, 0, 0]] [[0, 0, 0, 0]]

    Parameters
    ----------
    source : str, PathLike, Dataset, or list of those
        As in `read_tfrecord`, except file objects, as files are opened in each epoch. A `dataset` has more reading
        options: ``sample`` is the number of records from which the schema is inferred, and with ``ragged=None`` also
        which lists have one length and are stacked; lists of a schema that is given have any length, unless
        it states one; `limit` counts the rows of an epoch, for all workers together, and with it or `offset` files are
        read in order; with ``threads=1``, all work is done in the calling thread. The batches do not depend on it.
    batch_size : int
        Number of records in a batch.
    columns, filters, schema, on_error, storage_options, filesystem
        As in `read_tfrecord`.
    shuffle_buffer : int, optional
        Size of the shuffle buffer: each record is drawn at random from a buffer of this many records, and replaced by
        the next one read, as in ``tf.data.Dataset.shuffle``. The order of files is shuffled, too. 0 does not shuffle.
    seed : int, optional
        Seed of the shuffling, for any number of threads. None draws one, which is the attribute ``seed``; without
        `shuffle_buffer`, a seed is an error.
    epochs : int or None, default 1
        Number of passes over the records, each in another order if they are shuffled; None repeats forever, and is a
        ValueError if that never gives a batch: a part has no record, or too few.
    drop_last : bool, default False
        Omit the last batch of an epoch if it is not full.
    worker : (int, int), optional
        ``(i, n)``: read the rows of the i-th of n workers, which together read each row once. They share one order of
        the epoch (see `parts`) where a manifest counts the records of plain files, or an index of each of up to 32, in
        buckets both, and no filter, `offset`, `limit`, `on_error`, `bucket_by` or `pack` decides about rows. Else, and
        if each draws a `seed`, each has files of its own, or with fewer than n files every n-th record.
    parts : int or (int, int), optional
        Read an epoch in one order, which any number of workers shares, and goes on with: a step takes the rows of all
        workers from so many parts side by side (see the page about several GPUs), and `shuffle_buffer` counts the rows
        of all. A pair: lanes, and turns of the loader's workers. By default up to 16 of at least 8 MiB.
    uneven : {"keep", "pad", "drop"}
        Whether several workers may have different numbers of records. With "pad" and "drop" all have the same number of
        records and batches in each epoch, as synchronous training needs: "pad" repeats records, "drop" omits fewer than
        n. All need the same `seed`, then. Records that no index or manifest counts are counted at once.
    ragged, pad_value, max_length, pad_to, missing
        As in `read_arrays`.
    bucket_by : str or sequence of str, optional
        Columns of lists: batches have rows of similar length, counted as the longest of these lists, and padded to the
        size of their bucket. At the end of an epoch, buckets give batches that are not full.
    bucket_sizes : sequence of int, optional
        The greatest length of each bucket, ascending; a longer list is an error, as for `pad_to`. Batches of the last
        bucket have `batch_size` rows, those of others as many as have about the same number of values.
    pack : dict, optional
        Pack the lists of several records into one row, by column its length: ``{"tokens": 2048}``. A batch has
        `batch_size` such rows; a record goes to the first that has room, and begins the next batch where none has.
        ``<name>/segment_ids`` and ``<name>/positions``, int32, state which record of its row, from 1, a value is of,
        and which value of it, from 0; both are 0 where `pad_value` is. All columns have to be packed. A missing list is
        an error; with ``missing="mask"`` it counts as empty.
    cut, end_token, cu_seqlens : optional
        With `pack`: ``cut=True`` fills rows without gaps: a record that has no room goes on in the next row, also of
        the next batch; each part is a segment, with positions from 0. Only the last row of an epoch is padded. An
        `end_token` (or a dict by column) follows the values of a record; lists of several columns have equal lengths.
        ``cu_seqlens=True`` adds ``<name>/cu_seqlens``, where segments of the batch begin, and ``<name>/max_seqlen``,
        int32, for attention kernels: rows follow each other, and padding is a segment of its own.
    state : dict or list of dict, optional
        The result of an iterator's ``state()``, or those of several: continue with the batch after it. If workers share
        one order (see `worker`), and with the state of a single worker, any number of workers goes on.

    Returns
    -------
    ArrayIterator
        An iterator of dicts of arrays, as from `read_arrays`, of `batch_size` rows each; the last batch of an epoch may
        have fewer, and so may one of which ``on_error`` left out rows that arrays cannot hold, with `parts` even all:
        see its ``report``. All batches have the same columns and dtypes: lists of a schema without a length are object
        arrays, which `read_arrays` stacks if they have one length; text has ``StringDType(na_object=None)`` unless the
        schema requires the column (`read_arrays` uses ``StringDType()`` where no value is missing). ``state()`` returns
        its position as a dict for JSON; ``restore(state)`` continues with the batches that would have followed.

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As `read_tfrecord`; raised by the iterator after all records before the damage.
    DecodeError
        A record has no value for a column of numbers, bools, times or tensors; see `missing`.
    ValueError
        `state` is that of other files or options.
    """
    batching: dict[str, Any] = {
        "batch_size": batch_size,
        "shuffle_buffer": shuffle_buffer,
        "seed": seed,
        "epochs": epochs,
        "drop_last": drop_last,
        "worker": worker,
        "uneven": uneven,
        "parts": parts,
        "ragged": ragged,
        "pad_value": pad_value,
        "max_length": max_length,
        "pad_to": pad_to,
        "missing": missing,
        "bucket_by": bucket_by,
        "bucket_sizes": bucket_sizes,
        "pack": pack,
        "cut": cut,
        "end_token": end_token,
        "cu_seqlens": cu_seqlens,
        "state": state,
    }
    options = options_from_call(
        IterOptions,
        iter_arrays,
        source,
        columns=columns,
        filters=filters,
        schema=schema,
        on_error=on_error,
        storage_options=storage_options,
        filesystem=filesystem,
        **batching,
    )
    _refuse_idle_seed(seed, shuffle_buffer)
    found = CallSource(source).resolve(options)
    if isinstance(found, Scan):
        return iterate(found, **batching)
    limits = {"batch_size": LIMITS.batch_rows, "batch_bytes": _CHUNK_BYTES}
    reads = found.options.changed(threads=options.thread_count, **limits)
    planned = found.with_options(reads).plan_scan(only_sample=True)
    scan = LazyScan.from_scan(planned.close())  # its files are opened in each epoch
    if not scan.sources.can_be_read_again and any(source.is_file_object for source in scan.sources):
        raise TypeError("iter_arrays opens files more than once: pass paths, not a file object")
    damage = None if scan.schema.names else planned.error
    if not scan.schema.names and damage is None and planned.sampled != 0:  # a file without records is not an error
        raise ValueError("no column to read: pass columns= or schema= with a feature that the records have")
    files = ScanRowSource(scan)
    row_counts = RowCounts()
    if options.has_equal_parts and options.parts is None:
        row_counts.count_equal_parts(files)
    return ArrayIterator(files, options, lengths=files.list_lengths(options), damage=damage, row_counts=row_counts)


def _refuse_idle_seed(seed: int | None, shuffle_buffer: int | None) -> None:
    """Raise ValueError for a `seed` that has nothing to shuffle, unless ``shuffle_buffer=0`` says so."""
    if seed is not None and shuffle_buffer is None:
        reason = "nothing is shuffled without shuffle_buffer=, the number of records to draw from"
        raise ValueError(f"seed={seed!r}: {reason}; pass both, or neither")


def iterate(data: ScanHolder | Scan | RowSource, **keywords: Any) -> ArrayIterator:
    """Iterate over a scan or another source; files are read if parts are equal, and to know lengths of lists.

    TypeError or ValueError if the value of a keyword of `IterOptions` is invalid.
    """
    source = source_of(data)
    options = IterOptions.from_scan(source.options, **{"batch_size": 1, **IterOptions.stated(keywords)})
    _refuse_idle_seed(keywords.get("seed"), keywords.get("shuffle_buffer"))
    source = source.prune_files().with_options(batch_size=LIMITS.batch_rows, batch_bytes=_CHUNK_BYTES)
    source.refuse_own_seeds(options)
    row_counts = RowCounts()
    # A single worker may leave records out; several may not, but how many there are `to_torch` finds out later.
    if options.uneven != "keep" and options.damage.is_strict and options.parts is None:
        row_counts.count_equal_parts(source)
    lengths = source.list_lengths(options)
    return ArrayIterator(
        source.with_options(threads=options.thread_count), options, lengths=lengths, damage=None, row_counts=row_counts
    )
