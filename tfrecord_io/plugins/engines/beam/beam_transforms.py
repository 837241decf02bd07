"""The transforms for Apache Beam; this module imports Beam, and is imported on first use.

An element of the reading transforms is a run of whole files, whose restriction is a range of its chunks: byte ranges of
large files, which a runner may split off while others are read. The writing transform stages a part for each bundle, or
for each shard, and publishes the parts of the bundles that the runner has committed.

Tests: tests/plugins/engines/test_beam.py and tests/plugins/engines/test_beam_distributed.py.
"""

from __future__ import annotations

import atexit
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import Coder, registry
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.metrics import Metrics
from apache_beam.pvalue import AsIter, AsSingleton
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from tfrecord_io.errors import TFRecordError
from tfrecord_io.kit import (
    Column,
    DistributedWriter,
    ReadOptions,
    Scan,
    WriteOptions,
    WrittenPart,
    check_integer,
    printable,
    to_pandas,
)
from tfrecord_io.plugins.engines.beam.beam_rows import RowForm, arrow_schema, row_values
from tfrecord_io.typing import WriteReport

_CHUNK_BYTES = 32 << 20  # what a runner may split off,
_FIRST_CHUNKS = 2  # and what is read together at first: the runners of Flink and Spark do not split later
_FORMS = ("batches", "rows", "pandas")
_ROWS = 1024  # elements that are a row each are written together
_LABEL = 10_000  # characters of a path in a label, as labels differ


class RecordBatchCoder(Coder):  # type: ignore[misc]
    """Record batches as Arrow streams: tensor types cannot be pickled."""

    def encode(self, value: pa.RecordBatch) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as stream:
            stream.write_batch(value)
        content: bytes = sink.getvalue().to_pybytes()
        return content

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        Column.register_types()
        return pa.ipc.open_stream(encoded).read_next_batch()

    def to_type_hint(self) -> type:
        return pa.RecordBatch


registry.register_coder(pa.RecordBatch, RecordBatchCoder)


def _counter(name: str) -> Any:
    return Metrics.counter("tfrecord_io", name)


# ---- reading


class ReadTable(beam.PTransform):  # type: ignore[misc]
    """Read a dataset as Arrow record batches, as rows with a Beam schema, or as DataFrames.

    >>> import apache_beam as beam, tfrecord_io as tfr
    >>> from tfrecord_io.beam import ReadTable
    >>> _ = tfr.write_tfrecord({"label": [3, 1, 3], "name": ["a", "b", "c"]}, "letters.tfrecord")
    >>> with beam.Pipeline() as pipeline:
    ...     _ = pipeline | ReadTable("letters.tfrecord", as_="rows") | beam.Map(lambda row: print(row.label, row.name))
    3 a
    1 b
    3 c

    The files and the schema are those that are there when the pipeline is made. A runner splits large plain files
    while they are read; compressed files stay whole. The default label has the name of the source.

    Parameters
    ----------
    source : str, PathLike, Dataset or list of those
        As in `tfrecord_io.dataset`; of a Dataset its selected columns and rows.
    as_ : {"batches", "rows", "pandas"}
        Elements are of `pyarrow.RecordBatch`; rows of `apache_beam.Row`, with the columns as the schema of the
        PCollection; or a `pandas.DataFrame` for each batch.
    **keywords
        Those of `tfrecord_io.dataset`.

    Raises
    ------
    ValueError
        The dataset has an `offset`, a `limit` or ``on_error="stop"``: such a read cannot be split.
    SchemaError
        For rows: a column has a name or a type that rows of Beam do not have.
    """

    def __init__(self, source: Any, *, as_: str = "batches", **keywords: Any) -> None:
        super().__init__()
        scan = Scan.of(source, **keywords)
        self._name = (
            printable(os.fspath(source), _LABEL) if isinstance(source, str | os.PathLike) else _name_of(scan.files)
        )
        self._read = _Read(as_, scan.schema)
        self._runs = _runs_of_files(scan)

    def default_label(self) -> str:
        return f"ReadTable({self._name})"

    def expand(self, pcoll: Any) -> Any:
        return pcoll | "Files" >> beam.Create(self._runs) | self._read


