"""Filter rows: the columns that a condition needs, the rows that fulfil it, the files that can have such rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import Condition, Expansion, Operator, condition_of, did_you_mean
from tfrecord_io.bytes import Array, ColumnBuffers
from tfrecord_io.columns import (
    ArrayBuffers,
    Column,
    Projection,
    RowFault,
    cast_comparable_columns,
    evaluate_simple,
    selectable,
    type_literals,
)
from tfrecord_io.errors import FeatureNotFoundError, SchemaError
from tfrecord_io.read.added_columns import AddedColumns
from tfrecord_io.read.chunks.recovery import batch_or_fault, fitting_parts
from tfrecord_io.store import Source, Sources

if TYPE_CHECKING:
    from tfrecord_io.columns import BatchBuilder, MessageBatchBuilder, Schema


# Functions that the first values decide: all values say no more of whether there are any, and the order of bytes and
# text follows from the first ones that differ.
_PRESENCE = frozenset(["is_valid", "is_null"])
_BY_BEGINNING = _PRESENCE | Operator.COMPARISONS | {"starts_with", "is_in", "and_kleene", "or_kleene", "invert"}
_MOST_BYTES = 16_000  # of literals


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition on the rows of a read; null counts as false. It can be pickled."""

    condition: Condition
    columns: tuple[str, ...]  # the columns that it needs, in the order of the schema
    is_hint: bool = False  # the caller filters again: rows are left out only where that saves time
    written: Condition | None = None  # as the caller wrote it, with the same parts; None: `condition`

    @classmethod
    def for_schema(cls, filters: Any, schema: pa.Schema) -> RowFilter:
        """Make a filter, as `condition_of` takes it, for rows of a schema.

        FeatureNotFoundError if it names another column; SchemaError if it does not apply to the types of the columns,
        as text that is not a date to a column of dates, or if its values are not booleans.
        """
        written = condition_of(filters)
        named = written.columns
        places = list(map(schema.get_field_index, named))  # the names of 10^5 columns are not listed
        if -1 in places:
            missing = named[places.index(-1)]
            raise _no_such_column(missing, schema)
        try:
            condition = type_literals(written, schema)
            fields = list(map(schema.field, condition.columns))
            empty = pa.RecordBatch.from_struct_array(pa.nulls(0, pa.struct(fields)))
            values = evaluate_simple(condition, empty)
            type_ = (_evaluate(condition, empty, written) if values is None else values).type
        except SchemaError as error:
            error.of_argument = True
            raise
        if not pa.types.is_boolean(type_) and not pa.types.is_null(type_):
            raise SchemaError(f"the filter '{written.text}' is not a condition: its values are {type_}, not bool")
        return cls(condition, tuple(sorted(named, key=schema.get_field_index)), written=written)

    @property
    def words(self) -> Condition:
        """The condition for messages and `Dataset.explain`: as the caller wrote it."""
        return self.condition if self.written is None else self.written

    def __and__(self, other: RowFilter) -> RowFilter:
        columns = dict.fromkeys([*self.columns, *other.columns])
        return RowFilter(self.condition & other.condition, tuple(columns), written=self.words & other.words)

    def rename_columns(self, names: Mapping[str, str]) -> RowFilter:
        """The filter of rows whose columns have other names."""
        written = None if self.written is None else _rename(self.written, names)
        columns = tuple(names.get(name, name) for name in self.columns)
        return replace(self, condition=_rename(self.condition, names), columns=columns, written=written)

    def restrict_to(self, names: Collection[str]) -> RowFilter | None:
        """Restrict the condition to the parts that name only these columns, and some; None if it has no such part.

        Each row that passes this filter passes the restricted one, too.
        """
        parts = self.condition.conjuncts
        if all(map(attrgetter("columns"), parts)) and set(names).issuperset(self.columns):
            return self
        condition, written = (_restrict(condition, names) for condition in (self.condition, self.words))
        if condition is None:
            return None
        return RowFilter(condition, tuple(filter(set(condition.columns).__contains__, self.columns)), written=written)

    def judges_by_first_values(self, schema: Schema) -> list[str]:
        """The columns of which the condition needs the first values, or bytes, of a cell alone.

        It compares bytes or text with literals of at most 16,000 bytes, or asks whether there is a value.
        """
        parts = [*self.condition.walk()]
        values = [part.value for part in parts if part.value is not None]
        is_short = sum(pa.repeat(value, 1).nbytes for value in values) <= _MOST_BYTES
        by_beginning = is_short and self.condition.functions <= _BY_BEGINNING
        names = set(schema.names)
        fields = [schema[name] for name in self.columns if by_beginning and name in names]
        compared = {f.column for f in fields if f.is_common and Column(f.type).is_text_or_bytes}
        operands = [argument for part in parts if part.name not in _PRESENCE for argument in part.arguments]
        taken = {operand.path[0] for operand in operands if operand.kind == "field"}
        return [name for name in self.columns if name in names and (name in compared or name not in taken)]

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """A boolean for each row of a batch that has all of `columns`: true if the row passes; null counts as false."""
        values = evaluate_simple(self.condition, batch)
        if values is None:
            values = _evaluate(self.condition, batch.select(list(self.columns)), self.words).cast(pa.bool_())
        return values.fill_null(False) if values.null_count else values

    def rows(self, batch: pa.RecordBatch, values: Array) -> Array:
        """Select from `values`, one for each row of a batch, where the row fulfils the condition."""
        return values[ArrayBuffers(self.mask(batch)).numbers]

    def may_pass(
        self,
        builder: BatchBuilder | MessageBatchBuilder,
        max_expansion: int,
        columns: Mapping[str, ColumnBuffers],
        rows: int,
    ) -> Array:
        """A boolean for each row of decoded columns: true if it passes, or its evaluation is an error.

        Threads may share it; `builder` makes the columns of the filter.
        """
        may_pass = np.ones(rows, bool)

        def make(begin: int, end: int) -> Array | RowFault:
            batch = batch_or_fault(
                builder, columns, rows=rows, expansion=Expansion(max_expansion), begin=begin, end=end
            )
            return batch if isinstance(batch, RowFault) else self._mask_up_to_refused(batch)

        for begin, end, part in fitting_parts(rows, make, lambda fault: True):
            if not isinstance(part, RowFault):
                may_pass[begin:end] = part
        return may_pass

    def _mask_up_to_refused(self, batch: pa.RecordBatch) -> Array:
        """As `mask`, but true from the first row on that the condition cannot be applied to: that row ends the read."""

        def values(part: pa.RecordBatch) -> Array:
            return ArrayBuffers(self.mask(part)).numbers

        def is_refused(begin: int, end: int) -> bool:
            try:
                values(batch.slice(begin, end - begin))
            except SchemaError:
                return True
            return False

        try:
            return values(batch)
        except SchemaError:
            mask = np.ones(len(batch), bool)
            first = RowFault.first_refused(len(batch), is_refused)
            mask[:first] = values(batch.slice(0, first))
            return mask

    def select_rows(
        self, batch: pa.RecordBatch, names: Sequence[str], most: int | None
    ) -> tuple[pa.RecordBatch, Array]:
        """The columns `names` of the first `most` rows of a batch that pass, and the numbers of these rows.

        All rows, if the filter is a hint.
        """
        if self.is_hint:
            return batch.select(names), np.arange(len(batch))
        mask = self.mask(batch)
        kept = np.flatnonzero(ArrayBuffers(mask).numbers)[:most]
        batch = batch.select(names)
        if len(kept) == len(batch):
            return batch, kept
        if not names:  # a batch without columns has no rows after filtering
            return pa.RecordBatch.from_arrays([pa.nulls(len(kept))], ["x"]).select([]), kept
        last = int(kept[-1]) + 1 if len(kept) else 0
        return selectable(batch.slice(0, last)).filter(mask.slice(0, last)), kept

    def possible(self, sources: Sources, partitions: AddedColumns) -> Sources:
        """The files that can have rows which fulfil the condition, by the values in their directory names."""
        if not set(partitions.names) & set(self.columns) or not sources:
            return sources

        def are_possible(some: Sources) -> Array:
            folders, numbers = partitions.values_in(some)
            is_possible = np.zeros(len(folders), bool)
            is_possible[self._possible_folders(folders, np.arange(len(folders)))] = True
            mask: Array = is_possible[numbers]
            return mask

        may_be_in = partial(self._may_be_in, pa.schema(partitions.fields))
        return sources.select_by_folder(partitions.fields, may_be_in, are_possible)

    def _may_be_in(self, schema: pa.Schema, bounds: pa.RecordBatch) -> Array:
        """A boolean for each row of `bounds`: false if no values in them fulfil the condition.

        `schema` has the partition columns; for `Sources.select_by_folder`.
        """
        from tfrecord_io.read.filter_bounds import condition_of_bounds  # for large datasets only

        every = np.ones(len(bounds), bool)
        by_folder = self.restrict_to(schema.names)
        try:
            typed = None if by_folder is None else type_literals(by_folder.condition, schema)
            if typed is None or (condition := condition_of_bounds(typed)) is None:
                return every
            values = _evaluate(condition, bounds.select(list(condition.columns)), condition)
        except (pa.ArrowException, SchemaError):  # the error of who evaluates the condition for the rows
            return every
        return values.fill_null(True).to_numpy(zero_copy_only=False)  # null: not known

    def _possible_folders(self, folders: pa.RecordBatch, numbers: Array) -> list[int]:
        """The numbers of the folders in which the condition can be true.

        Each row of `folders` has the values of the partition columns in one folder, and its number is in `numbers`.
        Parts of the condition that need no other column are evaluated once for all folders; pyarrow simplifies the rest
        for each folder.
        """
        types, every, all_numbers = folders.schema, folders, numbers
        by_folder = self.restrict_to(types.names)
        parts = [part for part in self.condition.conjuncts if part.functions.isdisjoint(EVALUATED_HERE)]
        try:
            if by_folder is not None:
                mask = replace(by_folder, condition=type_literals(by_folder.condition, types)).mask(folders)
                numbers, folders = numbers[mask.to_numpy(zero_copy_only=False)], folders.filter(mask)
                parts = [part for part in parts if not part.columns or not set(part.columns).issubset(types.names)]
            if not parts:
                return list(numbers.tolist())
            names = dict.fromkeys([*types.names, *self.columns])
            schema = pa.schema([types.field(name) if name in types.names else (name, pa.null()) for name in names])
            condition = Condition.all_of([type_literals(part, types) for part in parts])
            return [int(numbers[row]) for row in _rows_not_excluding(condition, folders, schema)]
        except (pa.ArrowException, SchemaError):  # such as null instead of a feature, whose type is not known
            if len(every) == 1:
                return list(all_numbers.tolist())
            one_by_one = (
                self._possible_folders(every.slice(at, 1), all_numbers[at : at + 1]) for at in range(len(every))
            )
            return [number for found in one_by_one for number in found]

    @classmethod
    def files_in_folders(cls, filters: Any, sources: Sequence[Source]) -> set[str]:
        """Select the paths of files of a manifest in the folders that meet a condition on partition columns.

        Raises
        ------
        FeatureNotFoundError
            The condition names another column.
        """
        if not sources:
            return set()
        columns = AddedColumns.from_folders(sources)
        condition = cls.for_schema(filters, pa.schema(columns.fields))
        return set(condition.possible(Sources.of(sources), columns).paths)

    @staticmethod
    def add_columns(columns: Sequence[str] | str, filter_columns: Sequence[str]) -> tuple[str, ...] | None:
        """The ``columns=`` that selects the columns of a filter, too.

        >>> RowFilter.add_columns(["!image", "!id"], ["id"])
        ('*', '!image', 'id')
        """
        if any(name.startswith("!") for name in filter_columns):  # which no entry selects
            return None
        entries = Projection.entries(columns)
        kept = [entry for entry in entries if entry.removeprefix("!") not in filter_columns]
        only_excludes = bool(entries) and all(entry.startswith("!") for entry in entries)
        return ("*", *kept, *filter_columns) if only_excludes else (*kept, *filter_columns)


