"""The compiled engine: the kernel's arrays as `ColumnBuffers`, and answers to its questions about names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, cast

import numpy as np

from tfrecord_io.base import LIMITS
from tfrecord_io.bytes._native import _kernel
from tfrecord_io.bytes.engine.contract import (
    Array,
    ArrowColumns,
    Checks,
    ColumnBuffers,
    ColumnNames,
    Engine,
    Fault,
    FaultCode,
    FeatureColumns,
    FeatureName,
    FieldForm,
    FieldValues,
    FileView,
    Frames,
    GatheredValues,
    KeyTable,
    Members,
    MessageFields,
    ObjectForm,
    PlainForm,
    Plan,
    Progress,
    RecordCounts,
)
from tfrecord_io.bytes.format.feature_types import Kind, Layout

_UNKNOWN = {"discover": 0, "skip": 1, "fault": 2}
_STOP_NEW_NAMES = 48
_KINDS, _LAYOUTS = (tuple(map(enum, range(len(enum)))) for enum in (Kind, Layout))
_MOST_NAMES = 1000  # that a decoder of single records remembers
_MOST_KEPT_BYTES = 2**40
_MOST_EXPANSION = 2**60  # no memory is larger, and the kernel's sums do not overflow

_KEPT_BYTES, _DEFAULT_KEPT_BYTES = "TFRECORD_IO_KEPT_BYTES", 256 << 20  # dev/decisions/kept-memory.md


# So many bytes of released memory the kernel keeps for a second, to use them again.
_kept = os.environ.get(_KEPT_BYTES, str(_DEFAULT_KEPT_BYTES))
if not _kept.isdecimal() or int(_kept) > _MOST_KEPT_BYTES:
    raise ValueError(f"{_KEPT_BYTES}={_kept!r}: expected a number of bytes from 0 to {_MOST_KEPT_BYTES}")
_kernel.keep_pages(int(_kept))


def _as_array(data: Any) -> Any:
    return data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)


def _fault(fields: dict[str, Any] | None, record: int = 0) -> Fault | None:
    if fields is None:
        return None
    fault = Fault(**fields)
    name = None if fault.feature is None else cast(bytes, fault.feature).decode("utf-8", "replace")
    got = fault.got % 2**64 if fault.code == FaultCode.LENGTH_TOO_LARGE else fault.got  # the kernel's are signed
    return fault._replace(code=FaultCode(fault.code), record=record + fault.record, feature=name, got=got)


def _column(name: str, fields: dict[str, Any]) -> ColumnBuffers:
    steps = fields["steps"]
    fields["steps"] = None if steps is None else _column(name, steps)
    fields["others"] = tuple(_column(name, part) for part in sorted(fields["others"], key=itemgetter("kind")))
    fields["kind"], fields["layout"] = _KINDS[fields["kind"]], _LAYOUTS[fields["layout"]]
    return ColumnBuffers(name, **fields)


class NativeColumns(FeatureColumns):
    """See `tfrecord_io.bytes.engine.contract.FeatureColumns`."""

    def __init__(self, names: ColumnNames, kernel: _kernel.TakenColumns) -> None:
        self._names, self._index = names.names, names.index
        self._kernel = kernel
        self._made: dict[int, ColumnBuffers] = {}

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __contains__(self, feature: object) -> bool:
        return feature in self._index

    def __getitem__(self, feature: str) -> ColumnBuffers:
        at = self._index[feature]
        if at not in self._made:
            self._made[at] = _column(self._names[at], self._kernel.column(at))
        return self._made[at]

    def facts(self) -> Array:
        return np.asarray(self._kernel.facts()).reshape(-1, len(FeatureColumns.Fact))

    def distinct_facts(self) -> bytes:
        return self._kernel.shown()

    def arrow_arrays(self, forms: tuple[Array, Array], features: Iterable[str]) -> tuple[object, int, list[int]]:
        indices = list(map(self._index.get, features, repeat(-1)))
        owner, batch, addresses = self._kernel.arrays(*forms, np.array(indices, np.int64))
        return owner, batch, addresses


class NativeDecoder:
    """See `tfrecord_io.bytes.engine.contract.EngineDecoder`."""

    kept: Array | None = None

    def __init__(self, plan: Plan) -> None:
        self._kernel = _kernel.Decoder(
            columns=list(plan.columns),
            unknown=_UNKNOWN[plan.unknown],
            text=plan.text,
            record_type=plan.record_type,
            check_crc=plan.check_crc,
            max_record_bytes=plan.max_record_bytes,
            max_features=plan.max_features,
            max_expansion=-1 if plan.max_expansion is None else min(plan.max_expansion, _MOST_EXPANSION),
            names_in_both=plan.names_in_both,
            splits=plan.splits,
            keeps_lengths=plan.keep_lengths,
            typed_empties=plan.typed_empties,
        )
        for name in plan.ignored:
            self._kernel.leave_out(name.encode(), False)
            self._kernel.leave_out(name.encode(), True)
        self.plan = plan
        self.new_names: list[FeatureName] = []
        self._kept_names = 0  # of them, those of records that were decoded
        self._names: ColumnNames | None = None  # None: not those of the kernel
        self.expect, self.accept_embedded = self._kernel.expect, self._kernel.accept_embedded
        self.complete, self.clear = self._kernel.complete, self._kernel.clear

    rows, value_bytes, integer_bytes, column_bytes, sequence = (
        property(attrgetter(f"_kernel.{name}"))
        for name in ("rows", "value_bytes", "integer_bytes", "column_bytes", "sequence")
    )

    def lengths(self, begin: int = 0) -> Array:
        return np.asarray(self._kernel.lengths(begin))

    @property
    def counts(self) -> RecordCounts:
        return RecordCounts(self._kernel.seen, self._kernel.foreign, self._kernel.nested)

    def feed(
        self,
        data: Any,
        begin: int = 0,
        *,
        max_records: int = -1,
        max_bytes: int = -1,
        final: bool = True,
        kept: tuple[Array, Array] | None = None,
    ) -> Progress:
        block = _as_array(data)
        records, at = 0, begin
        while True:
            if kept is None:
                left = max_records if max_records < 0 else max_records - records
                done, consumed, full, raw = self._kernel.feed(block, at, left, max_bytes, final)
            else:
                lengths, mask = kept
                done, consumed, full, raw = self._kernel.feed_kept(block, at, lengths[records:], mask[records:])
            base, records, at = records, records + done, at + consumed
            if done:
                self._kept_names = len(self.new_names)
            if raw is None or raw["code"] < _STOP_NEW_NAMES:
                if raw is not None:
                    del self.new_names[self._kept_names :]
                return Progress(records, at - begin, raw and _fault(raw, base), full=full)
            if raw["code"] == _STOP_NEW_NAMES:
                if (unknown := self._add_names()) is not None:
                    del self.new_names[self._kept_names :]
                    return Progress(records, at - begin, Fault(FaultCode.UNKNOWN_FEATURE, records, at, feature=unknown))
            elif self.plan.stop_at_embedded:
                return Progress(records, at - begin, embedded=tuple(self._kernel.embedded()))
            else:
                self._kernel.accept_embedded()

    def feed_kept(self, data: Any, begin: int, lengths: Array, kept: Array) -> Progress:
        return self.feed(data, begin, kept=(lengths, kept))

    def feed_file(
        self, file: FileView, begin: int, end: int, *, max_records: int = -1, max_bytes: int, keeps: bool = False
    ) -> int:
        return self._kernel.feed_file(*file, begin, end, max_records, max_bytes, keeps)

    def _add_names(self) -> str | None:
        """Tell the kernel which new names are selected; return the first one that the plan refuses, if any."""
        new = self._kernel.new_names()
        wanted = self._select_names(new)
        if self.plan.unknown == "fault" and (wanted is None or True in wanted):
            refused = 0 if wanted is None else wanted.index(True)
            self._add(new[:refused], [False] * refused)
            return new[refused][0]
        self._add(new, wanted)
        return None

    def _select_names(self, names: Sequence[FeatureName]) -> list[bool] | None:
        """A boolean for each name, true if it is selected; None: all are."""
        select = self.plan.select
        return None if select is None else [select(name) for name, _ in names]

    def _add(self, names: list[FeatureName], wanted: list[bool] | None) -> None:
        self._kernel.add_names(None if wanted is None else names, wanted, provisional=True)
        self.new_names[self._kept_names :] = names  # an Example after all is asked about again
        self._names = None

    def know(self, names: Iterable[FeatureName]) -> None:
        new_names = list(names)
        self._kernel.add_names(new_names, self._select_names(new_names), provisional=False)

    def take(self) -> list[ColumnBuffers]:
        return list(self.take_columns().values())

    def take_columns(self) -> NativeColumns:
        columns = self._kernel.take()
        if self._names is None or len(self._names.names) != len(columns):  # a faulty record's names are removed again
            has_new_only = not self.plan.columns and self.plan.select is None  # columns: one for each new name
            are_new = has_new_only and len(self.new_names) == len(columns)
            self._names = ColumnNames(self.new_names if are_new else self._kernel.names())
        return NativeColumns(self._names, columns)

    def append(self, part: NativeDecoder, begin: int, end: int, payload_bytes: int) -> bool:
        return not part.new_names and self._kernel.append(part._kernel, begin, end, payload_bytes)


class NativeObjectDecoder:
    """See `tfrecord_io.bytes.engine.contract.ObjectDecoder`."""

    def __init__(self, plan: Plan, forms: Sequence[ObjectForm]) -> None:
        from tfrecord_io.bytes.engine.numpy_output import NUMPY_API

        self._forms = _kernel.RowForms(list(forms), NUMPY_API)
        self._decoder = NativeDecoder(plan._replace(stop_at_embedded=True))

    def row(self, data: Any) -> dict[str, Any] | None:
        while True:
            result = _kernel.decode_row(self._decoder._kernel, data, self._forms)
            if type(result) is dict:
                return result
            if result != _STOP_NEW_NAMES or self._decoder._add_names() is not None:
                return None
            if len(self._decoder.new_names) > _MOST_NAMES:  # of many records, which count for each one alone
                self._decoder = NativeDecoder(self._decoder.plan)
                return None


def _wide(offsets: Any) -> Any:
    return None if offsets is None else np.ascontiguousarray(offsets, np.int64)


def _source(column: ColumnBuffers) -> ColumnBuffers:
    """The column with all arrays that the kernel reads, in the form to be borrowed."""
    steps = None if column.steps is None else _source(column.steps)
    values = column.values
    if values is None and column.kind is not Kind.NONE:
        values = np.empty(0, {Kind.INT64: np.int64, Kind.FLOAT: np.float32, Kind.BYTES: np.uint8}[column.kind])
    offsets, value_offsets = _wide(column.offsets), _wide(column.value_offsets)
    header = column.name, column.kind, column.layout, column.rows, column.null_count, column.validity
    return ColumnBuffers(*header, offsets, value_offsets, values, steps=steps)


class NativeEncoder:
    """See `tfrecord_io.bytes.engine.contract.Encoder`."""

    def __init__(self, columns: Sequence[ColumnBuffers | int], *, sequence: bool = False, arrow: Any = None) -> None:
        self._arrow = arrow  # the kernel borrows its arrays, and those of the columns
        self._sources = [column if isinstance(column, int) else _source(column) for column in columns]
        self._kernel = _kernel.Encoder(self._sources, sequence, arrow)

    def encode(self, begin: int, end: int, *, prefix: bytes = b"", memory: Any = None) -> tuple[Any, int]:
        return self._kernel.encode(begin, end, prefix, memory)


class NativeArrowReader:
    """See `tfrecord_io.bytes.engine.contract.ArrowReader`."""

    def __init__(self, forms: Sequence[PlainForm | None]) -> None:
        self._forms = _kernel.PlainForms(list(forms))

    def read(self, batch: Any) -> ArrowColumns:
        _, array = batch.__arrow_c_array__()
        return _kernel.ArrowColumns(array, self._forms)

    def value_bytes(self, batch: Any) -> int:
        _, array = batch.__arrow_c_array__()
        return self._forms.value_bytes(array)


class NativeEngine(Engine):
    """See `tfrecord_io.bytes.engine.contract.Engine`."""

    name = "native"
    decoder, row_decoder, arrow_reader, encoder = NativeDecoder, NativeObjectDecoder, NativeArrowReader, NativeEncoder
    memory = _kernel.Memory

    def crc32c(self, data: Any, value: int = 0) -> int:
        return _kernel.crc32c(_as_array(data), value)

    def crc32c_combine(self, first: int, second: int, second_bytes: int) -> int:
        return _kernel.crc32c_combine(first, second, second_bytes)

    def key_table(self, data: Any, offsets: Any, valid: Any) -> KeyTable:
        return _kernel.KeyTable(data, offsets, valid)

    def scan(
        self,
        data: Any,
        begin: int = 0,
        *,
        max_records: int = -1,
        checks: Checks = Checks.ALL,
        max_record_bytes: int = LIMITS.MAX_RECORD_BYTES,
        final: bool = True,
    ) -> tuple[Frames, Fault | None]:
        *frames, raw = _kernel.scan(_as_array(data), begin, max_records, checks, max_record_bytes, final)
        return Frames(*frames), _fault(raw)

    def find_header(self, data: Any, begin: int = 0, *, max_record_bytes: int = LIMITS.MAX_RECORD_BYTES) -> int:
        return int(_kernel.find_header(_as_array(data), begin, max_record_bytes))

    def payloads(self, data: Any, frames: Frames) -> Array:
        return np.asarray(_kernel.payloads(_as_array(data), frames.starts, frames.lengths))

    def frame(self, payloads: Sequence[Any]) -> bytes:
        lengths = np.fromiter((memoryview(p).nbytes for p in payloads), np.int64, len(payloads))
        data: bytes = self.frame_extents(b"".join(payloads), np.cumsum(lengths) - lengths, lengths, 1).tobytes()
        return data

    def members(self, data: Any, frames: Frames, most: int) -> tuple[Members, Fault | None]:
        *arrays, raw = _kernel.members(_as_array(data), frames.starts, frames.lengths, most)
        return Members(*arrays), _fault(raw)

    def message_fields(
        self, data: Any, extents: Frames, rows: Array, forms: Sequence[FieldForm]
    ) -> tuple[MessageFields, Fault | None]:
        numbers = np.array(forms, np.int64).ravel()
        arrays, unknown, raw = _kernel.message_fields(_as_array(data), extents.starts, extents.lengths, rows, numbers)
        return MessageFields([FieldValues(*values) for values in arrays], unknown), _fault(raw)

    def frame_extents(self, data: Any, starts: Array, lengths: Array, parts: int) -> Array:
        return np.asarray(_kernel.frame_extents(_as_array(data), starts, lengths, parts))

    def frame_window(self, data: Any, starts: Array, lengths: Array, skip: int, out: Array) -> int:
        return int(_kernel.frame_window(_as_array(data), starts, lengths, skip, out))

    def gather_objects(self, cells: Array, nan_is_missing: bool) -> GatheredValues | bool | None:
        from tfrecord_io.bytes.engine.numpy_output import NUMPY_API

        place = cells.__array_interface__["data"][0]
        gathered: Any = _kernel.gather_objects(NUMPY_API, place, cells.strides[0], len(cells), nan_is_missing)
        return GatheredValues(*gathered) if isinstance(gathered, tuple) else gathered

    def first_fit(self, lengths: Array, capacity: Array, bins: int) -> tuple[Array, list[int]]:
        bin_of_row = np.zeros(len(lengths), np.int64)
        lengths, capacity = (np.ascontiguousarray(numbers, np.int64) for numbers in (lengths, capacity))
        return bin_of_row, _kernel.first_fit(lengths, capacity, bins, bin_of_row)

    def exchange(self, draws: Sequence[Array], sizes: Array) -> tuple[Array, Array]:
        drawn, slots = np.empty(sum(map(len, draws)), np.int64), np.empty(int(sizes.sum()), np.int64)
        _kernel.exchange(draws, sizes, drawn, slots)
        return drawn, slots


ENGINE = NativeEngine()