class ReadAllTables(beam.PTransform):  # type: ignore[misc]
    """Read each path of a PCollection as `ReadTable` does; each has its own schema.

    >>> import apache_beam as beam, tfrecord_io as tfr
    >>> from tfrecord_io.beam import ReadAllTables
    >>> _ = tfr.write_tfrecord({"label": [3, 1, 3]}, "letters.tfrecord")
    >>> with beam.Pipeline() as pipeline:
    ...     paths = pipeline | beam.Create(["letters.tfrecord"])
    ...     _ = paths | ReadAllTables() | beam.Map(lambda batch: print(batch.num_rows))
    3

    Parameters
    ----------
    as_, **keywords
        As of `ReadTable`; ``as_="rows"`` needs ``schema=``, by which the rows are known before the paths are.
    """

    def __init__(self, *, as_: str = "batches", **keywords: Any) -> None:
        super().__init__()
        self._keywords = keywords
        stated = ReadOptions.from_keywords(keywords).schema
        if as_ == "rows" and (stated is None or isinstance(stated, str)):
            raise TypeError("as_='rows' needs schema=: the rows of all paths have one schema, which is known before")
        self._read = _Read(as_, None if as_ != "rows" else _parse_schema(stated).to_arrow())

    def expand(self, pcoll: Any) -> Any:
        keywords = self._keywords
        return pcoll | "Files" >> beam.FlatMap(lambda path: _runs_of_files(Scan.of(path, **keywords))) | self._read


class _Read(beam.PTransform):  # type: ignore[misc]
    """Read runs of files."""

    def __init__(self, form: str, schema: pa.Schema | None) -> None:
        super().__init__()
        if form not in _FORMS:
            raise ValueError(f"as_={form!r}: expected {', '.join(map(repr, _FORMS))}")
        self._form, self._rows, self._type = form, None, pa.RecordBatch
        if form == "rows":
            assert schema is not None
            self._rows = RowForm(schema)
            self._type = self._rows.element_type
        elif form == "pandas":
            import pandas as pd

            self._type = pd.DataFrame

    def expand(self, pcoll: Any) -> Any:
        read = beam.ParDo(_ReadChunks(self._form, self._rows)).with_output_types(self._type)
        return pcoll | beam.Reshuffle() | "Read" >> read


class _ChunkRanges(RestrictionProvider):  # type: ignore[misc]
    """Ranges of the chunks of a run."""

    def initial_restriction(self, element: Scan) -> OffsetRange:
        return OffsetRange(0, len(_chunks(element)))

    def create_tracker(self, restriction: OffsetRange) -> OffsetRestrictionTracker:
        return OffsetRestrictionTracker(restriction)

    def split(self, element: Scan, restriction: OffsetRange) -> Iterator[OffsetRange]:
        return restriction.split(_FIRST_CHUNKS)

    def restriction_size(self, element: Scan, restriction: OffsetRange) -> int:
        return restriction.size() * min(_CHUNK_BYTES, element.bytes or _CHUNK_BYTES)


class _ReadChunks(beam.DoFn):  # type: ignore[misc]
    def __init__(self, form: str, rows: RowForm | None) -> None:
        super().__init__()
        self._form, self._rows = form, rows

    def process(
        self,
        element: Scan,
        tracker: Any = beam.DoFn.RestrictionParam(_ChunkRanges()),  # noqa: B008
    ) -> Iterator[Any]:
        chunks, number = _chunks(element), tracker.current_restriction().start
        while tracker.try_claim(number):
            chunk = chunks[number]
            with chunk.open() as batches:
                for batch in batches:
                    _counter("rows_read").inc(batch.num_rows)
                    yield from self._elements(batch)
            _counter("bytes_read").inc(chunk.bytes or 0)
            _counter("files_read").inc(chunk.files_begun)
            number += 1

    def _elements(self, batch: pa.RecordBatch) -> Iterator[Any]:
        if self._rows is not None:
            yield from self._rows.rows(batch)
        else:
            yield to_pandas(pa.Table.from_batches([batch])) if self._form == "pandas" else batch


