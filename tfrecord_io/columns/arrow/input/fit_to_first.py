"""Fit later parts of the data to the schema of the first: no value changes, and what does not fit is a SchemaError.

Tests: tests/columns/arrow/input/test_batch_source.py and tests/columns/arrow/test_image_encoding.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from tfrecord_io.base import printable
from tfrecord_io.bytes import Dtype
from tfrecord_io.columns.arrow.input.tensor_cast import tensor_cast, tensors_fit
from tfrecord_io.columns.schema.column_features import nested_restored_field
from tfrecord_io.columns.schema.embedded import embedded_schema, equal_types
from tfrecord_io.columns.schema.extension_types import name_with_extension, stated_extensions
from tfrecord_io.columns.schema.image_form import ImageForm
from tfrecord_io.columns.schema.merged_schema import common_field, lacks_only_values, lacks_type
from tfrecord_io.columns.schema.tensor_types import element_and_shape, is_any_tensor
from tfrecord_io.columns.schema.type_names import logical_name
from tfrecord_io.columns.schema.types import UnsupportedType, is_list_like, value_type
from tfrecord_io.errors import EncodeError, SchemaError


def conversion_to_first(
    schema: pa.Schema, first: pa.Schema, who: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]] | None:
    """How batches of `schema`, which `who` names, become batches of the schema `first`; None if they have it already.

    Offsets of another width and views make no difference. A column of nulls fits any type, as pandas does not store
    which; so do fields and items that are null throughout. Tensors of one shape fit those whose shapes vary. Anything
    else that differs is a SchemaError.
    """
    if equal_types(schema, first):
        _refuse_images(schema, first, who)
        return None
    if schema.names != first.names:
        differing = sorted(set(schema.names) ^ set(first.names))
        what = f"differs in the column '{printable(differing[0])}'" if differing else "has its columns in another order"
        raise SchemaError(f"{who} {what}: expected the columns of the data before it")
    changed = [at for at, (a, b) in enumerate(zip(schema, first, strict=True)) if not _is_same(a, b)]
    for at in changed:
        _refuse_another_type(schema.field(at), first.field(at), who)
    if not changed:
        _refuse_images(schema, first, who)
        return None

    def fill_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = list(batch.columns)
            for at in changed:
                columns[at] = _fill_column(columns[at], batch.schema.field(at), first.field(at))
            yield pa.RecordBatch.from_arrays(columns, names=first.names)

    return fill_batches


def _refuse_another_type(own: pa.Field, field: pa.Field, who: str) -> None:
    """Refuse a column whose values would have to be changed to have the type of `field`."""
    if (lacks_only_values(own.type, field.type) and _fits_extensions(own, field)) or tensors_fit(own, field):
        return
    expected, got = (name_with_extension(logical_name(f.type, f.metadata), f) for f in (field, own))
    reason = f"{who} has another type than the data before it: expected {expected}, got {got}"
    raise SchemaError(reason, feature=own.name, expected=expected, got=got, hint=_how_to_fit(own, field))


def _fits_extensions(own: pa.Field, field: pa.Field) -> bool:
    """True if both name the same extension types, or `own` lacks some in parts that are null throughout."""
    extensions, first_extensions = stated_extensions(own), stated_extensions(field)
    return extensions.items() <= first_extensions.items() if lacks_type(own.type) else extensions == first_extensions


def _refuse_images(own: pa.Schema, first: pa.Schema, who: str) -> None:
    """Refuse images of another shape than the data before them declares."""
    for a, b in zip(own, first, strict=True):
        form = ImageForm.from_metadata(b.metadata, b.name) if a.metadata != b.metadata else None
        if form is None or form.shape is None or form.resize is not None:
            continue
        form_of_images = ImageForm.from_metadata(a.metadata, a.name)
        shape = None if form_of_images is None else form_of_images.shape
        if shape is None or all(axis in (None, size) for axis, size in zip(form.shape, shape, strict=True)):
            continue
        reason = f"{who} has images of shape {shape}, but the data before it declares {form.shape}"
        advice = f'declare all in advance: schema={{"{a.name}": tfr.image((None, None, {form.shape[2]})), …}}'
        advice_cli = "convert the images to one number of channels first"
        raise SchemaError(reason, feature=a.name, expected=form.shape, got=shape, hint=advice, hint_cli=advice_cli)


def _fill_column(column: pa.Array, own: pa.Field, field: pa.Field) -> pa.Array:
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), field.type)
    if lacks_type(column.type):
        return column.cast(field.type)
    return tensor_cast(column, own, field) if tensors_fit(own, field) else column


def _is_same(a: pa.Field, b: pa.Field) -> bool:
    """True if the values of two fields are stored and read back alike."""
    return (a.type == b.type and a.metadata == b.metadata) or equal_types(
        _embedded_schema_of(a), _embedded_schema_of(b)
    )


def _embedded_schema_of(field: pa.Field) -> pa.Schema:
    try:
        return embedded_schema(pa.schema([nested_restored_field(field)]))
    except UnsupportedType as error:
        raise EncodeError(error.reason, feature=error.feature, hint=error.advice) from error


def _how_to_fit(a: pa.Field, b: pa.Field) -> str:
    """Advice on two types that differ."""
    if is_any_tensor(a.type) and is_any_tensor(b.type):
        (element_a, axes_a), (element_b, axes_b) = element_and_shape(a), element_and_shape(b)
        numbers = element_a.dtype.kind + element_b.dtype.kind
        if len(axes_a) == len(axes_b) and (element_a == element_b or set(numbers) <= set("biuf")):
            free = tuple(x if x == y else None for x, y in zip(axes_a, axes_b, strict=True))
            is_same = element_a == element_b
            dtype = element_a.dtype if is_same else np.result_type(element_a.dtype, element_b.dtype)
            declared = f"tfr.tensor('{Dtype.name_of(dtype)}', {free})"
            return f"declare the type of all in advance: schema={{'{a.name}': {declared}, ...}}"
    are_floats = pa.types.is_integer(value_type(b.type)) and pa.types.is_floating(value_type(a.type))
    is_wider = lacks_type(b.type) or (are_floats and is_list_like(a.type) == is_list_like(b.type))
    of_all = a if is_wider else common_field(b, a)
    if of_all is not None and of_all.type != b.type:  # a cast would change values
        return f"declare the type of all in advance with schema=: {logical_name(of_all.type, of_all.metadata)}"
    return f"cast {logical_name(a.type, a.metadata)} to {logical_name(b.type, b.metadata)}"
