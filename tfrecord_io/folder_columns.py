"""Columns that folders stand for: ``data/label=cat/part-00000.tfrecord`` gives ``label`` to all rows of its file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.projection import Projection
from tfrecord_io.storage.sources import Source

_INTEGER = re.compile(r"-?[0-9]+")
_LEAST, _MOST = -(2**63), 2**63 - 1


class FolderColumns:
    """The columns of the folders that files are in, behind the features; one that no file's folders name has none.

    int64 where all values are integers, else string; null where a file is in no such folder.

    Attributes
    ----------
    names : list of str
        Of all of them, also of those that are not wanted.
    """

    def __init__(self, sources: Sequence[Source], wanted: Projection) -> None:
        self._sources = sources
        self.names = list(dict.fromkeys(name for source in sources for name, _ in source.partitions))
        self._fields = [self._field(name) for name in self.names if wanted(name)]
        self._projection = wanted
        self._schema: pa.Schema | None = None

    def _field(self, name: str) -> pa.Field:
        values = {value for source in self._sources for each, value in source.partitions if each == name and value is not None}
        whole = bool(values) and all(_INTEGER.fullmatch(v) and _LEAST <= int(v) <= _MOST for v in values)
        return pa.field(name, pa.int64() if whole else pa.string())

    def refuse_features(self, features: Iterable[str]) -> None:
        """A feature and a folder may not give one column.

        Raises
        ------
        SchemaError
        """
        for name in features:
            if name in self.names:
                source = next(s for s in self._sources if any(each == name for each, _ in s.partitions))
                value = next(value for each, value in source.partitions if each == name)
                raise SchemaError(
                    f"a feature and the folder '{name}={value}' both give a column of this name",
                    path=source.path,
                    feature=name,
                    advice="rename the folders, or read their files by an explicit list",
                )

    def extended(self, schema: pa.Schema) -> pa.Schema:
        """The schema with these columns: at the end, or where the projection says."""
        if not self._fields:
            return schema
        fields = {field.name: field for field in [*schema, *self._fields]}
        order = self._projection.order(list(fields))
        self._schema = pa.schema([fields[n] for n in dict.fromkeys([*order, *fields])], metadata=schema.metadata)
        return self._schema

    def add_to(self, batch: pa.RecordBatch, file: int) -> pa.RecordBatch:
        """The batch, of rows of one file, with these columns."""
        if self._schema is None:
            return batch
        values = dict(self._sources[file].partitions)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for field in self._fields:
            value = values.get(field.name)
            found = int(value) if value is not None and pa.types.is_int64(field.type) else value
            columns[field.name] = pa.repeat(pa.scalar(found, field.type), len(batch))
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)
