"""Datasets made of the rows of others: windows of the steps of episodes, and rows drawn from several by weights.

Tests: tests/rows/training/test_windows.py and tests/rows/training/test_mixture.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, get_args, overload

import pyarrow as pa

from tfrecord_io.apps.lazy_dataset import Dataset, dataset
from tfrecord_io.base import AdapterMethod, LateTypes, check_choice, check_integer, check_keywords
from tfrecord_io.columns import BatchStream, open_input
from tfrecord_io.read import CallSource, LazyScan, ScanHolder
from tfrecord_io.rows import BalancedEpochs, Form, IterOptions, MixedEpochs, Mixture, RowSource, SequenceEpochs, Windows
from tfrecord_io.typing import FilesLike, MixStop, TableLike, WindowPad

if TYPE_CHECKING:
    import pandas as pd

    from tfrecord_io.apps.adapters.grain import to_grain
    from tfrecord_io.apps.adapters.hf import to_hf
    from tfrecord_io.apps.adapters.keras import to_keras
    from tfrecord_io.apps.adapters.tf import to_tf
    from tfrecord_io.apps.adapters.torch import to_torch, to_torch_map
else:
    pd = LateTypes("pandas")
    to_grain, to_hf, to_keras, to_tf = map(AdapterMethod, ("grain", "hf", "keras", "tf"))
    to_torch, to_torch_map = map(AdapterMethod, ("torch", "torch"))


class _DerivedDataset(RowSource):
    """Base of datasets whose rows are made from the rows of other datasets."""

    __slots__ = ()
    _of_rows: ClassVar = {"schema", "count_rows", "to_table"}

    def __dir__(self) -> list[str]:
        """The public names, as of a `Dataset`."""
        names = {*vars(_DerivedDataset), *vars(type(self))} - {"epochs", "_of_rows"}
        return sorted({*dir(object), *names, *self._of_rows})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.describe()}>"

    def head(self, n: int = 5) -> pa.Table:
        """The first `n` rows as a table."""
        n = check_integer("n", n, 0)
        batches, count = list[pa.RecordBatch](), 0
        with closing(self.batches()) as rows:
            while count < n and (batch := next(rows, None)) is not None:
                batches.append(batch)
                count += len(batch)
        return pa.Table.from_batches(batches, self.schema)[:n]

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows of an epoch as a stream of record batches in bounded memory."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def to_pandas(self) -> pd.DataFrame:
        """The rows of an epoch as a DataFrame."""
        return self.to_table().to_pandas()

    columns, iter_arrays = Dataset.columns, Dataset.iter_arrays
    to_torch = to_torch
    to_torch_map = to_torch_map
    to_tf = to_tf
    to_hf = to_hf
    to_grain = to_grain
    to_keras = to_keras

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return BatchStream.export(self.schema, self.batches(), requested_schema)


class MixedDataset(Mixture, _DerivedDataset):
    """Datasets whose rows are drawn by weights; made by `tfrecord_io.mix`.

    It is immutable, can be pickled, and can be read any number of times. Anything that accepts ``__arrow_c_stream__``
    can read it: polars, DuckDB, `write_tfrecord`.

    Attributes
    ----------
    schema : pyarrow.Schema
    parts : tuple of Dataset or WindowedDataset
    weights : tuple of float
        Of each part; their sum is 1.
    """

    __slots__ = ()
    _of_rows: ClassVar = {*_DerivedDataset._of_rows, "weights"}

    @property
    def parts(self) -> tuple[Dataset | WindowedDataset, ...]:
        """The datasets that are mixed."""
        return tuple(Dataset(part) if isinstance(part, LazyScan) else part for part in self.mixed)

    def epochs(self, options: IterOptions, seed: int, counts: Sequence[int] | None = None) -> SequenceEpochs:
        """The rows of every epoch; see `RowSource.epochs`."""
        if self.classes is not None:
            return BalancedEpochs(self, self.classes, options, counts)
        return MixedEpochs(self, options, seed, counts)

    def select(self, columns: Sequence[str] | str) -> MixedDataset:
        """Only some of the columns of the parts; see `Dataset.select`."""
        return self.map_scans(lambda part: part.select(columns))

    def filter(self, filters: Any) -> MixedDataset:
        """Only the rows of the parts that meet a condition; see `Dataset.filter`. The weights stay as they are."""
        return self.map_scans(lambda part: part.filter_rows(filters)).rebalance()


class WindowedDataset(Windows, _DerivedDataset):
    """Windows of the steps of a dataset's episodes; made by `tfrecord_io.windows`.

    It is immutable, can be pickled, and can be read any number of times. Anything that accepts ``__arrow_c_stream__``
    can read it: polars, DuckDB, `write_tfrecord`.

    Attributes
    ----------
    schema : pyarrow.Schema
    scan : Dataset
        The episodes.
    """

    @property
    def scan(self) -> Dataset:
        """The episodes."""
        return Dataset(self.episodes)


@overload
def windows(
    data: FilesLike,
    offsets: Mapping[str, Sequence[int] | int] | None = None,
    *,
    prefix: str = "steps",
    length: int = 16,
    stride: int = 1,
    pad: WindowPad = "none",
) -> WindowedDataset: ...
@overload
def windows(
    data: TableLike,
    offsets: Mapping[str, Sequence[int] | int] | None = None,
    *,
    prefix: str = "steps",
    length: int = 16,
    stride: int = 1,
    pad: WindowPad = "none",
) -> pa.RecordBatchReader: ...
@check_keywords
def windows(
    data: FilesLike | TableLike,
    offsets: Mapping[str, Sequence[int] | int] | None = None,
    *,
    prefix: str = "steps",
    length: int = 16,
    stride: int = 1,
    pad: WindowPad = "none",
) -> WindowedDataset | pa.RecordBatchReader:
    """Turn each row, an episode, into a row for each window of consecutive steps in it.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"id": ["a", "b"], "steps/x": [[1, 2, 3, 4], [5, 6]]}, "walks.tfrecord"
    ... )
    >>> windowed = tfr.windows(tfr.dataset("walks.tfrecord"), length=3)
    >>> windowed.to_table().to_pylist()
    [{'id': 'a', 'steps/x': [1, 2, 3]}, {'id': 'a', 'steps/x': [2, 3, 4]}]
    >>> next(
    ...     tfr.windows(
    ...         tfr.dataset("walks.tfrecord"), length=3, stride=2, pad="edge"
    ...     ).iter_arrays(batch_size=3)
    ... )
    ... # doctest: +NORMALIZE_WHITESPACE
    {'id': array(['a', 'a', 'b'], dtype=StringDType(na_object=None)), 'steps/x': array([[1, 2, 3],
           [3, 4, 4],
           [5, 6, 6]])}

    By column, such as the last two observations, and the actions that follow:

    >>> arm = {"observation/pose": [[1, 2, 3]], "action": [[7, 8, 9]]}
    >>> _ = tfr.write_tfrecord(arm, "arm.tfrecord")
    >>> offsets = {"observation/*": range(-1, 1), "action": range(0, 2)}
    >>> pairs = tfr.windows("arm.tfrecord", offsets)
    >>> for name, steps in next(pairs.iter_arrays(batch_size=3)).items():
    ...     print(name, steps.tolist())
    observation/pose [[1, 1], [1, 2], [2, 3]]
    observation/pose/mask [[False, True], [True, True], [True, True]]
    action [[7, 8], [8, 9], [9, 9]]
    action/mask [[True, True], [True, True], [True, False]]

    Parameters
    ----------
    data : path, Dataset, Reader, DataFrame, Table or any other table
        As for `explode`.
    offsets : dict, optional
        Steps of a window by column, relative to its own step, instead of `length` and `pad`: ``range(-1, 1)``, other
        numbers, or one number, for a value without an axis of steps. Keys are names and globs, with or without the
        prefix; other columns with the prefix have their own step. There is a window for each `stride`-th step. Beyond
        an end, the first or last step is repeated, where ``<column>/mask`` is False. In training, images are decoded
        once for all windows in the shuffle buffer, which holds numbers of windows, and their episodes as they are
        stored.
    prefix : str, default "steps"
        The columns of steps are those named ``<prefix>/…``: lists with a value for each step, or tensors whose first
        axis counts the steps.
    length : int, default 16
        Steps of a window.
    stride : int, default 1
        Steps from the start of a window to that of the next one.
    pad : {"none", "edge"}
        "none": windows end with their episode; one that has fewer steps has no window. "edge": a window begins with
        every `stride`-th step, and repeats the last one where the episode ends inside it.

    Returns
    -------
    WindowedDataset or pyarrow.RecordBatchReader
        Of a dataset or a path, a dataset for training: with ``iter_arrays``, ``to_torch``, ``to_torch_map``, ``to_tf``,
        ``to_grain`` and ``to_hf``, whose states continue exactly; workers share the episodes, and with ``uneven=`` the
        windows, whose number is found by the lengths of all episodes. Of other data, a stream in bounded memory. The
        columns are those of `data`, in their order: those of steps are lists of a fixed length, of tensors tensors with
        an axis more, the others have the value of the episode. No window has steps of two episodes. Single values of
        a dtype of ml_dtypes become the wider one of NumPy, which holds them exactly.

    Raises
    ------
    FeatureNotFoundError
        No column has the prefix.
    SchemaError
        As in `explode`.
    ValueError
        `length` or `stride` is less than 1, or an entry of `offsets` has no step.
    """
    length = check_integer("length", length, 1)
    stride = check_integer("stride", stride, 1)
    check_choice("pad", pad, get_args(WindowPad))
    source_data: Any = data
    source = (
        _scan_of(source_data) if CallSource(source_data).may_be_read else open_input(source_data).with_plain_layouts()
    )
    if offsets is None:
        form = Form.from_length(source.schema, prefix, length=length, stride=stride, pad=pad)
    elif (length, pad) != (16, "none"):
        raise ValueError("offsets= states the steps of each column: leave out length= and pad=")
    else:
        form = Form.from_offsets(source.schema, prefix, offsets, stride)
    schema = form.schema(source.schema)
    if isinstance(source, LazyScan):
        return WindowedDataset(source, form)
    return pa.RecordBatchReader.from_batches(schema, form.stream(source.batches))


@check_keywords
def mix(
    datasets: Sequence[FilesLike | WindowedDataset] | FilesLike | WindowedDataset,
    weights: Sequence[float] | None = None,
    *,
    balance: str | None = None,
    seed: int = 0,
    stop: MixStop = "first",
    source_column: str | None = None,
) -> MixedDataset:
    """Mix datasets: draw each row from one of them, by weights; or draw the classes of a column evenly.

    The seed determines which dataset each row of an epoch comes from: the sequence is the same in every epoch, for
    every reader and on every machine. Which rows of a dataset these are depends on the shuffling of the reader. The
    rows of a dataset come in the order in which it is read on its own: with ``shuffle_buffer=``, its files are
    shuffled, and the mixture passes through the buffer.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"n": [1, 2, 3]}, "small.tfrecord")
    >>> _ = tfr.write_tfrecord({"n": list(range(100, 110))}, "large.tfrecord")
    >>> mixed = tfr.mix(
    ...     [tfr.dataset("small.tfrecord"), tfr.dataset("large.tfrecord")],
    ...     [0.3, 0.7],
    ...     stop="all",
    ... )
    >>> sorted(set(mixed.to_table()["n"].to_pylist())) == [1, 2, 3, *range(100, 110)]
    True
    >>> rows = sum(len(batch["n"]) for batch in mixed.iter_arrays(batch_size=6))
    >>> rows == mixed.count_rows()
    True
    >>> _ = tfr.write_tfrecord({"kind": ["usual"] * 990 + ["rare"] * 10}, "kinds.tfrecord")
    >>> balanced = tfr.mix(tfr.dataset("kinds.tfrecord"), balance="kind", stop="never")
    >>> batch = next(balanced.iter_arrays(batch_size=1000, shuffle_buffer=1000, seed=0))
    >>> 450 < (batch["kind"] == "rare").sum() < 550
    np.True_

    Parameters
    ----------
    datasets : sequence of Dataset, WindowedDataset or path
        Datasets with the same columns, types and `on_error`. With `balance`, also a single one.
    weights : sequence of float, optional
        The weight of each dataset; only ratios count. By default all are equal.
    balance : str, optional
        A column of classes (integers, bools, text or bytes), which are drawn evenly; then a dataset, by the weights of
        those that have rows of the class. This call reads the column: from column indexes (``tfr index --columns``),
        else from the records; each row needs a value. Rows are read by number, so that files must not be compressed.
        With a ``shuffle_buffer``, the rows of a class have another order on each pass.
    seed : int, default 0
        Seed of the draws only; readers have a ``seed=`` of their own.
    stop : {"first", "all", "never"}
        When an epoch ends. "first": when a row would come from a dataset that has no more, so that no row is repeated;
        "all": when every dataset has been read once, while shorter ones start again; "never": all are repeated without
        end. With `balance`, this applies to the rows of each class: an epoch has about as many of each as the rarest
        class ("first"), or the most frequent ("all").
    source_column : str, optional
        Name of a column to add, int64, with the index of the dataset that a row is from.

    Returns
    -------
    MixedDataset
        With the methods of a `Dataset` for training: ``iter_arrays``, ``to_torch``, ``to_torch_map``, ``to_tf``,
        ``to_grain`` and ``to_hf``, and as a table. Their states continue exactly. Several workers share the sequence of
        rows, for which they need the same ``seed`` with a ``shuffle_buffer``; where each dataset has at least as many
        files as there are workers, each worker mixes whole files of each dataset, by a sequence of its own.

    Raises
    ------
    SchemaError
        The datasets have different columns, or the source column; `balance` is not a column of classes.
    FeatureNotFoundError
        `balance` is not a column.
    DecodeError
        A row has no value in the column `balance`.
    TypeError, ValueError
        The value of a keyword is invalid.
    """
    is_single = isinstance(datasets, str | PathLike | ScanHolder | WindowedDataset)
    sources: Any = [datasets] if is_single else datasets
    if isinstance(datasets, Mapping) or (is_single and balance is None):
        raise TypeError(f"expected a list of datasets, got {type(datasets).__name__}")
    parts = [part if isinstance(part, WindowedDataset) else _scan_of(part) for part in sources]
    if not parts:
        raise ValueError("expected at least one dataset, got none")
    seed = check_integer("seed", seed, 0)
    check_choice("stop", stop, get_args(MixStop))
    for keyword, name in {"source_column": source_column, "balance": balance}.items():
        if not isinstance(name, str | None):
            raise TypeError(f"{keyword}={name!r}: expected the name of a column")
    mixed = MixedDataset.of(parts, weights, seed=seed, stop=stop, source_column=source_column)
    CallSource(parts).check_equal("on_error")
    return mixed if balance is None else mixed.balance(balance)


def _scan_of(source: Any) -> LazyScan:
    if not CallSource(source).may_be_read:
        raise TypeError(f"expected datasets or paths, got {type(source).__name__}")
    return (source if isinstance(source, Dataset) else dataset(source))._held