def _rows_not_excluding(condition: Condition, known: pa.RecordBatch, schema: pa.Schema) -> list[int]:
    """The numbers of the rows of `known` with whose values a condition on columns of `schema` can still be true.

    pyarrow decides this for the fragments of a dataset: each row is one of no file, whose path is the row's number.
    """
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    fields, format_, files = list(map(pc.field, known.schema.names)), ds.IpcFileFormat(), LocalFileSystem()
    fragments = []
    for number, row in enumerate(zip(*known.columns, strict=True)):
        guarantee = pc.scalar(True)
        for field, value in zip(fields, row, strict=True):
            guarantee &= (field == value) if value.is_valid else field.is_null()
        fragments.append(format_.make_fragment(str(number), files, partition_expression=guarantee))
    dataset = ds.FileSystemDataset(fragments, schema, format_, files)
    return [int(fragment.path) for fragment in dataset.get_fragments(condition.expression)]


def _rename(condition: Condition, names: Mapping[str, str]) -> Condition:
    """A condition in which columns have other names, by their names here."""
    if condition.kind == "field":
        column, *fields = condition.path
        return replace(condition, path=(names.get(column, column), *fields))
    return condition.replace_arguments([_rename(argument, names) for argument in condition.arguments])


def _restrict(condition: Condition, names: Collection[str]) -> Condition | None:
    """The parts of a condition that name columns, and only these; None if there are none."""
    parts = [part for part in condition.conjuncts if part.columns and all(name in names for name in part.columns)]
    return Condition.all_of(parts) if parts else None