def _runs_of_files(scan: Scan) -> list[Scan]:
    """The parts of a query for elements: a large file each, or several small ones.

    ValueError if it cannot be split.
    """
    scan = scan.absolute()
    if scan.options.threads is None:
        scan = scan.with_options(threads=1)  # a runner has a bundle for each core
    return scan.group_files()


def _chunks(run: Scan) -> list[Scan]:
    """The chunks of a run: the same in each process, as they follow from the sizes of the files."""
    return run.split(None, _CHUNK_BYTES)


def _name_of(paths: list[str]) -> str:
    first = printable(paths[0], _LABEL) if paths else "no files"
    return first if len(paths) < 2 else f"{first}, {len(paths) - 1} more"


# ---- writing


class WriteTable(beam.PTransform):  # type: ignore[misc]
    """Write a bounded PCollection as a dataset, which appears complete when all bundles are written, or not at all.

    >>> import apache_beam as beam, tfrecord_io as tfr
    >>> from tfrecord_io.beam import WriteTable
    >>> with beam.Pipeline() as pipeline:
    ...     rows = pipeline | beam.Create([1, 2, 3]) | beam.Map(lambda n: {"n": n})
    ...     _ = rows | WriteTable("numbers/", schema={"n": "int64"}, shards=2)
    >>> sorted(tfr.read_table("numbers/")["n"].to_pylist())
    [1, 2, 3]

    Elements are record batches, tables of pyarrow or DataFrames; or rows: of a PCollection with a Beam schema, as
    NamedTuples and `apache_beam.Row` have it, or with ``schema=``, for which a dict is a row, too. Bundles are written
    under hidden names, and published once however often the runner repeats them. A pipeline that fails leaves hidden
    files: the process that ran it removes them at its end if it also began the write, as that of the DirectRunner does;
    ``tfr clean`` removes those of other runners.

    The PCollection that it returns has the `WriteReport`.

    Parameters
    ----------
    path : str, PathLike or URL
        A directory that all workers can reach, or ``name@*``.
    shards : int, optional
        The number of shards, at most; rows are grouped for them. By default there is one for each bundle with rows.
    **keywords
        Those of `tfrecord_io.write_tfrecord`, such as ``schema``, ``partition_by``, ``mode`` and ``compression``.

    Raises
    ------
    ValueError
        The PCollection is unbounded.
    FileExistsError
        While the pipeline runs: the dataset exists, and the mode is not "overwrite" or "append".
    """

    def __init__(self, path: Any, *, shards: int | None = None, **keywords: Any) -> None:
        super().__init__()
        check_integer("shards", shards, 1, optional=True)
        options = WriteOptions.from_keywords(keywords)
        self._path, self._shards = DistributedWriter.check_path(path, options), shards
        self._options = options if options.schema is None else _with_schema(options, options.schema)

    def default_label(self) -> str:
        return f"WriteTable({printable(os.fspath(self._path), _LABEL)})"

    def expand(self, pcoll: Any) -> Any:
        if not pcoll.is_bounded:
            raise ValueError("WriteTable publishes all rows at once: the PCollection must be bounded")
        options = self._options
        if options.schema is None and (schema := arrow_schema(pcoll.element_type)) is not None:
            options = _with_schema(options, schema)
        once = pcoll.pipeline | "Once" >> beam.Create([None])
        begin = _Begin(self._path, options)
        writer = AsSingleton(once | "Begin" >> beam.Map(begin))
        rows = pcoll | "Window" >> beam.WindowInto(GlobalWindows())
        if self._shards is None:
            parts = rows | "Write" >> beam.ParDo(_WriteBundle(), writer)
        else:
            numbered = beam.typehints.Tuple[int, pcoll.element_type or Any]  # batches keep their coder
            assign = beam.ParDo(_AssignShards(self._shards)).with_output_types(numbered)
            parts = rows | "Assign" >> assign | beam.GroupByKey() | "Write" >> beam.Map(_write_shard, writer)
        return once | "Publish" >> beam.Map(_publish, writer, AsIter(parts)).with_output_types(WriteReport)


