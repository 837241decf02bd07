"""Build Arrow record batches of a schema, inferred or declared, from decoded columns.

`BatchBuilder.batch` takes the columns of an engine, by feature, and returns a batch, and the fault of the first row
that does not fit its column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import cache, partial
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import Expansion, printable
from tfrecord_io.bytes import Array, ColumnBuffers, Dtype, FeatureColumns, Kind, Layout, ShapeSource
from tfrecord_io.columns.arrow.decode.decode_plan import field_layout, field_leaves, reads_companions
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.schema.column_features import (
    COMPOSITE_KEY,
    FEATURE_LIST,
    LIST,
    AsJson,
    Leaf,
    Node,
    PlainLists,
    PlainStruct,
    encoding_of,
    handed_type,
    has_struct,
    set_encoding,
)
from tfrecord_io.columns.schema.field import CONTEXT, Field
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import (
    TENSOR_ENCODINGS,
    element_and_shape,
    encoding_rules,
    is_any_tensor,
    is_composed,
)
from tfrecord_io.columns.schema.types import (
    hashable,
    integer_range,
    is_list_like,
    map_fields,
    null_bytes,
    relist,
    value_type,
)
from tfrecord_io.errors import FeatureNotFoundError, SchemaError

if TYPE_CHECKING:
    from tfrecord_io.columns.arrow.decode.companion_checks import CompanionColumns, Companions
    from tfrecord_io.columns.arrow.decode.lists import Restore
    from tfrecord_io.columns.arrow.decode.tensor_column import TensorColumn

Columns = Mapping[str, ColumnBuffers]
Dictionaries = Mapping[str, pa.Array]
Maker = Callable[[Columns, int], pa.Array]
"""Makes the column of some decoded rows; raises RowFault."""


def _from_lists(names: tuple[str, ...], make: Maker, columns: Columns, rows: int) -> pa.Array:
    """The array of a feature list, for which a name in both parts is that of the feature list."""
    marked = {
        name: columns[name + FeatureColumns.LIST_MARK] for name in names if name + FeatureColumns.LIST_MARK in columns
    }
    return make({**columns, **marked} if marked else columns, rows)


class _Leaf(NamedTuple):
    leaf: Leaf
    restore: Callable[..., pa.Array]  # gets the column and, with companions, what these state
    companions: Companions | None = None

    def array(self, columns: Columns, rows: int) -> pa.Array:
        column = columns.get(self.leaf.feature) or ColumnBuffers.nulls(self.leaf.feature, rows, Kind.NONE, Layout.NULL)
        try:
            if self.companions is None:
                return self.restore(column)
            return self.restore(column, self.companions.columns(columns, column.rows))
        except RowFault as fault:
            fault.feature = self.leaf.feature
            raise


def _restore_checked(restore: Restore, element: Dtype, column: ColumnBuffers, stated: CompanionColumns) -> pa.Array:
    """The values of raw bytes, of a dtype, if their companions do not contradict them."""
    mask = column.mask & (column.layout is not Layout.NULL)
    stated.refuse_strays(mask)
    if column.kind is Kind.BYTES and column.layout is Layout.SCALAR and column.value_offsets is not None:
        stated.refuse_dtype(mask, element, np.diff(column.value_offsets))
        if stated.companions.inferred_from:  # single values: tensors without an axis
            stated.shapes(mask, (), np.ones(column.rows))
    return restore(column)


class BatchBuilder:
    """Makes record batches of one schema; compiled once, used for every batch, by any thread.

    `dictionaries` are the categories of dictionary columns by the name of their feature; without an entry, a batch has
    the categories that occur in it, and `table_of` unites the dictionaries of batches. `folded` columns were inferred
    from their companions: every row has both or neither. A `trusted` schema was declared by the caller: the sizes of
    its types and defaults need no limit.

    The `schema` of the batches is the given one without views and run-ends, and without what only says how to read.
    """

    def __init__(
        self,
        schema: Schema | pa.Schema,
        dictionaries: Dictionaries | None = None,
        folded: Collection[str] = (),
        *,
        trusted: bool = False,
    ) -> None:
        parsed = Schema.parse(schema)
        self.dictionaries = dictionaries or {}
        types, features = parsed.types, parsed.names
        of_type = dict(zip(parsed.common_types, map(null_bytes, parsed.common_types.values()), strict=True))
        row_bytes = list(map(of_type.get, map(id, types), repeat(0)))
        handed, read = dict[int, Field](), dict[int, Field]()  # where they are not the declared fields
        self._compiled: list[Maker | None] = [None] * len(types)
        for at, declared in parsed.others.items():
            field = declared
            if not declared.is_common and not (type_ := handed_type(declared.type)).equals(declared.type):
                field = handed[at] = replace(declared, type=type_)
            as_read = field if field.is_common and field.feature is field.column else _as_read(field)
            if as_read is not declared:
                read[at] = as_read
            if not field.is_common and _form_of(field) is OTHER:  # not made by an engine
                self._compiled[at] = _compile(field, self.dictionaries, field.column in folded)
            has_default = not field.is_common and field.default is not None
            row_bytes[at] = null_bytes(field.type) + (int(field.default_array().nbytes) if has_default else 0)
            types[at], features[at] = field.type, field.feature
        self.schema = parsed.replace_fields(read).to_arrow()
        self._types, self._features = types, features
        self._fields = fields = parsed.replace_fields(handed)  # which makes them when they are asked for
        self._forms = forms_of(fields)
        self._row_bytes = [] if trusted else row_bytes
        self._bytes_per_row = sum(self._row_bytes)

    def batch(
        self, columns: Columns, rows: int, expansion: Expansion | None = None
    ) -> tuple[pa.RecordBatch, RowFault | None]:
        """The batch of `rows` decoded rows, by feature; a missing feature is null.

        If a row has a value that does not fit, or takes more memory than `expansion` has left, the batch ends before
        the first such row, and the fault is returned too.
        """
        expansion = expansion or Expansion()
        excess = None
        if rows * self._bytes_per_row > expansion.room:
            excess = self._excess(rows, expansion)
            columns, rows = ColumnBuffers.cut_all(columns, 0, excess.row), excess.row
        expansion.take(rows * self._bytes_per_row)
        from_engine, room, fault = self._engine_arrays(columns), expansion.room, excess
        if isinstance(from_engine, pa.RecordBatch):
            return from_engine, excess
        with expansion.activate():
            while True:
                arrays, first = self._arrays(columns, rows, from_engine)
                if first is None:
                    return batch_of(arrays, rows, self.schema), fault
                assert first.row < rows  # or this would not end
                fault, rows, from_engine, expansion.room = first, first.row, (), room  # the columns are made again
                columns = ColumnBuffers.cut_all(columns, 0, rows)

    def _arrays(
        self, columns: Columns, rows: int, from_engine: Sequence[pa.Array | None]
    ) -> tuple[list[pa.Array], RowFault | None]:
        """The arrays of the rows, with those `from_engine`; or the fault of the first row that does not fit."""
        arrays: list[pa.Array] = []
        first: RowFault | None = None
        for at, array in enumerate(from_engine or [None] * len(self._compiled)):
            try:
                if array is not None:
                    arrays.append(array)
                    continue
                # A column that an engine makes, too, is compiled when it is needed, as the engine makes most arrays.
                make = self._compiled[at] or _compile(self._fields[at], {}, folded=False)
                self._compiled[at] = make
                arrays.append(make(columns, rows))
            except RowFault as fault:
                fault.with_traceback(None)  # whose frames would keep the arrays
                first = fault if first is None or fault.row < first.row else first
        return arrays, first

    def batch_of_values(self, values: pa.RecordBatch) -> pa.RecordBatch:
        """The batch of columns whose values are known, in their order and of their types."""
        arrays = values.columns
        if self.dictionaries:
            from tfrecord_io.columns.arrow.casts import category_encode

            for at, (feature, type_) in enumerate(zip(self._features, self._types, strict=True)):
                if pa.types.is_dictionary(type_):
                    encode = category_encode(type_, self.dictionaries.get(feature), rounded=False)
                    arrays[at] = encode(arrays[at].dictionary_decode())
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def column_forms(self) -> list[tuple[Field, Array]]:
        """The columns and their forms: the numbers of a `Form`."""
        if self._forms is None:
            return [(field, np.array(OTHER, np.int64)) for field in self._fields]
        return list(zip(self._fields, self._forms.distinct[self._forms.number], strict=True))

    def _engine_arrays(self, columns: Columns) -> pa.RecordBatch | Sequence[pa.Array | None]:
        """The whole batch if the engine makes one; else the arrays made by the engine, None for other columns."""
        if self._forms is None or not isinstance(columns, FeatureColumns):
            return ()
        owner, batch, addresses = columns.arrow_arrays(self._forms, self._features)
        if batch:
            return pa.RecordBatch._import_from_c(batch, self.schema)
        imported = pa.Array._import_from_c
        arrays = [
            imported(address, type_) if address else None for address, type_ in zip(addresses, self._types, strict=True)
        ]
        del owner  # releases nothing that was imported
        return arrays

    @staticmethod
    def table_of(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
        """The table of batches of `schema`, each of its dictionary columns with one dictionary throughout."""
        parts = list(batches)
        if not schema.names:  # from_batches takes the length from the first column
            return pa.Table.from_batches([batch_of([], sum(len(batch) for batch in parts), schema)])
        table = pa.Table.from_batches(parts, schema)
        if len(parts) <= 1:
            return table
        from tfrecord_io.columns.arrow.casts import unify_table

        return unify_table(table)

    def _excess(self, rows: int, expansion: Expansion) -> RowFault:
        """The fault of the first of `rows` that exceeds the memory, whatever its values are."""
        row_bytes = self._bytes_per_row
        size, room = rows * row_bytes, expansion.room
        largest = max(range(len(self._row_bytes)), key=self._row_bytes.__getitem__)
        field, column_bytes = self.schema.field(largest), self._row_bytes[largest]
        if 2 * column_bytes > row_bytes:
            reason = f"its type {printable(field.type)} takes {column_bytes} bytes in each row"
        else:
            reason = f"the {len(self._row_bytes)} columns take {row_bytes} bytes in each row"
        reason = expansion.excess(f"{reason}, and {rows} rows take {size}")
        advice = f"{expansion.advice(size)}, or declare the columns with schema="
        advice_cli = f"{expansion.advice(size)}, or declare the columns with --type"
        row = room // row_bytes
        return RowFault(
            row, reason, feature=field.name, expected=room, got=size, hint=advice, hint_cli=advice_cli, of_memory=True
        )


def _compile(field: Field, dictionaries: Dictionaries, folded: bool) -> Maker:
    checks: Companions | None = None
    restore: Maker
    if ShapeSource.entry_of(field.metadata) is not None:
        checks = _stated_shapes(field)
    elif reads_companions(field):
        from tfrecord_io.columns.arrow.decode.companion_checks import Companions

        checks = Companions(field.feature, folded)
    if (tree := field_layout(field)) is not None:
        restore = _features_maker(field, tree, dictionaries)
    elif is_any_tensor(field.value):
        restore = _tensors(field, checks)
    else:
        restore = _plain(field, dictionaries, checks)
    if tree is None or isinstance(tree, PlainStruct | PlainLists):
        if field.empty is not None:
            restore = _empty_as_null(field, restore)
        if field.part == FEATURE_LIST:
            names = ShapeSource.companions(field.feature) if checks is None or checks.shape_source is None else ()
            restore = partial(_from_lists, (field.feature, *names), restore)
    if field.default is None:
        return restore
    default = field.default_array()

    def restore_filled(columns: Columns, rows: int) -> pa.Array:
        try:
            return fill(restore(columns, rows), default)
        except RowFault as fault:
            fault.feature = fault.feature or field.feature
            raise

    return restore_filled


def _tensors(field: Field, checks: Companions | None) -> Maker:
    from tfrecord_io.columns.arrow.decode.companion_checks import Companions
    from tfrecord_io.columns.arrow.decode.tensor_column import TensorColumn

    tensors, own = TensorColumn(field.feature, field.tensor, field.encoding), checks or Companions.NONE
    (leaf,) = field_leaves(field, field.part == FEATURE_LIST)
    if field.part == FEATURE_LIST or field.is_list_of_arrays:
        return _tensor_lists(leaf, field.type, tensors, own, in_feature_list=field.part == FEATURE_LIST)
    return _Leaf(leaf, tensors.array, own).array


def _tensor_lists(
    leaf: Leaf, type_: pa.DataType, tensors: TensorColumn, checks: Companions, *, in_feature_list: bool
) -> Maker:
    """How lists of tensors are restored: of the steps of a feature list, or of the values of a feature."""
    from tfrecord_io.columns.arrow.decode.lists import feature_list_array, values_as_steps

    def restore_lists(columns: Columns, rows: int) -> pa.Array:
        if not in_feature_list and (column := columns.get(leaf.feature)) is not None:
            columns = {**columns, leaf.feature: values_as_steps(column)}
        try:
            restore = partial(feature_list_array, type_, tensors.steps(columns, checks))
        except RowFault as fault:  # of the features that state sizes
            fault.feature = fault.feature or leaf.feature
            raise
        return _Leaf(leaf, restore).array(columns, rows)

    return restore_lists


def _stated_shapes(field: Field) -> Companions | None:
    """Checks by the features that state the arrays of a column; None for a column that is read as plain bytes."""
    from tfrecord_io.columns.arrow.decode.stated_shapes import StatedShapes

    source = field.shape_source
    if source is None or not is_any_tensor(field.value):
        return None
    element, shape = element_and_shape(field.tensor)
    source.check_rank(len(shape), field.feature)
    return StatedShapes(field.feature, shape_source=source, element=element, rank=len(shape))


def _stated_shapes_of_leaf(leaf: Leaf) -> Companions:
    """Checks by the features that state the arrays in the field of a struct."""
    from tfrecord_io.columns.arrow.decode.stated_shapes import StatedShapes

    assert leaf.element is not None
    assert leaf.shape is not None
    return StatedShapes(leaf.feature, shape_source=leaf.shape_source, element=leaf.element, rank=len(leaf.shape))


def _empty_as_null(field: Field, restore: Maker) -> Maker:
    """How a column is restored if features without values count as absent."""
    from tfrecord_io.columns.arrow.decode.lists import empties_to_nulls

    features, needed = [], list[str]()
    for leaf in field_leaves(field):
        source, feature = leaf.shape_source, leaf.feature
        of_shapes = ShapeSource.stated_by(feature, field.metadata) if source is None else source.features
        features.append(feature)
        needed += (feature, *of_shapes)
    required = bool(field.required) and field.default is None

    def restore_present(columns: Columns, rows: int) -> pa.Array:
        present = {name: columns[name] for name in needed if name in columns}
        for name in features:
            if name in present:
                try:
                    present[name] = empties_to_nulls(present[name], required)
                except RowFault as fault:
                    fault.feature = name
                    raise
        return restore(present, rows)

    return restore_present


def _plain(field: Field, dictionaries: Dictionaries, companions: Companions | None) -> Maker:
    dictionary = dictionaries.get(field.feature)
    whole = None if field.part == FEATURE_LIST else _leaf(field, field_leaves(field)[0], dictionary, companions)
    if not is_list_like(field.type):
        assert whole is not None
        return whole.array
    from tfrecord_io.columns.arrow.decode.lists import feature_list_array

    step = field_leaves(field, in_steps=True)[0]
    as_steps = _Leaf(step, partial(feature_list_array, field.type, _leaf(field, step, dictionary).restore))

    def restore(columns: Columns, rows: int) -> pa.Array:
        column = columns.get(field.feature)
        in_steps = whole is None or (column is not None and column.steps is not None)
        return (as_steps if in_steps else whole).array(columns, rows)  # type: ignore[union-attr]

    return restore


def _features_maker(field: Field, tree: Node, dictionaries: Dictionaries) -> Maker:
    """The maker of a column that is stored as several features, or as JSON."""
    parts = [_part(field, leaf, dictionaries.get(leaf.feature)) for leaf in field_leaves(field)]
    make = tree_maker(tree)
    is_needed = field.required and field.default is None and is_composed(field.encoding)

    def restore(columns: Columns, rows: int) -> pa.Array:
        array = make([part(columns, rows) for part in parts], rows)
        if is_needed and array.null_count:
            reason = "the schema requires this column and the record has no value for it"
            row = int(np.argmin(array.is_valid()))
            raise RowFault(row, reason, feature=field.feature, error=FeatureNotFoundError)
        return array

    return restore


def tree_maker(tree: Node) -> Callable[[list[pa.Array], int], pa.Array]:
    """What makes the column of a tree, of the arrays of its features; RowFault where those of a row contradict."""
    from tfrecord_io.columns.arrow.nested_to_features import misplaced_null
    from tfrecord_io.columns.schema.composite import Built

    if isinstance(tree, Built):
        from tfrecord_io.columns.arrow.decode.composite_decoder import built_array
    elif isinstance(tree, AsJson):
        from tfrecord_io.columns.arrow.json_cells import array_of_json
    else:
        from tfrecord_io.columns.arrow.nested_from_features import nested_array

    def make(arrays: list[pa.Array], rows: int) -> pa.Array:
        try:
            if isinstance(tree, Built):
                return built_array(tree.composite, arrays)
            array = array_of_json(arrays[0], tree) if isinstance(tree, AsJson) else nested_array(tree, arrays, rows)
            if (row := misplaced_null(array)) is not None:
                raise RowFault(row, f"a value in it is null where its type, {array.type}, has no nulls")
            return array
        except RowFault as fault:
            fault.feature = fault.feature or tree.feature
            raise

    return make


def _part(field: Field, leaf: Leaf, dictionary: pa.Array | None) -> Maker:
    """How one of several features is restored."""
    from tfrecord_io.columns.arrow.decode.companion_checks import Companions
    from tfrecord_io.columns.arrow.decode.encoded_cells import value_restore
    from tfrecord_io.columns.arrow.decode.tensor_column import TensorColumn

    if leaf.element is None:
        return _Leaf(leaf, value_restore(leaf, None, dictionary)).array
    child = pa.field("", field.type)
    for name in leaf.path:
        child = (child.type.value_type if is_list_like(child.type) else child.type).field(name)
    tensor = child.with_type(leaf.type if is_any_tensor(leaf.type) else leaf.type.value_type)
    column = TensorColumn(leaf.feature, tensor, leaf.encoding)
    if leaf.shape_source is None:
        companions = Companions(leaf.feature) if leaf.companions else Companions.NONE
    else:
        companions = _stated_shapes_of_leaf(leaf)
    if is_list_like(leaf.type):
        return _tensor_lists(leaf, leaf.type, column, companions, in_feature_list=False)
    return _Leaf(leaf, column.array, companions).array


def _leaf(field: Field, leaf: Leaf, dictionary: pa.Array | None, companions: Companions | None = None) -> _Leaf:
    from tfrecord_io.columns.arrow.decode.encoded_cells import value_restore

    restore = value_restore(leaf, field.shape, dictionary)
    if companions is None:
        return _Leaf(leaf, restore)
    try:
        element = Dtype.of_arrow(value_type(leaf.type))
    except ValueError as error:
        reason = f"its encoding is {field.encoding!r}, which needs a dtype: {error}"
        raise SchemaError(reason, feature=leaf.feature, got=str(leaf.type)) from error
    return _Leaf(leaf, partial(_restore_checked, restore, element), companions)


def _as_read(field: Field) -> Field:
    """The field of a column that has been read: without what only says how to read it."""
    if COMPOSITE_KEY in field.metadata:
        field = replace(field, metadata={key: v for key, v in field.metadata.items() if key != COMPOSITE_KEY})
    encoding = LIST if encoding_rules(field.encoding).adaptive else field.encoding
    if has_struct(field.type) and not is_composed(field.encoding):
        type_ = _drop_adaptive_encodings(field.type)
        field = field if type_.equals(field.type, check_metadata=True) else replace(field, type=type_)
    if field.feature == field.column and field.default is None and field.empty is None and field.encoding == encoding:
        return field
    return replace(field, feature=field.column, default=None, empty=None, encoding=encoding)


def _drop_adaptive_encodings(type_: pa.DataType) -> pa.DataType:
    """The type of a struct, or a list of structs, whose fields do not say that records decide their encoding."""

    def change(child: pa.Field) -> pa.Field:
        encoding = encoding_of(child)
        is_adaptive = encoding is not None and TENSOR_ENCODINGS.has(encoding) and encoding_rules(encoding).adaptive
        child = set_encoding(child, None) if is_adaptive else child
        return child.with_type(_drop_adaptive_encodings(child.type)) if has_struct(child.type) else child

    if t.is_struct(type_):
        return map_fields(type_, change)
    return relist(type_, type_.value_field.with_type(_drop_adaptive_encodings(type_.value_type)))


def fill(array: pa.Array, default: pa.Array) -> pa.Array:
    """`array` with the one value of `default` instead of its nulls.

    RowFault if the indices of a dictionary cannot tell it apart from the other values.
    """
    if not array.null_count:
        return array
    import pyarrow.compute as pc

    if not t.is_dictionary(array.type):
        rows = len(array)
        return pa.concat_arrays([array, default]).take(pc.if_else(array.is_valid(), np.arange(rows), rows))
    from tfrecord_io.columns.arrow.casts import narrow_indices

    dictionary = array.dictionary
    at = pc.index_in(hashable(default), value_set=hashable(dictionary))[0].as_py()
    if at is None:
        at, dictionary = len(dictionary), pa.concat_arrays([dictionary, default])
    indices = narrow_indices(array.indices.cast(pa.int64()).fill_null(at), array.type)
    return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=array.type.ordered)


def batch_of(arrays: list[pa.Array], rows: int, schema: pa.Schema) -> pa.RecordBatch:
    """The batch of so many rows, also without a column to count them by."""
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    empty = pa.Array.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(empty).replace_schema_metadata(schema.metadata)


class Value(IntEnum):
    """Value of an array, or of a list in it. The kernel has the same numbers."""

    OTHER = -1  # values that an engine cannot make
    NULL = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    DOUBLE = 4
    BYTES = 5
    TEXT = 6


class Nesting(IntEnum):
    """Nesting of a row: one value, or a list of values."""

    NONE = 0
    LIST = 1
    LARGE_LIST = 2
    FIXED_SIZE_LIST = 3


class Form(NamedTuple):
    """The form of the arrays of one column, as the kernel takes it."""

    value: Value
    nesting: Nesting = Nesting.NONE
    list_size: int = 0
    large: bool = False  # of bytes and text: offsets of 64 bits
    bits: int = 0  # of a number
    low: int = 0  # the least and the greatest integer
    high: int = 0
    spreads: bool = False  # null rows of a fixed-size list have zeros
    takes_nulls: bool = True  # False: a column with nulls is not made


OTHER = Form(Value.OTHER)
_BYTES = {
    pa.lib.Type_BINARY: Form(Value.BYTES),
    pa.lib.Type_STRING: Form(Value.TEXT),
    pa.lib.Type_LARGE_BINARY: Form(Value.BYTES, large=True),
    pa.lib.Type_LARGE_STRING: Form(Value.TEXT, large=True),
}
_NESTINGS = {
    pa.lib.Type_LIST: Nesting.LIST,
    pa.lib.Type_LARGE_LIST: Nesting.LARGE_LIST,
    pa.lib.Type_FIXED_SIZE_LIST: Nesting.FIXED_SIZE_LIST,
}


class Forms(NamedTuple):
    """The forms of columns: int64 arrays."""

    distinct: Array  # a row for each form that occurs
    number: Array  # the row of each column's form in `distinct`


def forms_of(schema: Schema) -> Forms | None:
    """The forms of columns; None if an engine can make none of them."""
    numbers: dict[Form, int] = {}
    of_type = dict[int, int]()  # by the id of an object that columns of common types share
    for key, type_ in schema.common_types.items():
        of_type[key] = numbers.setdefault(_form_of_type(type_), len(numbers))
    number = list(map(of_type.get, map(id, schema.types), repeat(0)))
    for at, field in schema.others.items():
        known = of_type.get(id(field.type)) if field.is_common else None
        if known is None:
            known = numbers.setdefault(_form_of(field), len(numbers))
            if field.is_common:
                of_type[id(field.type)] = known
        number[at] = known
    if numbers.keys() <= {OTHER}:
        return None
    return Forms(np.array(list(numbers), np.int64), np.array(number, np.int64))


def _form_of(field: Field) -> Form:
    type_ = field.type
    form = OTHER if isinstance(type_, pa.BaseExtensionType) else _form_of_type(type_)  # which may have no hash
    if form is OTHER or field.part != CONTEXT or field.encoding != LIST or field.empty is not None:
        return OTHER
    if COMPOSITE_KEY in field.metadata:
        return OTHER
    if field.shape is not None and form.nesting is not Nesting.FIXED_SIZE_LIST and is_list_like(type_):
        return OTHER  # the number of values is checked
    return form if field.default is None else form._replace(takes_nulls=False)


@cache
def _form_of_type(type_: pa.DataType) -> Form:
    if t.is_null(type_):
        return Form(Value.NULL)
    nesting = _NESTINGS.get(type_.id)
    if nesting is None:
        return _value_form(type_)
    value = _value_form(type_.value_type)
    if value is OTHER or nesting is not Nesting.FIXED_SIZE_LIST:
        return value if value is OTHER else value._replace(nesting=nesting)
    numbers = t.is_integer(type_.value_type) or t.is_floating(type_.value_type)
    return value._replace(nesting=nesting, list_size=type_.list_size, spreads=numbers)


def _value_form(type_: pa.DataType) -> Form:
    if type_.id in _BYTES:
        return _BYTES[type_.id]
    if t.is_float32(type_):
        return Form(Value.FLOAT, bits=32)
    if t.is_float64(type_):
        return Form(Value.DOUBLE, bits=64)
    if t.is_boolean(type_):
        return Form(Value.BOOL, bits=1, low=0, high=1)
    if t.is_integer(type_) or (t.is_temporal(type_) and not t.is_interval(type_) and not t.is_date64(type_)):
        low, high = integer_range(type_)
        return Form(Value.INT, bits=type_.bit_width, low=low, high=high)
    return OTHER
