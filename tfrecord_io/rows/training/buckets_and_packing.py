"""Arrange rows in batches by the lengths of their lists: buckets, packed rows, documents that are cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array, get_engine
from tfrecord_io.columns import ArrayBuffers, Column
from tfrecord_io.rows.arrays.stacked_or_ragged import BatchForm
from tfrecord_io.rows.training.iter_options import IterOptions


@dataclass(slots=True)
class Batches:
    """The batches that some rows complete."""

    order: Array  # int64: the rows of all batches, by number of arrival
    ends: Array  # int64: batch j has the rows ``order[ends[j - 1]:ends[j]]``
    arrived: Array  # int64: how many rows have arrived when batch j is complete
    leftover: Array  # int64: the rows that are in no batch, in the order of arrival
    lengths: Array | None = None  # int64: of the padded lists of each batch
    bins: Array | None = None  # int64: the row of the packed arrays that each row of `order` becomes a part of
    filled: Array | None = None  # bool: whether a row of `order` has a value in one of the packed columns
    carried: int = 0  # how many of the first rows had waited since an earlier arrangement
    numbers: Array | None = None  # int64: of the rows, by arrival
    pieces: Pieces | None = None  # of documents that are cut, which replace rows in `order`

    @property
    def most_rows(self) -> int:
        """Rows of the largest batch."""
        return int(np.diff(self.ends, prepend=0).max(initial=1))

    def batch_with(self, row: int) -> int:
        """Number of the batch that a row of `order` is in."""
        return int(self.ends.searchsorted(row, side="right"))

    def progress_after(self, rows: int) -> tuple[int, list[int], int]:
        """State after `rows` of `order`: how many rows have newly arrived, and the numbers of the rows that wait.

        The last value is how many values of the first of these were delivered before.
        """
        assert self.numbers is not None
        batch = self.batch_with(rows - 1)
        arrived = int(self.arrived[batch])
        if self.pieces is not None:
            given = int(self.pieces.given[batch])
            return arrived - self.carried, self.numbers[arrived - 1 : arrived].tolist() if given else [], given
        waits = np.zeros(len(self.numbers), np.bool_)
        waits[:arrived] = True
        waits[self.order[:rows]] = False
        return arrived - self.carried, self.numbers[waits].tolist(), 0

    @property
    def is_arranged(self) -> bool:
        """True if batches have a form by the lengths of lists."""
        return self.lengths is not None or self.bins is not None

    def form(self, batch: int, rows: Array) -> BatchForm:
        """Form of the arrays of some `rows` of a batch: list lengths, or the position of each row in packed rows."""
        if self.bins is None or self.filled is None:
            return BatchForm(None if self.lengths is None else int(self.lengths[batch]))
        last = int(self.ends[batch]) - 1  # the rows of a batch are in the order of their bins
        bins, filled = self.bins[rows], self.filled[rows]
        before = np.cumsum(filled) - filled
        segments = before - before[bins.searchsorted(bins)] + 1  # one for all columns; rows without values have none
        ended = None if self.pieces is None else self.pieces.ended[rows]
        return BatchForm(None, bins, int(self.bins[last]) + 1, segments.astype(np.int32), ended=ended)


@dataclass(slots=True)
class Pieces:
    """The pieces that documents are cut into."""

    rows: Array  # int64: the document of each piece, by arrival
    begins: Array  # int64: of each piece, and the end of the last one, among the values of its document
    ended: Array  # bool: whether the end token of the document is the last value of the piece
    given: Array  # int64: by batch, how many values of the last document that arrived it gives, if not all

    def places(self) -> tuple[Array, Array]:
        """Where pieces begin and the last one ends: the document, and the place among its values."""
        return np.append(self.rows, self.rows[-1:]), self.begins

    def of(self, pieces: Array) -> tuple[Array, tuple[Array, Array]]:
        """The documents of consecutive pieces, and the `places` in these."""
        rows, begins = (places[pieces[0] : pieces[-1] + 2] for places in self.places())
        documents = np.arange(rows[0], rows[-2] + 1)
        return documents, (np.minimum(rows - rows[0], len(documents)), begins)  # the next one begins where these end


def arrange_batches(lengths: Array, options: IterOptions, is_last: bool) -> Batches:
    """Arrange rows, given in the order of arrival by their `list_lengths_of`, in batches.

    `is_last`: no rows of the epoch follow, so that batches may stay unfilled.
    """
    return (_bucket_rows if options.pack is None else _pack_rows)(lengths, options, is_last)


def batches_of_size(count: int, options: IterOptions) -> Batches:
    """Arrange rows in batches of `batch_size` in their order."""
    ends = np.minimum(np.arange(options.batch_size, count + options.batch_size, options.batch_size), count)
    if options.drop_last and len(ends) and count % options.batch_size:
        ends = ends[:-1]
    return Batches(np.arange(count), ends, ends, np.empty(0, np.int64))


def _bucket_rows(lengths: Array, options: IterOptions, is_last: bool) -> Batches:
    """Arrange rows in batches of similar list lengths; all have about the same number of values, with padding."""
    sizes = np.array(options.bucket_sizes, np.int64)
    longest = lengths.max(axis=1, initial=0)
    bucket_of_row = np.minimum(sizes.searchsorted(longest), len(sizes) - 1)  # arrays refuse what is too long
    batches, unfilled, leftover = [], [], [np.empty(0, np.int64)]
    for bucket, size in enumerate(sizes.tolist()):
        capacity = options.batch_size * int(sizes[-1]) // size  # rows, padded to about as many values as the last one's
        rows = np.flatnonzero(bucket_of_row == bucket)
        whole = len(rows) // capacity * capacity
        batches += [(int(part[-1]) + 1, bucket, part) for part in rows[:whole].reshape(-1, capacity)]
        if is_last and not options.drop_last and whole < len(rows):
            unfilled.append((len(lengths), bucket, rows[whole:]))
        else:
            leftover.append(rows[whole:])
    batches.sort(key=lambda batch: batch[0])
    batches += unfilled
    parts = [part for _, _, part in batches]
    return Batches(
        order=np.concatenate([np.empty(0, np.int64), *parts]),
        ends=np.cumsum([len(part) for part in parts], dtype=np.int64),
        arrived=np.array([arrived for arrived, _, _ in batches], np.int64),
        leftover=np.sort(np.concatenate(leftover)),
        lengths=sizes[np.array([bucket for _, bucket, _ in batches], np.int64)],
    )


def _pack_rows(lengths: Array, options: IterOptions, is_last: bool) -> Batches:
    """Pack rows into batches of `batch_size` packed rows; a batch is complete when the next row has no room in it."""
    assert options.pack is not None
    capacity = np.array(list(options.pack.values()), np.int64)
    lengths = np.minimum(lengths, capacity)  # arrays refuse what is too long
    bins, begins = get_engine().first_fit(lengths, capacity, options.batch_size)
    ends = np.array(begins, np.int64)
    group = ends.searchsorted(np.arange(len(lengths)), side="right")
    begin_of_last = begins[-1] if begins else 0
    is_full = bool(len(lengths)) and int(bins[begin_of_last:].max()) + 1 == options.batch_size
    if is_last and len(lengths) and (is_full or not options.drop_last):
        ends = np.append(ends, len(lengths))
    count = int(ends[-1]) if len(ends) else 0
    order = np.lexsort((bins[:count], group[:count]))
    filled = lengths[order].sum(axis=1) > 0
    # The row that begins the next batch has arrived, but is drawn again.
    return Batches(order, ends, ends, np.arange(count, len(lengths)), bins=bins[order], filled=filled)


def list_lengths_of(rows: pa.RecordBatch, options: IterOptions) -> Array:
    """Lengths of the truncated lists of the columns that decide about batches: int64 [rows, columns]."""
    names = options.arranging
    fields = {field.name: at for at, field in enumerate(Column.leaf_fields(rows.schema))}
    arrays = Column.leaf_arrays(rows)
    lengths = np.zeros((len(rows), len(names)), np.int64)
    for at, name in enumerate(names):
        of_column, max_length = ArrayBuffers(arrays[fields[name]]).lengths, options.layouts.layout(name).max_length
        lengths[:, at] = of_column if max_length is None else np.minimum(of_column, max_length)
    return lengths


def cut_documents(lengths: Array, options: IterOptions, is_last: bool, given: int = 0) -> Batches:
    """Cut documents, in the order of arrival, into packed rows without gaps; see `arrange_batches`.

    `lengths` are those of the documents, int64; `given` is how many values of the first one were delivered before.
    """
    assert options.pack is not None
    size = next(iter(options.pack.values()))
    room, has_ends = options.batch_size * size, options.end_token is not None
    tokens = lengths + ((lengths > 0) & has_ends)
    if given > tokens[:1].sum():
        raise ValueError("the state does not fit the files: a document has fewer values than it states")
    ends = np.cumsum(tokens) - given  # of the documents in the stream of values that are left
    begins, total = ends - tokens, int(ends[-1]) if len(ends) else 0
    whole = total // room
    takes_rest = is_last and whole * room < total and (not options.drop_last or total - whole * room > room - size)
    stop = total if takes_rest else whole * room
    places = np.unique(np.concatenate([np.arange(0, stop, size), begins[(tokens > 0) & (begins > 0)]]))
    places = places[: places.searchsorted(stop)]  # where pieces begin
    rows = ends.searchsorted(places, side="right")
    until = np.append(places[1:], stop)[: len(places)]
    ended = (until == ends[rows]) & has_ends
    stops = np.append(np.arange(room, whole * room + 1, room), [stop] if takes_rest else []).astype(np.int64)
    last_rows = ends.searchsorted(stops - 1, side="right")  # of the batches
    rest = np.where(ends[last_rows] > stops, stops - begins[last_rows], 0)
    arrived = last_rows + 1
    if is_last and len(arrived) and stop == total:
        arrived[-1] = len(lengths)
    first_left = 0 if not len(stops) else int(arrived[-1]) - int(rest[-1] > 0)
    of_last = [until[-1] - begins[rows[-1]] - ended[-1]] if len(rows) else []
    return Batches(
        order=np.arange(len(places)),
        ends=places.searchsorted(stops),
        arrived=arrived,
        leftover=np.arange(first_left, len(lengths)),
        bins=places % room // size,
        filled=np.ones(len(places), np.bool_),
        pieces=Pieces(rows, np.append(places - begins[rows], of_last).astype(np.int64), ended, rest),
    )