def _advice_without_column(name: str) -> tuple[str, str] | None:
    """Advice about what was written where a condition has its column, in Python and for the command, if any.

    >>> _advice_without_column("x % 2")[1]
    'a condition compares a column with a value, and computes nothing, but tfr sql does'
    """
    if re.match(r"(?i)not[\s(]", name):
        reason = 'a condition has no NOT: use != or "not in"'
        return f"{reason}, or pass an expression of pyarrow", reason
    if re.search(r"\s[-+*/%]\s|\w\(", name):
        reason = "a condition compares a column with a value, and computes nothing"
        return f"{reason}: pass an expression of pyarrow", f"{reason}, but tfr sql does"
    return None


def _no_such_column(name: str, schema: pa.Schema) -> FeatureNotFoundError:
    """The error for a column that does not exist, whose name may be what a condition in text cannot have."""
    hint, hint_cli = did_you_mean(name, schema.names, lists_names=True), None
    if (advice := _advice_without_column(name)) is not None:
        hint, hint_cli = (f"{text}; {hint}" for text in advice)
    reason = "the filter names a column that does not exist"
    return FeatureNotFoundError(reason, feature=name, hint=hint, hint_cli=hint_cli)


def _evaluate(condition: Condition, batch: pa.RecordBatch, written: Condition) -> pa.Array:
    """The values of a condition for the rows of a batch, in their order; errors show it as it was written."""
    from pyarrow import acero

    if not condition.functions.isdisjoint(EVALUATED_HERE):
        condition, batch = _evaluate_here(condition, batch)
    batch = cast_comparable_columns(batch)
    if not batch.num_columns:  # a table without columns loses its rows
        batch = pa.RecordBatch.from_arrays([pa.nulls(len(batch))], [""])
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([batch])))
    values = acero.Declaration("project", acero.ProjectNodeOptions([condition.expression], ["value"]), [source])
    try:
        return values.to_table(use_threads=False).column(0).combine_chunks()  # threads would change the order
    except pa.ArrowException as error:
        types = r"Function '\w+' has no kernel matching input types \((.*)\)"
        reason = re.sub(types, r"no such operation on the types \1", str(error).partition("\n")[0])
        text = f"the filter '{written.text}' cannot be applied: {reason}"
        raise SchemaError(text, hint="cast the column or the value") from error


