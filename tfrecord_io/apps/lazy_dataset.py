"""Datasets as values, opened when they are read, and the forms to read them as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, overload

import pyarrow as pa

from tfrecord_io.base import (
    LIMITS,
    Adapter,
    AdapterMethod,
    DatasetOptions,
    LateTypes,
    Limits,
    Report,
    Summary,
    byte_size,
    check_integer,
    check_keywords,
    counted,
    printable,
)
from tfrecord_io.read import CallSource, LazyScan, Reader, Scan, ScanHolder, ScanRows, options_from_call
from tfrecord_io.typing import (
    UNSET,
    ArrayLayout,
    Compression,
    DtypeBackend,
    InputPath,
    Lengths,
    Missing,
    OnErrorCollecting,
    OnNew,
    ProgressLike,
    RecordTypeLike,
    SchemaLike,
    StorageLike,
    UnevenParts,
    Unset,
)

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from tfrecord_io import typing
    from tfrecord_io.apps.adapters.duckdb import to_duckdb
    from tfrecord_io.apps.adapters.grain import to_grain
    from tfrecord_io.apps.adapters.hf import to_hf
    from tfrecord_io.apps.adapters.keras import to_keras
    from tfrecord_io.apps.adapters.polars import to_polars
    from tfrecord_io.apps.adapters.tf import to_tf
    from tfrecord_io.apps.adapters.torch import to_torch, to_torch_map
    from tfrecord_io.apps.adapters.xarray import to_xarray
    from tfrecord_io.plugins.engines.daft import to_daft
    from tfrecord_io.plugins.engines.dask import to_dask
    from tfrecord_io.plugins.engines.ray import to_ray
    from tfrecord_io.plugins.engines.spark import to_spark
else:  # each is loaded by its first use
    npt, pd, typing = map(LateTypes, ("numpy.typing", "pandas", "tfrecord_io.typing"))
    to_duckdb, to_grain, to_hf, to_keras = map(AdapterMethod, ("duckdb", "grain", "hf", "keras"))
    to_polars, to_tf, to_torch, to_torch_map = map(AdapterMethod, ("polars", "tf", "torch", "torch"))
    to_xarray, to_daft, to_dask, to_ray, to_spark = map(AdapterMethod, ("xarray", "daft", "dask", "ray", "spark"))


_selects = partial(check_keywords, moved=dict)  # of a dataset that is there: its errors name no keyword of `dataset`


class _Shown(ScanHolder, Report):  # type: ignore[misc]  # the only slot of Report is __weakref__
    """Base of a dataset and of its pieces: a scan, whose files, sizes and columns are shown."""

    __slots__ = ()
    _held: LazyScan

    def __dir__(self) -> list[str]:
        """The public names."""
        return sorted(
            {*dir(object), *(name for class_ in type(self).__mro__ for name in vars(class_) if name[:1] != "_")}
        )

    @property
    def schema(self) -> pa.Schema:
        """Schema of the selected columns, in order."""
        return self._held.schema

    @property
    def files(self) -> list[str]:
        """The paths of the files, in the order of reading."""
        return self._held.files

    @property
    def bytes(self) -> int | None:
        """The size of the files, compressed if they are, or of the parts that are read; None if unknown."""
        return self._held.bytes

    @_selects
    def select(self, columns: Sequence[str] | str) -> Self:
        return type(self)(self._held.select(columns))

    @_selects
    def filter(self, filters: Any) -> Self:
        return type(self)(self._held.filter_rows(filters))

    @check_keywords
    def count_rows(self) -> int:
        return ScanRows(self._held).count()

    select.__doc__, filter.__doc__ = LazyScan.select.__doc__, LazyScan.filter_rows.__doc__
    count_rows.__doc__ = ScanRows.count.__doc__

    def _summary(self) -> Summary:
        scan = self._held
        amounts = [counted(scan.file_count, "file")]
        if scan.is_read_once:
            return Summary(f"{type(self).__name__} of {amounts[0]}, read once", lines=scan.described_rows())
        amounts += [] if scan.bytes is None else [byte_size(scan.bytes)]
        amounts += [] if scan.rows is None else [counted(scan.rows, "row")]
        title = f"{type(self).__name__} of {', '.join(amounts)}, schema {scan.schema_source}"
        rows = [(printable(f.name), printable(scan.shown_type(f))) for f in scan.schema]
        return Summary(title, ("column", "type"), rows, scan.described_rows())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._held.describe()}>"

    def __add__(self, other: Any) -> Dataset:
        """The rows of this one, then those of another dataset, of a piece, or of files; their columns are united."""
        if not CallSource(other).may_be_read:
            return NotImplemented
        return dataset([self, *(other if isinstance(other, list | tuple) else [other])])

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return ScanRows(self._held).open(warns=True).__arrow_c_stream__(requested_schema)

    def __dask_tokenize__(self) -> object:
        return self._held.__dask_tokenize__()


class DatasetPiece(_Shown):
    """A part of a dataset, of whole records; made by `Dataset.pieces`.

    It can be pickled, to a few kilobytes, in a bucket also about 20 bytes for each file. Other processes and machines
    read the same version of the files, or raise an error; they use the schema of the dataset, and infer nothing.

    Attributes
    ----------
    schema : pyarrow.Schema
        That of the dataset.
    files : list of str
        The files that it has records of.
    bytes : int or None
        What it reads of them.
    """

    __slots__ = ()

    @check_keywords
    def read(self) -> pa.Table:
        """All rows as a table."""
        return ScanRows(self._held).read()

    def to_batches(self) -> Reader:
        """The record batches of this piece; see `Dataset.to_batches`."""
        return ScanRows(self._held.with_report()).open()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            has_it = f"tfr.dataset(piece).{name} has it" if name in dir(Dataset) else None
            from tfrecord_io.base import OTHER_NAMES  # for mistakes only

            raise OTHER_NAMES.attribute_error(self, name, has_it)


class DatasetPieces(Sequence[DatasetPiece]):
    """The pieces of a dataset, in order; each is made when it is taken."""

    __slots__ = ("_scans",)

    def __init__(self, scans: Sequence[Scan]) -> None:
        self._scans = scans

    def __len__(self) -> int:
        return len(self._scans)

    @overload
    def __getitem__(self, number: int) -> DatasetPiece: ...
    @overload
    def __getitem__(self, number: slice) -> list[DatasetPiece]: ...
    def __getitem__(self, number: int | slice) -> DatasetPiece | list[DatasetPiece]:
        if isinstance(number, slice):
            return [DatasetPiece(scan) for scan in self._scans[number]]
        return DatasetPiece(self._scans[number])

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'piece')} of a dataset>"


class Dataset(_Shown):
    """TFRecord files under a common schema, opened when they are read; made by `tfrecord_io.dataset`.

    It is immutable, can be pickled, and can be read any number of times. `select` and `filter` are lazy. Anything that
    accepts ``__arrow_c_stream__`` can read it: polars, DuckDB, `write_tfrecord`.

    It stands for one version of the files: those that existed when it was made. `refresh` returns a dataset with the
    rows appended later, and `tfrecord_io.follow` those rows alone; after its files were replaced, by an overwrite or
    `compact`, reading it raises `ReplacedError`.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the selected columns.
    schema_source : str
        "schema=", "embedded", "saved" (`Schema.save`), "features.json", "companions" (companion features make bytes
        tensors) or "inferred".
    files : list of str
        In the order of reading.
    bytes : int or None
        Of all files together, compressed if they are; None if a size is unknown.
    rows : int or None
        If a manifest states it; `count_rows` finds it otherwise.
    version : str or None
        If a manifest states all files: for `tfrecord_io.follow`. It changes when rows are added or removed.
    """

    __slots__ = ()

    @property
    def schema_source(self) -> str:
        """Where the schema comes from: "schema=", "embedded", "saved", "features.json", "companions", "inferred".

        Or ``record_type=…``, of bytes and other messages.
        """
        return self._held.schema_source

    @property
    def rows(self) -> int | None:
        """The number of rows, where a manifest states it; else None, and `count_rows` finds it."""
        return self._held.rows

    @property
    def version(self) -> str | None:
        """The version of the files, after which `tfrecord_io.follow` finds the rows that appends add; or None."""
        return self._held.version

    @property
    def columns(self) -> list[str]:
        """The names of the selected columns, in order."""
        return list(self.schema.names)

    @check_keywords
    def refresh(self) -> Self:
        """Select the same columns and rows from the files that exist now; this dataset stays as it is.

        Raises
        ------
        FeatureNotFoundError
            A selected column does not exist any more.
        FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
            As in `tfrecord_io.dataset`.

        Examples
        --------
        >>> import tfrecord_io as tfr
        >>> _ = tfr.write_tfrecord({"x": [1]}, "growing/", mode="append")
        >>> first = tfr.dataset("growing/")
        >>> _ = tfr.write_tfrecord({"x": [2]}, "growing/", mode="append")
        >>> first.count_rows(), first.refresh().count_rows()
        (1, 2)
        """
        return type(self)(self._held.refresh_files())

    @check_keywords
    def explain(self) -> typing.Explanation:
        """Show the files that a read opens, in whole or by a column index, and the decoded columns.

        It is planned as `to_table` is, and column indexes are searched for it; no record is decoded.

        Raises
        ------
        ReplacedError
            The files were replaced since the dataset was made.

        Examples
        --------
        >>> import tfrecord_io as tfr
        >>> _ = tfr.write_tfrecord(
        ...     {"kind": ["a", "b"], "n": [1, 2]}, "kinds/", partition_by="kind"
        ... )
        >>> explained = (
        ...     tfr.dataset("kinds/").filter([("kind", "==", "b"), ("n", ">", 0)]).explain()
        ... )
        >>> [(file.read, file.why) for file in explained.files]
        [('left out', "kind == 'b'"), ('whole', '')]
        >>> explained.columns
        ('n',)
        """
        return self._held.explanation()

    @_selects
    def limit(self, n: int) -> Self:
        """At most the first `n` rows that meet the filter, also a filter added later; lazy.

        Examples
        --------
        >>> import tfrecord_io as tfr
        >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord")
        >>> tfr.dataset("three.tfrecord").limit(2).to_table()["x"].to_pylist()
        [1, 2]
        """
        n = check_integer("n", n, 0)
        return type(self)(self._held.limit_rows(n))

    @_selects
    def offset(self, n: int) -> Self:
        """Without the first `n` rows; lazy.

        Raises
        ------
        ValueError
            The dataset has a filter, before which an offset counts; or it was refreshed, and `n` is its number of rows
            before, but rows that were added are not the last ones, as beside folders: `tfrecord_io.follow` gives them.
        ReplacedError
            `n` is the number of rows before the dataset, in folders, was refreshed, and rows were replaced since.

        Examples
        --------
        >>> import tfrecord_io as tfr
        >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord")
        >>> tfr.dataset("three.tfrecord").offset(1).limit(1).to_table()["x"].to_pylist()
        [2]
        """
        n = check_integer("n", n, 0, LIMITS.INT64_MAX)
        return type(self)(self._held.skip(n))

    @_selects
    def take(self, n: int) -> Self:
        """Limit the rows as `limit` does; for rows by number, see `tfrecord_io.open_random`."""
        if not hasattr(n, "__index__"):
            raise TypeError("take(n) is the first n rows; tfr.open_random(path) reads rows by number")
        return self.limit(n)

    def __len__(self) -> int:
        """The number of rows, if a manifest states it.

        Raises
        ------
        TypeError
            It is not known without reading the files, as `count_rows` does.
        """
        if self.rows is None or not self._held.options.damage.counts_all:
            raise TypeError("the number of rows is not known before files are read: call count_rows()")
        return self.rows

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> NoReturn:
        """A dataset is not an iterator: there are several forms to read it in."""
        raise TypeError("iterate over to_batches(), or over iter_arrays(batch_size=…) in training")

    def __getitem__(self, rows: object) -> NoReturn:
        """Rows by number are those of `tfrecord_io.open_random`."""
        raise TypeError(
            "select(['name']) takes columns, head(n) the first rows, tfr.open_random(path)[[0, 5]] rows by number"
        )

    @_selects
    def head(self, n: int = 5) -> pa.Table:
        """The first `n` rows as a table."""
        return ScanRows(self._held.limit_rows(n)).read(warns=True)

    @_selects
    def pieces(self, n: int | None = None, *, max_bytes: int = Scan.PIECE_BYTES) -> Sequence[DatasetPiece]:
        """Split into parts of whole records, for several processes; their rows, in order, are those of the dataset.

        Large plain files are split by their size alone, and are not read for it: a piece has the records that begin in
        a range of bytes, and finds them when it is read. Compressed files stay whole; small files are joined.
        The sequence makes a piece when it is taken, and has 8 bytes for each until then.

        Parameters
        ----------
        n : int, optional
            The maximum number of pieces, which have about the same number of bytes, up to 10,000,000. The result has at
            least one.
        max_bytes : int
            Without `n`: the approximate size of a piece.

        Raises
        ------
        ValueError
            `n` or `max_bytes` is less than 1, or the dataset has an `offset`, a `limit` or ``on_error="stop"``.
        """
        return DatasetPieces(self._held.split(n, max_bytes))

    # As a table, batches, a DataFrame, arrays -----------------------------------------------------------------------

    @check_keywords
    def to_table(self) -> pa.Table:
        """All rows as a table; see `tfrecord_io.read_table`."""
        with self._held.open_all() as reader:
            return reader.read_all()

    @check_keywords
    def to_batches(self) -> Reader:
        """A stream of record batches in bounded memory: an iterator and a context manager, as from `open_reader`."""
        return ScanRows(self._held.with_report()).open(warns=True)

    @check_keywords
    def to_pandas(self, dtype_backend: DtypeBackend | None = None) -> pd.DataFrame:
        """All rows as a DataFrame; see `tfrecord_io.read_tfrecord`."""
        with self._held.open_all(with_index=True) as reader:
            return reader.read_pandas(dtype_backend)

    @check_keywords
    def to_arrays(
        self,
        *,
        ragged: ArrayLayout | Mapping[str, ArrayLayout] | None = None,
        pad_value: Any = 0,
        max_length: Lengths | Mapping[str, Lengths] | None = None,
        pad_to: Lengths | Mapping[str, Lengths] | None = None,
        missing: Missing = "error",
    ) -> dict[str, npt.NDArray[Any]]:
        """All rows as NumPy arrays, by column; see `tfrecord_io.read_arrays`.

        Parameters
        ----------
        ragged, pad_value, max_length, pad_to, missing
            As in `read_arrays`.
        """
        from tfrecord_io.rows import scan_arrays  # a table needs nothing that makes arrays

        return scan_arrays(
            self._held, ragged=ragged, pad_value=pad_value, max_length=max_length, pad_to=pad_to, missing=missing
        )

    @check_keywords
    def iter_arrays(
        self: Any,  # also what is made of datasets
        *,
        batch_size: int,
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
    ) -> typing.ArrayIterator:
        """Batches of arrays for training; see `tfrecord_io.iter_arrays`.

        Parameters
        ----------
        batch_size, shuffle_buffer, seed, epochs, drop_last, worker, uneven, parts, bucket_by, bucket_sizes, state
            As in `tfrecord_io.iter_arrays`.
        pack, cut, end_token, cu_seqlens
            As in `tfrecord_io.iter_arrays`.
        ragged, pad_value, max_length, pad_to, missing
            As in `read_arrays`.

        Notes
        -----
        Workers share the rows of a filter evenly, but each reads all files, unless there are as many files as workers
        and no `limit` and no ``uneven=``.
        """
        from tfrecord_io.rows import iterate

        return iterate(
            self,
            batch_size=batch_size,
            shuffle_buffer=shuffle_buffer,
            seed=seed,
            epochs=epochs,
            drop_last=drop_last,
            worker=worker,
            uneven=uneven,
            parts=parts,
            ragged=ragged,
            pad_value=pad_value,
            max_length=max_length,
            pad_to=pad_to,
            missing=missing,
            bucket_by=bucket_by,
            bucket_sizes=bucket_sizes,
            pack=pack,
            cut=cut,
            end_token=end_token,
            cu_seqlens=cu_seqlens,
            state=state,
        )

    # By adapters: a line for each row of base/libraries.py -----------------------------------------------------------

    to_polars = to_polars
    to_duckdb = to_duckdb
    to_dask = to_dask
    to_daft = to_daft
    to_ray = to_ray
    to_spark = to_spark
    to_xarray = to_xarray
    to_torch = to_torch
    to_torch_map = to_torch_map
    to_tf = to_tf
    to_hf = to_hf
    to_grain = to_grain
    to_keras = to_keras

    if not TYPE_CHECKING:  # methods of other packages

        def __getattr__(self, name: str) -> object:
            method = Adapter.added_method(name) if name.startswith("to_") else None
            if method is None:
                from tfrecord_io.base import OTHER_NAMES  # for mistakes only

                raise OTHER_NAMES.attribute_error(self, name)
            return partial(method, self)


@check_keywords
def dataset(
    source: InputPath,
    *,
    columns: Sequence[str] | str | None = None,
    filters: Any = None,
    schema: SchemaLike | Literal["infer"] | None = None,
    limit: int | None = None,
    on_error: OnErrorCollecting | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
    schema_overrides: Mapping[str, Any] | None = None,
    stable_types: bool | Unset = UNSET,
    infer_text: bool | Unset = UNSET,
    sample: int | Literal["all"] | Unset = UNSET,
    on_new: OnNew | Unset = UNSET,
    record_type: RecordTypeLike | None = None,
    compression: Compression | Unset | None = UNSET,
    offset: int = 0,
    include_file_paths: str | None = None,
    split: str | None = None,
    allow_missing_shards: bool | Unset = UNSET,
    check_crc: bool | Unset = UNSET,
    limits: Limits | Unset = UNSET,
    large_offsets: bool | Unset = UNSET,
    threads: int | None = None,
    filesystem: Any = None,
    batch_size: int | Unset = UNSET,
    batch_bytes: int | Unset = UNSET,
) -> Dataset:
    """Describe TFRecord files and how they are read; the dataset is read later, in whole or in part.

    All calls that read files accept a dataset, alone or in a list. Its options hold for them; a keyword that such a
    call passes itself, other than None, must apply, or is an error. The files are those that exist when this call
    returns. The schema is determined when it is first needed: from `schema`, from the first file, or from a sample of
    the first records. A later record that contradicts it is an error; calls that return all rows, such as `read_table`
    and `Dataset.to_table`, infer the types from all of them. What `Dataset.filter` and others select has the types of
    the dataset.

    >>> import pyarrow.compute as pc, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"label": [3, 1, 3], "name": ["a", "b", "c"]}, "letters.tfrecord"
    ... )
    >>> letters = tfr.dataset("letters.tfrecord")
    >>> letters
    <Dataset of letters.tfrecord: 2 columns>
    >>> threes = letters.filter(pc.field("label") == 3).select(["name"])
    >>> threes.to_table()["name"].to_pylist()
    ['a', 'c']
    >>> [piece.read().num_rows for piece in letters.pieces(2)]
    [1, 2]

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`. A pipe (FIFO, ``/dev/stdin``) is opened once and read like a file; a dataset of it, or of
        a file object, is read once, by a call that takes it.
    columns, filters, schema, limit, storage_options, progress
        As in `read_tfrecord`.
    on_error : {"raise", "stop", "skip", "collect"} or callable, optional
        As in `read_tfrecord`. "collect" is for calls with a report of what they leave out: `open_reader`,
        `Dataset.to_batches`, `RecordReader`, `convert`, `verify` and `salvage`; all others refuse such a dataset.
    schema_overrides : dict, optional
        Types of some columns, by name or glob (``{"image/object/*": "list<float>"}``).
    stable_types : bool, default False
        Always infer lists and binary, so that a column's type depends only on its feature type.
    infer_text : bool, default True
        Infer string for bytes features whose values are all text: UTF-8 without control characters except tabs and line
        ends.
    sample : int or "all", default 10,000
        Number of records from which the schema of a stream is inferred. Calls that return all records use all of them.
    on_new : {"raise", "ignore"}
        What a stream does with a feature that was not in the sample.
    record_type : {None, "example", "sequence_example", "bytes"}, message class or (descriptor set, name)
        What each record is; detected by default. "bytes" returns the payloads in one binary column, ``record``. The
        class of a protobuf message returns its fields; a descriptor set, as a path or bytes, with the name of a
        message, too.
    compression : {"infer", "gzip", "zlib", "zstd", "lz4", None}
        "infer" detects it from the content; the suffix is ignored. None: not compressed.
    offset : int, default 0
        Number of records to skip at the start, by their lengths. With an `on_error` other than "raise" they are
        decoded, and damaged ones do not count.
    include_file_paths : str, optional
        Name of a column to add, with the path of each row's file.
    split : str, optional
        Rows of a dataset that TFDS (tensorflow_datasets) wrote, by its splits, such as ``train[:80%]``. Others are
        ``train``, ``train+test``, ``train[-100:]``, ``train[2shard]``, ``all``. `source` is the directory of the
        dataset; of several versions the newest is read, and of several configurations TFDS's default.
    allow_missing_shards : bool, default False
        Read the existing files if shards are missing or duplicated.
    check_crc : bool, default True
        Check the CRCs of lengths and payloads; False checks none, for files whose writer stored no valid ones.
    limits : Limits, optional
        What an untrusted file may use: bytes of a record, names of features, memory beyond what is read,
        decompressed bytes. More is an error.
    large_offsets : bool, default False
        Infer large_string, large_binary and large_list, which have 64-bit offsets.
    threads : int, optional
        Number of decoding threads, at most one for each core; by default the number of CPU cores. Nothing that is
        returned or raised depends on it.
    filesystem : filesystem, optional
        Of fsspec or pyarrow: the same as passing it as `storage_options`.
    batch_size : int, default 65,536
        Maximum number of rows in a batch.
    batch_bytes : int, default 64 MiB
        Maximum size of a batch in bytes. It limits the payloads, the integers in lists (which may take 8 times as many
        bytes as in a payload) and the scalars (including absent ones) separately. A batch has at least one row, and may
        end earlier if the integers of the next record might exceed the limit.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        Nothing matches `source`.
    CorruptRecordError, DecodeError, SchemaError
        As in `read_tfrecord`, when the schema is found.
    TypeError
        The schema is asked for before a call reads the dataset, and `source` is a file object or a pipe.
    """
    options = options_from_call(
        DatasetOptions,
        dataset,
        source,
        columns=columns,
        filters=filters,
        schema=schema,
        limit=limit,
        on_error=on_error,
        storage_options=storage_options,
        progress=progress,
        schema_overrides=schema_overrides,
        stable_types=stable_types,
        infer_text=infer_text,
        sample=sample,
        on_new=on_new,
        record_type=record_type,
        compression=compression,
        offset=offset,
        include_file_paths=include_file_paths,
        split=split,
        allow_missing_shards=allow_missing_shards,
        check_crc=check_crc,
        limits=limits,
        large_offsets=large_offsets,
        threads=threads,
        filesystem=filesystem,
        batch_size=batch_size,
        batch_bytes=batch_bytes,
    )
    given = CallSource(source).materialize()
    if given.datasets:
        return Dataset(LazyScan.from_scan(given.dataset(options)))
    return Dataset(LazyScan.from_sources(given.given, options, given.files(options)))
