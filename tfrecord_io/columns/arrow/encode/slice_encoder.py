"""Encode batches in slices, and these in pieces of frames.

A batch is split twice. The columns of a *slice* are converted together, as that costs time for each column; its rows
are encoded in *pieces* that stay in the processor's cache until they are written. A piece is written to memory that was
used for another one before, as the first use of a page costs more than encoding its content.

Tests: tests/write/test_writer_slices.py, tests/write/test_writer_forms.py and tests/laws/test_written_bytes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter, mul
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import LIMITS, MIB, MessageType, Task, WriteOptions, for_cli
from tfrecord_io.bytes import ColumnBuffers, Engine, FrameHeader, Layout, get_engine
from tfrecord_io.columns.arrow.buffers import is_same_memory, value_bytes
from tfrecord_io.columns.arrow.encode.encode_plan import WritePlan, plan_writing
from tfrecord_io.columns.arrow.encode.lossless_values import Rounding, refuse_invalid_categories
from tfrecord_io.columns.schema.column_features import LIST, Leaf
from tfrecord_io.columns.schema.embedded import dictionary_at, embedded_dictionaries, embedded_schema, pack
from tfrecord_io.columns.schema.tensor_types import IMAGE_ENCODINGS, TENSOR_ENCODINGS, encoding_rules, written_encodings
from tfrecord_io.columns.schema.types import has_dictionary, restored_type, uncommon_columns
from tfrecord_io.errors import EncodeError

if TYPE_CHECKING:
    from tfrecord_io.columns.arrow.messages.message_tree import MessageField

_FEATURE_BYTES = 10  # bytes of an entry with one value, besides name and value
_SLICE_BYTES = 4 * MIB  # of Arrow data, about
_KEPT_BYTES = 4 * MIB  # memory of larger pieces is not kept for the next one

_NULLS = attrgetter("null_count")  # of an array

P = TypeVar("P")
Prepare = Callable[[Any, int, int], P]
"""Makes a piece of frames, their number and the row of the first one."""
_BYTES = {  # whether they are text, and whether their offsets have 64 bits
    pa.lib.Type_BINARY: (False, False),
    pa.lib.Type_LARGE_BINARY: (False, True),
    pa.lib.Type_STRING: (True, False),
    pa.lib.Type_LARGE_STRING: (True, True),
}


class PieceMemory:
    """Memory for pieces, used again and again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._free: list[Any] = []

    def take(self) -> Any:
        try:
            return self._free.pop()  # the last one, which may still be in a cache
        except IndexError:
            return self._engine.memory()

    def give_back(self, memory: Any) -> None:
        """Let the next piece overwrite the one in `memory`."""
        if memory is not None and memory.capacity <= _KEPT_BYTES:
            self._free.append(memory)


class EncodedPiece(NamedTuple, Generic[P]):
    """A piece with its memory, and, in a slice's first piece, the counts of values rounded in the slice."""

    piece: P
    memory: Any
    rounding: Rounding | None


class Slice(NamedTuple):
    """Rows whose columns are converted together, by the first thread that encodes some of them."""

    encoder: Task[Engine.Encoder]  # which counts `rounding`
    row: int  # the first, whose payload gets the prefix
    prefix: bytes
    rounding: Rounding

    def encode(self, begin: int, end: int, pool: PieceMemory, prepare: Prepare[P]) -> EncodedPiece[P]:
        """Encode rows [begin, end) of the slice."""
        encoder, memory = self.encoder.result(), pool.take()
        framed, rows = encoder.encode(begin, end, prefix=b"" if begin else self.prefix, memory=memory)
        if begin + rows < end:
            advice = "write its large columns to separate files"
            raise EncodeError(LIMITS.too_large(), record=self.row + begin + rows, hint=advice)
        return EncodedPiece(prepare(framed, rows, self.row + begin), memory, None if begin else self.rounding)


def dictionaries(batch: pa.RecordBatch, plan: WritePlan) -> dict[str, pa.Array]:
    """The categories of a batch's dictionary columns by feature, for the embedded schema."""
    categories = {}
    for number in uncommon_columns(plan.schema):
        for leaf in plan.columns[number]:
            if has_dictionary(leaf.type):
                values = dictionary_at(batch.column(number), leaf.path)
                if not is_same_memory(values, plan.checked.get(leaf.feature)):  # slices share a dictionary
                    _check_categories(values, leaf)
                    plan.checked[leaf.feature] = values
                categories[leaf.feature] = values.cast(restored_type(values.type))
    return categories


