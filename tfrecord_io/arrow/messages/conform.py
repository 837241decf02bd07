"""The columns of a table as those of a message type, without loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import bitmap_of, offset_view, valid_mask
from tfrecord_io.arrow.messages.message_tree import MessageField, is_required, message_tree
from tfrecord_io.arrow.row_fault import RowFault, first_failing
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError, SchemaError, printable, say
from tfrecord_io.options.record_types import MessageType

_INT32 = range(-(2**31), 2**31)
_CLASSES = (t.is_boolean, t.is_timestamp, t.is_duration)  # a column of such a type becomes one of the same
_LISTS = (t.is_list, t.is_large_list, t.is_fixed_size_list, t.is_map)

Rounded = Callable[[str, int], None]
"""Gets the path of a field and how many of its values were rounded to float32."""


def fields_of(type_: MessageType, schema: pa.Schema) -> list[MessageField]:
    """The fields that the columns of a schema become.

    Raises
    ------
    SchemaError
        The message does not have such a field, its type cannot be made of the column's, or a required field is not
        among them.
    """
    descriptor = type_.descriptor
    known = [field.name for field in descriptor.fields]
    for name in schema.names:
        if name not in known:
            shown = ", ".join(f"'{printable(each)}'" for each in known[:8])
            reason = f"the message '{printable(type_.name)}' has no such field"
            raise SchemaError(reason, feature=name, advice=f"leave the column out; it has: {shown}")
    for one in descriptor.fields:
        if is_required(one) and one.name not in schema.names:
            reason = f"the message '{printable(type_.name)}' requires the field, and there is no such column"
            raise SchemaError(reason, feature=one.name, advice="add the column")
    fields = message_tree(descriptor, schema.names).fields
    for field, own in zip(schema, fields, strict=True):
        Conformer().column(pa.array([], field.type), own.type, own)
    return fields


@dataclass(frozen=True)
class Conformer:
    """Casts columns to the types of fields.

    A RowFault is about the first row that does not fit. A SchemaError is about the types.
    """

    rounded: Rounded | None = None  # None: a float that would be rounded does not fit

    def column(self, column: pa.Array, type_: pa.DataType, field: MessageField) -> pa.Array:
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        if column.type == type_:
            return column
        if t.is_null(column.type):
            return pa.nulls(len(column), type_)
        if t.is_dictionary(column.type) or t.is_run_end_encoded(column.type):
            column = column.cast(column.type.value_type)
        if t.is_struct(type_):
            return self._struct(column, type_, field)
        if t.is_list(type_) or t.is_map(type_):
            return self._lists(column, type_, field)
        if field.enum is not None and t.is_integer(column.type):
            return _enum_texts(column, field)
        is_same = [of_class(column.type) == of_class(type_) for of_class in _CLASSES]
        if not all(is_same) or _is_text(column.type) != _is_text(type_) or t.is_nested(column.type):
            raise _other_type(column.type, type_, field)
        return self._cast(column, type_, field)

    def _cast(self, column: pa.Array, type_: pa.DataType, field: MessageField) -> pa.Array:
        try:
            cast = column.cast(type_)
        except pa.ArrowNotImplementedError:
            raise _other_type(column.type, type_, field) from None
        except pa.ArrowInvalid as error:
            row = first_failing(len(column), lambda begin, end: column[begin:end].cast(type_), pa.ArrowException)
            reason = f"a value of {column.type} does not fit {type_} ({error})"
            raise RowFault(row, reason, feature=field.path, error=EncodeError, expected=str(type_)) from None
        if t.is_floating(type_) and t.is_floating(column.type) and type_.bit_width < column.type.bit_width:
            self._check_rounding(column, cast, field)
        return cast

    def _check_rounding(self, column: pa.Array, cast: pa.Array, field: MessageField) -> None:
        before, after = (np.asarray(each.fill_null(0.0)).astype(np.float64) for each in (column, cast))
        infinite = np.isinf(after) & ~np.isinf(before)
        changed = (before != after) & ~(np.isnan(before) & np.isnan(after))
        bad = changed if self.rounded is None else infinite
        if np.any(bad):
            row = int(bad.argmax())
            reason = f"{before[row]} is not a float of 32 bits"
            raise RowFault(row, reason, feature=field.path, error=EncodeError, advice=say('pass {float64="round"}'))
        if self.rounded is not None and np.any(changed):
            self.rounded(field.path, int(np.count_nonzero(changed)))

    def _struct(self, column: pa.Array, type_: pa.DataType, field: MessageField) -> pa.Array:
        """Children by name; those that the column lacks are null."""
        if not t.is_struct(column.type):
            raise _other_type(column.type, type_, field)
        own = {each.name: each for each in field.node.fields}
        for child in column.type:
            if child.name not in own:
                reason = f"the message '{printable(field.node.name)}' has no field '{printable(child.name)}'"
                raise SchemaError(reason, feature=field.path, advice=f"it has: {', '.join(list(own)[:8])}")
        children = []
        for child in type_:
            at = column.type.get_field_index(child.name)
            part = pa.nulls(len(column)) if at < 0 else column.field(at)
            children.append(self.column(part, child.type, own[child.name]))
        return pa.Array.from_buffers(type_, len(column), [_bitmap(column)], -1, children=children)

    def _lists(self, column: pa.Array, type_: pa.DataType, field: MessageField) -> pa.Array:
        if not any(is_list(column.type) for is_list in _LISTS):
            raise _other_type(column.type, type_, field)
        if t.is_fixed_size_list(column.type):
            column = column.cast(pa.list_(column.type.value_type))
        offsets = offset_view(column, np.dtype(np.int64 if t.is_large_list(column.type) else np.int32))
        items = column.values.slice(offsets[0], offsets[-1] - offsets[0])
        offsets = (offsets - offsets[0]).astype(np.int32)
        try:
            if t.is_map(type_):
                values = self._entries(items, type_, field)
            else:
                values = self.column(items, type_.value_type, field)
        except RowFault as fault:
            raise fault.in_row_of(offsets) from fault.__cause__
        buffers = [_bitmap(column), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(type_, len(column), buffers, -1, children=[values])

    def _entries(self, items: pa.Array, type_: pa.DataType, field: MessageField) -> pa.Array:
        if not t.is_struct(items.type) or items.type.num_fields != 2:
            raise _other_type(pa.list_(items.type), type_, field)
        key, value = field.node.fields
        keys = self.column(items.field(0), key.type, key)
        values = self.column(items.field(1), value.type, value)
        return pa.StructArray.from_arrays([keys, values], fields=[type_.key_field, type_.item_field])


def _bitmap(column: pa.Array) -> pa.Buffer | None:
    mask = valid_mask(column)
    return None if mask is None else pa.py_buffer(bitmap_of(mask))


def _is_text(type_: pa.DataType) -> bool:
    views = t.is_string_view(type_) or t.is_binary_view(type_) or t.is_fixed_size_binary(type_)
    return views or t.is_string(type_) or t.is_large_string(type_) or t.is_binary(type_) or t.is_large_binary(type_)


def _other_type(got: pa.DataType, expected: pa.DataType, field: MessageField) -> SchemaError:
    reason = f"a column of {got} cannot become {expected}, the type of the field"
    return SchemaError(reason, feature=field.path, expected=str(expected), got=str(got), advice="cast the column")


def _enum_texts(numbers: pa.Array, field: MessageField) -> pa.Array:
    """Numbers of an enum as text; those without a name stay numbers."""
    assert field.enum is not None
    encoded = numbers.cast(pa.int64()).dictionary_encode()
    texts = [field.enum.names.get(number, str(number)) for number in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def enum_numbers(column: pa.Array, field: MessageField) -> Array:
    """The numbers of an enum's names, or of numbers as text; 0 for nulls."""
    assert field.enum is not None
    encoded = column.dictionary_encode()
    numbers = np.zeros(len(encoded.dictionary) + 1, np.int64)
    for at, text in enumerate(encoded.dictionary.to_pylist()):
        number = field.enum.numbers.get(text)
        if number is None and not field.enum.is_closed and _is_number(text):
            number = int(text)
        if number is None:
            row = int(np.flatnonzero(np.asarray(encoded.indices.fill_null(-1)) == at)[0])
            names = ", ".join(list(field.enum.numbers)[:8])
            reason = f"'{printable(text)}' is not a value of the enum"
            raise RowFault(row, reason, feature=field.path, error=EncodeError, got=text, advice=f"it has: {names}")
        numbers[at] = number
    return numbers[np.asarray(encoded.indices.fill_null(len(encoded.dictionary)))]


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 10 and int(text) in _INT32