def _evaluate_here(condition: Condition, batch: pa.RecordBatch) -> tuple[Condition, pa.RecordBatch]:
    """The condition with a further column of the batch for the values of each call that Arrow has no function for.

    SchemaError if an operand does not apply to the column.
    """
    added: dict[str, pa.Array] = {}

    def replace_calls(part: Condition) -> Condition:
        evaluate = EVALUATED_HERE.get(part.name)
        if evaluate is None:
            return part.replace_arguments([replace_calls(argument) for argument in part.arguments])
        name = f"\0{len(added)}"
        while name in batch.schema.names:
            name += "\0"
        added[name] = evaluate(part, batch)
        return Condition("field", path=(name,))

    of_columns = replace_calls(condition)
    arrays, names = [*batch.columns, *added.values()], [*batch.schema.names, *added]
    return of_columns, pa.RecordBatch.from_arrays(arrays, names)


def _matches(part: Condition, batch: pa.RecordBatch) -> pa.Array:
    """A boolean for each list: true if it has a value that is equal to the literal; null where it is missing."""
    import pyarrow.compute as pc

    (column, *inner), literal = part.arguments[0].path, part.arguments[1]
    lists = batch.column(column)
    for name in inner:
        lists = pc.struct_field(lists, name)
    items = pa.RecordBatch.from_arrays([lists.flatten()], [column])
    equal = Condition("call", "equal", arguments=(Condition("field", path=(column,)), literal))
    condition = type_literals(equal, items.schema)
    hits = np.asarray(_evaluate(condition, items, part).fill_null(False))
    ends = np.cumsum(np.asarray(lists.value_lengths().fill_null(0)), dtype=np.int64)
    counts = np.diff(np.concatenate(([0], np.cumsum(hits)))[np.concatenate(([0], ends))])
    return pa.array(counts > 0, mask=np.asarray(lists.is_null()))


# Functions of operators that Arrow does not have: each takes its call and a batch, and returns a boolean for each row.
EVALUATED_HERE: dict[str, Callable[[Condition, pa.RecordBatch], pa.Array]] = {
    operator.function: _matches for operator in Operator.ALL if operator.symbol == "contains"
}