def _check_categories(values: pa.Array, leaf: Leaf) -> None:
    refuse_invalid_categories(values, leaf.feature)
    from tfrecord_io.columns.arrow.casts import collide_as_float32

    if leaf.encoding == LIST and collide_as_float32(values):
        reason = "two of its categories are equal as float32, so their rows could not be distinguished"
        raise EncodeError(
            reason,
            feature=leaf.feature,
            hint='float64="raw" keeps their bits',
            hint_cli="--float64 raw keeps their bits",
        )


class SliceEncoder:
    """Splits batches of one schema into tasks; each takes a `PieceMemory` and a `Prepare`."""

    def __init__(self, plan: WritePlan, record_type: object) -> None:
        self._engine, self.plan = get_engine(), plan
        self._embedded: dict[str, pa.Array] = {}  # categories in the schema embedded with the first rows
        self._fields = _fields_of(record_type, plan.schema) if isinstance(record_type, MessageType) else None
        self._as_bytes, self._sequence = record_type == "bytes", record_type == "sequence_example"
        self._read_as(plan.schema)
        self._names, self._absent = 0, list[int]()  # bytes of all names; bytes that a record without a column lacks
        for leaves, type_ in zip(plan.columns, plan.schema.types, strict=False):  # messages have no leaves
            names = sum(len(leaf.feature) + _FEATURE_BYTES for leaf in leaves)
            self._absent.append(names + (type_.bit_width // 8 if t.is_primitive(type_) else 0))
            self._names += 0 if self._as_bytes else names

    @classmethod
    def from_options(cls, schema: pa.Schema, options: WriteOptions) -> Self:
        """The encoder of a writer with these options, for data of this schema."""
        if isinstance(options.record_type, MessageType):
            plan = WritePlan(schema, (), (), (), float64=options.float64, rounding=Rounding(), checked={})
            return cls(plan, options.record_type)
        binary = (t.is_binary, t.is_large_binary, t.is_fixed_size_binary, t.is_binary_view)
        is_binary = len(schema) == 1 and any(check(schema.field(0).type) for check in binary)
        if options.record_type == "bytes" and not is_binary:
            types = ", ".join(map(str, schema.types)) or "none"
            reason = f"records of bytes are the values of one binary column, got {types}"
            raise EncodeError(reason, hint="select the column")
        plan = plan_writing(
            schema,
            column_encoding=options.column_encoding,
            float64=options.float64,
            sequence=options.record_type == "sequence_example",
        )
        return cls(plan, options.record_type)

    @staticmethod
    def check_encodings(column_encoding: Mapping[str, str]) -> None:
        """Raise ValueError for an unknown or adaptive encoding in a writer's ``column_encoding=``."""
        for column, name in column_encoding.items():
            if name not in IMAGE_ENCODINGS and (not TENSOR_ENCODINGS.has(name) or encoding_rules(name).adaptive):
                names = ", ".join(map(repr, written_encodings()))
                error = ValueError(f"column_encoding={ {column: name}!r}: expected one of {names}")
                raise for_cli(error, f"--column-encoding {column}={name}: expected one of {names}")

    def embed(self, batch: pa.RecordBatch) -> bytes:
        """The packed schema to embed with the first rows, to whose categories later rows are held."""
        listed = dictionaries(batch, self.plan)
        self._embedded = embedded_dictionaries(listed)
        return pack(embedded_schema(self.plan.schema), listed)

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise EncodeError if rows have categories that the embedded schema does not list."""
        if not self._embedded:
            return
        from tfrecord_io.columns.arrow.casts import has_all

        later, ordered = dictionaries(batch, self.plan), self.plan.ordered
        for name, first_categories in self._embedded.items():
            if not has_all(first_categories, later[name], ordered=name in ordered):
                reason = "it has categories that the embedded schema, written with the first rows, does not list"
                if has_all(first_categories, later[name]):
                    reason = "its ordered categories are in a different order from the first rows"
                advice = "unify the categories (pyarrow.Table.unify_dictionaries), or cast them to plain values"
                raise EncodeError(reason, feature=name, hint=advice)

    def split(
        self, batch: pa.RecordBatch, row: int, begin: Callable[[pa.RecordBatch, int], bytes]
    ) -> Iterator[Callable[[PieceMemory, Prepare[P]], EncodedPiece[P]]]:
        """The tasks that encode a batch, whose first row is `row`.

        `begin` takes each slice and its first row, before the slice's tasks, and returns the prefix of that payload.
        """
        if not batch.schema.equals(self._schema):  # offsets of another width, or views
            self._read_as(batch.schema)
        size = sum(map(value_bytes, map(batch.column, self._others)))  # Arrow takes long to count those of many columns
        width = (size if self._reader is None else size + self._reader.value_bytes(batch)) // max(1, len(batch)) + 1
        absent = sum(map(mul, self._absent, map(_NULLS, batch.columns))) // max(1, len(batch))
        record = width + self._names - absent + FrameHeader.FRAME_BYTES
        rows = max(1, min(LIMITS.piece_bytes // record, _SLICE_BYTES // width))
        rows -= rows % 64 if rows > 64 else 0  # so that slices begin with a byte of their bitmaps
        slice_rows = rows * max(1, _SLICE_BYTES // (width * rows))
        for first in range(0, len(batch), slice_rows):
            part = batch.slice(first, slice_rows) if slice_rows < len(batch) else batch
            at, rounding = row + first, Rounding()
            encoder = Task(partial(self._convert, self._reader, part, at, rounding))
            piece = Slice(encoder, at, begin(part, at), rounding)
            for i in range(0, len(part), rows):
                yield partial(piece.encode, i, min(i + rows, len(part)))

    def _read_as(self, schema: pa.Schema) -> None:
        """Read columns of these types: some by the engine, which trusts the types, and the others."""
        has_columns = self._fields is None and not self._as_bytes
        forms = plain_forms(self.plan._replace(schema=schema)) if has_columns else [None] * len(schema)
        self._schema, self._reader = schema, self._engine.arrow_reader(forms) if any(forms) else None
        self._others = [at for at, form in enumerate(forms) if form is None or self._reader is None]

    def _convert(
        self, reader: Engine.ArrowReader | None, batch: pa.RecordBatch, row: int, rounding: Rounding
    ) -> Engine.Encoder:
        if self._as_bytes or self._fields is not None:
            from tfrecord_io.columns.arrow.messages.encode_messages import MessageEncoder, PayloadEncoder

            if self._fields is None:
                return PayloadEncoder(self._engine, batch, row)
            rounded = None if self.plan.float64 == "error" else rounding.add
            return MessageEncoder(self._fields, batch, row=row, engine=self._engine, rounded=rounded)
        arrow = None if reader is None else reader.read(batch)
        plan, read_columns = self.plan._replace(rounding=rounding), () if arrow is None else arrow.taken
        columns: Sequence[ColumnBuffers | int] = range(len(read_columns))  # if the engine takes all of them from Arrow
        if not (read_columns and all(read_columns)):
            from tfrecord_io.columns.arrow.encode import encode_columns

            columns = encode_columns.encode_columns(batch, plan, row_base=row, taken=read_columns)
        return self._engine.encoder(columns, sequence=self._sequence, arrow=arrow)


def plain_forms(plan: WritePlan) -> list[Engine.PlainForm | None]:
    """The form of each column whose rows are single values that are stored as they are or widened to int64, else None.

    Values of the other types are checked, rounded or converted by `encode_columns`.
    """
    forms: list[Engine.PlainForm | None] = []
    for field, parts, in_steps, tree in zip(plan.schema, plan.columns, plan.in_steps, plan.trees, strict=True):
        plain = tree is None and not in_steps and parts[0].layout is Layout.SCALAR and parts[0].encoding == LIST
        forms.append(_form(parts[0].feature, field.type) if plain else None)
    return forms


def _form(feature: str, type_: pa.DataType) -> Engine.PlainForm | None:
    if type_.id in _BYTES:
        is_text, large = _BYTES[type_.id]
        return Engine.PlainForm.of_bytes(feature, is_text=is_text, large=large)
    if t.is_float32(type_):
        return Engine.PlainForm.of_floats(feature)
    if t.is_boolean(type_):
        return Engine.PlainForm.of_bools(feature)
    is_number = t.is_integer(type_) and not t.is_uint64(type_)
    if is_number or t.is_timestamp(type_) or t.is_duration(type_) or t.is_date32(type_):
        return Engine.PlainForm.of_integers(feature, type_.bit_width, signed=not t.is_unsigned_integer(type_))
    return None


def _fields_of(message: MessageType, schema: pa.Schema) -> Sequence[MessageField]:
    """How the fields of messages are written; protobuf is imported where there are messages."""
    from tfrecord_io.columns.arrow.messages.encode_messages import encoded_fields

    return encoded_fields(message, schema)
