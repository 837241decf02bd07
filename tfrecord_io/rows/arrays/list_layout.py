"""Lists of an Arrow column, truncated and padded as a `ColumnLayout` says.

Tests: tests/rows/arrays/test_read_arrays.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.columns import ArrayBuffers, Column, int64_array, offsets_of, selectable
from tfrecord_io.errors import SchemaError
from tfrecord_io.rows.arrays.array_options import ColumnLayout, RepresentationOptions
from tfrecord_io.rows.arrays.image_columns import ImageColumns
from tfrecord_io.rows.arrays.stacked_or_ragged import TableRepresentation, cast_pad_value


class ListLengths:
    """Truncates and pads the lists of tables by options of arrays; padded lists get a column ``<name>/length``.

    SchemaError for columns of which no arrays can be made, or that are not lists of single values; it names the `call`.
    """

    def __init__(self, schema: pa.Schema, options: RepresentationOptions, images: ImageColumns, call: str) -> None:
        representation = TableRepresentation(schema, options, complete=False)  # refuses names and types
        layouts = {f.name: options.layouts.layout(f.name) for f in representation.fields if Column(f).varies}
        self._layouts = {name: layout for name, layout in layouts.items() if layout != ColumnLayout()}
        types = dict(zip(schema.names, schema.types, strict=True))
        for name, layout in self._layouts.items():
            type_ = types.get(name)
            if type_ is None or not hasattr(type_, "value_type") or isinstance(type_.value_type, pa.BaseExtensionType):
                reason = f"max_length= and pad_to= of {call} are for columns of lists of single values"
                raise SchemaError(reason, feature=name, got=str(type_), hint="name other columns in a dict")
            if name in images and layout.length is not None:
                reason = f"pad_to= of {call} is for columns of lists of single values"
                raise SchemaError(reason, feature=name, hint="name other columns in a dict")
            if layout.multiple > 1:
                raise ValueError("pad_to=(length, 'multiple'): a row has a length of its own; pass an integer")

    def cut(self, table: pa.Table) -> pa.Table:
        """Truncate and pad the lists of a table; SchemaError for a list that is longer than its length."""
        for name, layout in self._layouts.items():
            at, column = table.schema.get_field_index(name), table.column(name).combine_chunks()
            field = table.schema.field(at)
            lists, lengths = cut_lists(column, layout, field)
            table = table.set_column(at, pa.field(name, lists.type, metadata=field.metadata), lists)
            if layout.length is not None:
                table = table.append_column(f"{name}/length", pa.array(lengths))
        return table


def cut_lists(lists: pa.Array, layout: ColumnLayout, field: pa.Field) -> tuple[pa.Array, Array]:
    """Truncate lists, and pad them if the layout has a length; with the number of values of each list."""
    import pyarrow.compute as pc

    full_lengths = ArrayBuffers(lists).lengths
    lengths = full_lengths if layout.max_length is None else np.minimum(full_lengths, layout.max_length)
    begins = np.cumsum(full_lengths) - (lengths if layout.from_left else full_lengths)
    values, missing = selectable(lists.flatten()), lists.is_null()
    if layout.length is None:
        at = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        offsets = pa.array(offsets_of(lengths).astype(Column(lists.type).offset_dtype))
        return type(lists).from_arrays(offsets, values.take(int64_array(at)), type=lists.type, mask=missing), lengths
    if (lengths > layout.length).any():
        row, advice = int((lengths > layout.length).argmax()), "pass max_length= to truncate longer ones"
        reason = f"a list has {lengths[row]} values, but {layout.named_by} has room for {layout.length}"
        raise SchemaError(reason, feature=field.name, got=int(lengths[row]), hint=advice)
    places = np.arange(layout.length)
    padding = (places >= lengths[:, None]).ravel()
    at = np.where(padding, 0, (begins[:, None] + places).ravel())
    fill = pa.scalar(
        cast_pad_value(
            layout.pad_value, Column(field.type.value_field).rows(values.slice(0, 0)).values.dtype, field.name
        ),
        values.type,
    )
    padded = pc.if_else(pa.array(padding), fill, values.take(pa.array(at, mask=padding)))
    return pa.FixedSizeListArray.from_arrays(padded, layout.length, mask=missing), lengths
