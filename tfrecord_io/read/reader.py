"""Reading: from paths to Arrow record batches of one schema."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.arrow.decode.batch_builder import to_table
from tfrecord_io.arrow.output.to_pandas import to_pandas
from tfrecord_io.arrow.stream import BatchStream
from tfrecord_io.errors import StoppedEarlyWarning, TFRecordError, warn
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.embedded_schemas import LateSchema
from tfrecord_io.read.resolve_schema import Session
from tfrecord_io.read.row_origins import RowOrigins

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class ReadReport:
    """What a reader has read so far.

    Attributes
    ----------
    records, bytes : int
        Rows given, and uncompressed bytes of the records read.
    files : int
        Files opened.
    schema_source : str
        "schema=", "embedded", "features.json", "companions" (what stands beside bytes makes them tensors) or "inferred".
    stopped : str or None
        Why reading ended early, with ``on_error="stop"``.
    """

    records: int = 0
    bytes: int = 0
    files: int = 0
    schema_source: str = "inferred"
    stopped: str | None = None


class Reader(BatchStream):
    """Record batches of one schema from TFRecord files; made by `tfrecord_io.open_reader`.

    A context manager and an iterator, consumed once. Anything that takes ``__arrow_c_stream__`` reads from it:
    polars, DuckDB, pyarrow.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of every batch.
    report : ReadReport
    fault : Exception or None
        What stopped the reading; across ``__arrow_c_stream__`` a consumer sees only its text.
    origins : Origins
        Which records the rows given so far were.

    Parameters
    ----------
    whole, index
        See `Session`.
    session : Session, optional
        To read, instead of a new one.
    """

    _word = "reader"

    def __init__(
        self,
        path: Any,
        options: ReadOptions,
        *,
        whole: bool = False,
        index: bool = False,
        session: Session | None = None,
    ) -> None:
        super().__init__()
        self._options = options
        self._session = session or Session(path, options, whole=whole, index=index)
        self.origins = RowOrigins()
        self.report = ReadReport(schema_source=self._session.schema_source)
        self._batches: Generator[pa.RecordBatch] = self._joined()

    def __repr__(self) -> str:
        return f"<Reader of {self._session.words}>"

    def _built(self) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """(batch, whether it ends a joined one), one for each unit; then raises what stopped the reading."""
        session = self._session
        first = session.schema_source not in ("inferred", "companions")
        for unit in session.units:
            if first and unit.rows:
                session.check_record_type([unit])
                first = False
            batch, fault = session.builder.batch(unit.columns, unit.rows)
            error = unit.error
            if fault is not None:
                error = fault.error(
                    fault.reason,
                    path=unit.path,
                    record=unit.first_record + fault.row,
                    feature=fault.feature,
                    expected=fault.expected,
                    got=fault.got,
                )
            batch = session.folders.add_to(batch, [unit.file])
            if self._options.include_file_paths is not None:
                batch = batch.append_column(
                    self.schema.field(self._options.include_file_paths), pa.repeat(unit.path, len(batch))
                )
            self.report.records += len(batch)
            self.origins.add(unit.path, unit.first_record, len(batch))
            session.count(unit, len(batch))
            self.report.bytes, self.report.files = session.reader.bytes, session.reader.files
            ends, begin = unit.ends_batch, session.sources[unit.file].begin
            del unit
            yield batch, ends
            del batch  # while the next one is decoded only its user holds it
            if error is not None:
                self._stop(error.in_piece(begin) if isinstance(error, TFRecordError) else error)
                return
        session.check_counts()

    def _stop(self, error: Exception) -> None:
        self._session.units.close()
        self._session.reader.close()
        if isinstance(error, TFRecordError):
            error.records_intact = self.report.records
        if self._options.on_error == "raise":
            raise error
        self.report.stopped = str(error)
        warn(f"reading stopped early: {error}", StoppedEarlyWarning)

    def _joined(self) -> Generator[pa.RecordBatch]:
        """Batches of the size asked for: those of small files are joined."""
        held: list[pa.RecordBatch] = []
        try:
            for batch, ends in self._built():
                if len(batch):
                    held.append(batch)
                del batch
                if ends and held:
                    yield _join(held)
        except Exception as error:
            if held:
                yield _join(held)
            if isinstance(error, LateSchema):
                raise error.too_late() from None
            raise
        if held:
            yield _join(held)

    # What people call -----------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """Of every batch."""
        return self._session.schema

    def read_all(self) -> pa.Table:
        """All rows that are left, as one table.

        Raises
        ------
        TFRecordError
            With ``records_intact``, the rows before the damage.
        """
        while True:
            try:
                return to_table(self._all(), self.schema)
            except LateSchema as late:
                if self._started:
                    raise late.too_late() from None
                self._session.restart(late)
                self.report = ReadReport(schema_source=self._session.schema_source)
                self.origins = RowOrigins()

    def read_pandas(self, dtype_backend: str | None = None) -> pd.DataFrame:
        """All rows that are left, as a DataFrame; see `tfrecord_io.read_tfrecord`."""
        started = self._started
        return to_pandas(self.read_all(), dtype_backend, whole_file=self.is_one_whole_file and not started)

    def _all(self) -> list[pa.RecordBatch]:
        self._refuse_used()
        if self._started:
            return list(self)
        try:
            batches = [batch for batch, _ in self._built() if len(batch)]
        except LateSchema:
            raise
        except Exception as error:
            self._fail(error)
            raise
        self._started = self._ended = True
        return batches

    @property
    def is_one_whole_file(self) -> bool:
        """Whether all rows of one file are read: only then its RangeIndex may be theirs."""
        return len(self._session.sources) == 1 and self._options.offset == 0 and self._options.limit is None

    def close(self) -> None:
        """Close the files; reading is over."""
        self._closed = True
        self._batches.close()
        self._session.units.close()
        self._session.reader.close()


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of those in the list, which is empty afterwards: nobody but the caller holds the result."""
    joined = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    batches.clear()
    return joined
