"""How a source of another format is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrecord_io.arrow.expressions import expression_columns
from tfrecord_io.errors import SchemaError
from tfrecord_io.options import DEFAULT_STORAGE, ReadOptions, StorageOptions
from tfrecord_io.options.filters import parse_filters
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.row_filter import with_filter_columns
from tfrecord_io.schema.column_selection import Projection
from tfrecord_io.storage.read.source import Source, total
from tfrecord_io.typing import ProgressLike, SchemaLike

Columns = Sequence[str] | str | None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How a source of another format is read: the keywords of `tfrecord_io.convert` that concern it."""

    storage: StorageOptions = DEFAULT_STORAGE
    columns: Columns = None
    filters: Any = None  # for which other columns are needed, too
    schema: SchemaLike | None = None  # of the target; text is parsed as its types
    schema_overrides: Mapping[str, Any] | None = None  # types of single columns, for formats that have none
    delimiter: str | None = None  # of CSV
    null_values: Sequence[str] = ("",)  # of CSV
    progress: ProgressLike = False  # of formats whose files are read in order
    source: Mapping[str, Any] = field(default_factory=dict)  # keywords of the function that reads this format
    max_features: int = ReadOptions.max_features  # columns, or fields of nested ones
    max_expansion: int = ReadOptions.max_expansion  # of rows with few of many columns

    @property
    def streamed(self) -> Columns:
        """The columns of a stream that is made before their names are known: with a filter, all."""
        return self.columns if self.filters is None else None

    def projection(self, names: Sequence[str]) -> Projection:
        """The columns to read of these: the selected ones, and those of the filter; all, if it names others."""
        needed = () if self.filters is None else expression_columns(parse_filters(self.filters))
        if not set(needed) <= set(names):
            return Projection(None)
        return Projection(with_filter_columns(self.columns, needed) if needed else self.columns)

    def check_count(self, count: int, path: str) -> None:
        """Raise SchemaError if a file has more than `max_features` columns or fields, of which `count` are known."""
        if count > self.max_features:
            reason = f"more than {self.max_features} different columns or fields"
            advice = "raise max_features= if they are intended"
            raise SchemaError(reason, path=path, expected=self.max_features, got=count, advice=advice)

    def meter(self, sources: Sequence[Source]) -> ProgressMeter:
        """The progress of reading these files."""
        return ProgressMeter(self.progress, total(source.size for source in sources), "bytes")
