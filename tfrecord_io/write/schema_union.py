"""The schema of a dataset after rows are added to it.

Tests: tests/store/write/test_write_modes.py and tests/laws/test_wide_tables.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from tfrecord_io.columns import Column, EmbeddedSchema
from tfrecord_io.errors import SchemaError
from tfrecord_io.write.partition_folders import folder_texts, folder_values


@dataclass(frozen=True, slots=True)
class SchemaUnion:
    """Unites a dataset's schema with the schema of added rows; `evolve` allows new columns and wider types.

    `where` has the values of partition columns of which all folders are replaced.
    """

    evolve: bool = False
    where: Mapping[str, Any] | None = None

    folder_values = staticmethod(folder_values)

    def replaced_values(self, own: bytes, schema: bytes | None) -> frozenset[tuple[str, object]]:
        """The columns and values of `where`, by the schemas of what is written and of the dataset."""
        return folder_values(folder_texts(self.where or {}, EmbeddedSchema.parse(own).schema).items(), schema)

    def __call__(
        self, old: bytes | None, new: bytes | None, path: str, *, without_rows: bool = False, adds_rows: bool = True
    ) -> bytes | None:
        """The schema of both; `path` is that of the manifest.

        Without a schema of the dataset there is nothing to compare, and it stays without one; as it stays if both are
        equal, or nothing was written. Of a dataset `without_rows` the categories are those of the first rows.

        Raises
        ------
        SchemaError
            The types of a column have none in common; or, without `evolve`, the rows have columns that the dataset
            lacks, types that are wider than its own, values in another form, or lack a level of its index.
        """
        if old is None or old == new or (new is None and not adds_rows):
            return old
        if new is None:
            raise SchemaError("the dataset has a schema, but the appended data has none", path=path)
        dataset, rows = EmbeddedSchema.parse(old, path), EmbeddedSchema.parse(new, path)
        if without_rows:
            dataset = dataset._replace(dictionaries=rows.dictionaries)
        elif not adds_rows:
            rows = rows._replace(dictionaries=dataset.dictionaries)
        united = dataset.merge(rows)
        if not self.evolve:
            _check_index_levels(dataset.schema, rows.schema, path)
        if united is not dataset:
            stored, added = ({field.name: field for field in schema.schema} for schema in (dataset, rows))
            for field in united.schema:
                column = _United(stored.get(field.name), added.get(field.name), field, field.name in united.conflicts)
                difference = column.difference()
                if difference is not None and (column.conflicts or not self.evolve):
                    raise column.error(difference, path)
        return old if united is dataset and not without_rows else united.pack()


def _check_index_levels(dataset: pa.Schema, rows: pa.Schema, path: str) -> None:
    """Refuse rows that lack a level of the index of the dataset."""
    for level in EmbeddedSchema.index_levels(dataset):
        if level not in rows.names:
            reason = "it is a level of the dataset's index, which the appended data lacks"
            index = "set it as the index, pass index=True, or pass evolve=True to append rows without labels"
            index_cli = "set it as the index, pass --index true, or pass --evolve to append rows without labels"
            raise SchemaError(reason, path=path, feature=level, hint=index, hint_cli=index_cli)


class _Difference(NamedTuple):
    """The reason why a column cannot be added as it is."""

    reason: str
    advice: str
    to_unite: str | None = None  # what evolve=True does


class _United(NamedTuple):
    """A column in the dataset, in the added rows, and in both."""

    before: pa.Field | None
    appended: pa.Field | None
    united: pa.Field
    conflicts: bool  # no type holds both

    @property
    def _dataset_lacks_type(self) -> bool:
        """True if the types differ only where the dataset has none, as in a column whose lists are all empty."""
        before, appended = self.before, self.appended
        if before is None or appended is None or before.type == appended.type:
            return False
        return Column(before.type).lacks_only_values(appended.type)

    def difference(self) -> _Difference | None:
        """How the added column differs from that of the dataset; None if it can be added as it is."""
        before, appended, united = self.before, self.appended, self.united
        if before is None and not self.conflicts:
            return _Difference("the dataset has no such column", "leave it out", "add it")
        got = None if appended is None else appended.type
        types = f"the appended column is {got}, but the dataset's is {None if before is None else before.type}"
        is_same = before is not None and before.type == got
        if self.conflicts and is_same:
            return _Difference(
                f"{types}, stored in another form", "pass its schema=, record_type= and column_encoding="
            )
        if self.conflicts and self._dataset_lacks_type:
            return _Difference(f"{types}, without a type of items", "write the dataset again")
        if self.conflicts or before is None:
            return _Difference(f"{types}: no type holds both", "cast the column")
        if is_same and united.type != got:
            reason = "its ordered categories are not those of the dataset"
            return _Difference(reason, "give it the same", "have values without categories")
        if is_same and Column(before).encoding != Column.BY_WIRE == Column(united).encoding:
            reason = f"the appended column is {got}, too, but it is stored in another form"
            advice = "pass the float64= and column_encoding= of the dataset"
            return _Difference(reason, advice, "store both forms")
        if before.type != united.type and not pa.types.is_null(before.type):
            return _Difference(f"{types}, which is narrower", "cast the column", "widen it")
        if united.nullable and not before.nullable:
            return _Difference("the dataset requires this column", "fill its nulls", "allow them")
        return None

    def error(self, difference: _Difference, path: str) -> SchemaError:
        """The error of rows that cannot be added to the dataset whose manifest has this path."""
        before, appended = self.before, self.appended
        hint = hint_cli = difference.advice
        if self.conflicts and before is not None and (appended is None or before.type != appended.type):
            type_ = appended.type if appended is not None and self._dataset_lacks_type else before.type
            hint_cli = f"{hint} (tfr convert: {Column.declaration(self.united.name, str(type_))[1]})"
            hint = f"{hint}, with schema=" if self._dataset_lacks_type else hint
        if difference.to_unite is not None:
            hint, hint_cli = (
                f"{difference.advice}, or {evolve} to {difference.to_unite}"
                for evolve in ("pass evolve=True", "--evolve")
            )
        expected, got = (None if field is None else str(field.type) for field in (before, appended))
        return SchemaError(
            difference.reason,
            path=path,
            feature=self.united.name,
            expected=expected,
            got=got,
            hint=hint,
            hint_cli=hint_cli,
        )
