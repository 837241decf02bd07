"""The condition on rows: which columns it needs, which rows fulfil it, and which files can have such rows."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.errors import FeatureNotFoundError, SchemaError
from tfrecord_io.read.partition_columns import PartitionColumns
from tfrecord_io.storage.read.source import Source

if TYPE_CHECKING:
    import pyarrow.compute as pc

_MISSING = re.compile(r"No match for FieldRef\.(?:Nested\(FieldRef\.)?Name\((.*?)\)")
_STARTS = ("No match for FieldRef.Name({}) in ", "No match for FieldRef.Nested(FieldRef.Name({}) ")
_EXPECTED = "expected a pyarrow expression, such as pc.field('x') > 1, or a list of tuples, such as [('x', '>', 1)]"


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition on the rows of a read; null counts as false. It can be pickled.

    Attributes
    ----------
    expression : pyarrow.compute.Expression
    columns : tuple of str
        The columns that it needs, in the order of the schema.
    """

    expression: pc.Expression
    columns: tuple[str, ...]

    @classmethod
    def of(cls, filters: Any, schema: pa.Schema) -> RowFilter:
        """A filter on rows of a schema.

        Parameters
        ----------
        filters : pyarrow.compute.Expression, or list of tuples, or list of lists of tuples
            Tuples ``(column, operator, value)`` as in pandas and pyarrow: a list of them is a conjunction, a list of
            such lists a disjunction.
        schema : pyarrow.Schema
            All columns that the filter may name.

        Raises
        ------
        FeatureNotFoundError
            It names a column that is not in `schema`.
        SchemaError
            It does not apply to the types of the columns, or is not a condition.
        TypeError, ValueError
            `filters` is no filter.
        """
        expression = parse_filters(filters)
        type_ = _result_type(expression, schema)
        if not pa.types.is_boolean(type_) and not pa.types.is_null(type_):
            raise SchemaError(f"the filter '{expression}' is no condition: its values are {type_}, not bool")
        return cls(expression, _needed(expression, schema))

    def __and__(self, other: RowFilter) -> RowFilter:
        columns = dict.fromkeys([*self.columns, *other.columns])
        return RowFilter(self.expression & other.expression, tuple(columns))

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Whether each row of a batch, which has all of `columns`, fulfils the condition; null counts as false."""
        values = _evaluated(self.expression, batch.select(list(self.columns)))
        return values.cast(pa.bool_()).fill_null(False)

    def possible(self, sources: Sequence[Source], partitions: PartitionColumns) -> tuple[Source, ...]:
        """The files that can have rows which fulfil the condition, by the values in their directory names."""
        if not set(partitions.names) & set(self.columns):
            return tuple(sources)
        verdicts: dict[Any, bool] = {}
        for source in sources:
            if source.partitions not in verdicts:
                verdicts[source.partitions] = self._may_hold(source, partitions)
        return tuple(source for source in sources if verdicts[source.partitions])

    def _may_hold(self, source: Source, partitions: PartitionColumns) -> bool:
        """Whether the values of the partition columns leave the condition open; pyarrow simplifies it."""
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        empty = pa.RecordBatch.from_arrays([pa.nulls(1)], ["x"]).select([])
        known = partitions.add_to(empty, [source], pa.schema(partitions.fields), None)
        guarantee = pc.scalar(True)
        for name, (value,) in zip(known.schema.names, known.columns, strict=True):
            field = pc.field(name)
            guarantee &= (field == value) if value.is_valid else field.is_null()
        format_ = ds.IpcFileFormat()
        fragment = format_.make_fragment(pa.py_buffer(b""), partition_expression=guarantee)
        names = dict.fromkeys([*known.schema.names, *self.columns])
        types = {name: known.schema.field(name).type for name in known.schema.names}
        schema = pa.schema([(name, types.get(name, pa.null())) for name in names])
        return bool(list(ds.FileSystemDataset([fragment], schema, format_).get_fragments(self.expression)))


def parse_filters(filters: Any) -> pc.Expression:
    """The expression of a filter; TypeError or ValueError if it is none."""
    import pyarrow.compute as pc

    if isinstance(filters, pc.Expression):
        expression = filters
    elif isinstance(filters, Iterable) and not isinstance(filters, str | bytes | tuple):
        from pyarrow.parquet import filters_to_expression

        terms = list(filters)
        alternatives = [terms] if terms and isinstance(terms[0], tuple) else terms
        for term in (term for alternative in alternatives for term in alternative):
            if not isinstance(term, tuple) or len(term) != 3:
                raise ValueError(f"filters={filters!r}: expected tuples (column, operator, value)")
        expression = filters_to_expression(terms)
    else:
        raise TypeError(f"a filter of the type {type(filters).__name__}: {_EXPECTED}")
    try:
        pickle.dumps(expression)
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"the filter '{expression}' refers to columns by position: name them") from error
    return expression


def _evaluated(expression: pc.Expression, batch: pa.RecordBatch) -> pa.Array:
    """The values of an expression for the rows of a batch, in their order."""
    from pyarrow import acero

    if not batch.num_columns:  # a table without columns loses its rows
        batch = pa.RecordBatch.from_arrays([pa.nulls(len(batch))], [""])
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([batch])))
    values = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"]), [source])
    try:
        return values.to_table(use_threads=False).column(0).combine_chunks()  # threads would change the order
    except pa.ArrowException as error:
        raise _refusal(expression, error, batch.schema.names) from error


def _refusal(expression: pc.Expression, error: Exception, names: Sequence[str]) -> SchemaError:
    missing = _MISSING.search(str(error))
    if missing is not None and missing[1] not in names:  # else a field of a struct
        advice = f"valid names: {', '.join(sorted(names)[:20]) or 'none'}"
        return FeatureNotFoundError("the filter names a column that is not there", feature=missing[1], advice=advice)
    reason = str(error).partition("\n")[0]
    return SchemaError(f"the filter '{expression}' cannot be applied: {reason}", advice="cast the column or the value")


def _result_type(expression: pc.Expression, schema: pa.Schema) -> pa.DataType:
    arrays = [pa.nulls(0, field.type) for field in schema]
    return _evaluated(expression, pa.RecordBatch.from_arrays(arrays, schema.names)).type


def _needed(expression: pc.Expression, schema: pa.Schema) -> tuple[str, ...]:
    """The columns that an expression needs: pyarrow names one of them at a time, as missing."""
    needed: set[str] = set()
    while True:
        try:
            _result_type(expression, pa.schema([field for field in schema if field.name in needed]))
        except SchemaError as error:
            text = str(error.__cause__)
            named = {name for name in schema.names if any(text.startswith(start.format(name)) for start in _STARTS)}
            if named <= needed:  # the text is another one in a later pyarrow
                return tuple(schema.names)
            needed.add(max(named - needed, key=len))
        else:
            return tuple(name for name in schema.names if name in needed)