def _with_schema(options: WriteOptions, schema: Any) -> WriteOptions:
    """The options with a schema that can be pickled, as tensor types cannot."""
    return options.changed(schema=_parse_schema(schema))


def _parse_schema(schema: Any) -> Any:
    import tfrecord_io as tfr

    return tfr.Schema.parse(schema)


_made: set[str] = set()  # writes of pipelines that this process has made,
_begun: dict[str, DistributedWriter] = {}  # and those that it has also begun, and not published


class _Begin:
    """Begins the write when the pipeline runs, as it may run several times."""

    def __init__(self, path: Any, options: WriteOptions) -> None:
        self._path, self._options = path, options
        self._token = secrets.token_hex(8)
        _made.add(self._token)

    def __call__(self, _: None) -> DistributedWriter:
        writer = DistributedWriter.begin(self._path, self._options)
        if self._token in _made:
            _begun[writer.id] = writer
        return writer


@atexit.register
def _abort_begun() -> None:
    """Remove leftovers of pipelines that ran in this process."""
    for writer in _begun.values():
        with suppress(OSError, RuntimeError, TFRecordError):  # threads cannot be started any more
            writer.abort()


class _Elements:
    """Writes elements to a part: tables as they are, rows in groups."""

    def __init__(self, writer: DistributedWriter, task: int) -> None:
        self._part, self._has_schema = writer.open_part(task), writer.options.schema is not None
        self._rows: list[dict[str, Any]] = []

    def write(self, element: Any) -> None:
        if not isinstance(element, dict) and not hasattr(element, "_asdict"):
            self._part.write(element)
            return
        if not self._has_schema:
            advice = "pass schema=, or declare a schema, as by beam.Row or with_output_types"
            raise TypeError(f"rows have no schema: bundles could not agree on types; {advice}")
        self._rows.append(row_values(element))
        if len(self._rows) == _ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._part.write_rows(self._rows)
            self._rows = []

    def close(self) -> WrittenPart:
        self._flush()
        part = self._part.close()
        self._part.commit()
        return part

    def discard(self) -> None:
        self._part.discard()


class _WriteBundle(beam.DoFn):  # type: ignore[misc]
    """Stages a part for each bundle."""

    _elements: _Elements | None = None

    def start_bundle(self) -> None:
        self.teardown()  # of a bundle that failed

    def process(self, element: Any, writer: DistributedWriter) -> None:
        if self._elements is None:
            self._elements = _Elements(writer, secrets.randbelow(100_000))  # makes names of staged files rarer
        self._elements.write(element)

    def finish_bundle(self) -> Iterator[Any]:
        if self._elements is not None:
            part = self._elements.close()
            self._elements = None
            yield WindowedValue(part, MIN_TIMESTAMP, [GlobalWindow()])

    def teardown(self) -> None:
        if self._elements is not None:
            self._elements.discard()
            self._elements = None


class _AssignShards(beam.DoFn):  # type: ignore[misc]
    """Elements with the numbers of shards, in turn from any one on."""

    def __init__(self, shards: int) -> None:
        super().__init__()
        self._shards, self._next = shards, 0

    def start_bundle(self) -> None:
        self._next = secrets.randbelow(self._shards)

    def process(self, element: Any) -> Iterator[tuple[int, Any]]:
        yield self._next, element
        self._next = (self._next + 1) % self._shards


def _write_shard(shard: tuple[int, Iterable[Any]], writer: DistributedWriter) -> WrittenPart:
    elements = _Elements(writer, shard[0])
    try:
        for element in shard[1]:
            elements.write(element)
        return elements.close()
    except BaseException:
        elements.discard()
        raise


def _publish(_: None, writer: DistributedWriter, parts: Iterable[WrittenPart]) -> WriteReport:
    """Publish the parts, in the same order in each attempt; tasks of bundles have numbers by chance."""
    report = writer.commit(WrittenPart.number(parts), is_retried=True)
    _begun.pop(writer.id, None)
    for name, count in (("rows", report.records), ("bytes", report.bytes), ("files", len(report.files))):
        _counter(f"{name}_written").inc(count)
    return report
