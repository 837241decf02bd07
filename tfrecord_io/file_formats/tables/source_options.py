"""How a source of another format is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrecord_io.options import DEFAULT_STORAGE, StorageOptions
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.storage.read.source import Source, total
from tfrecord_io.typing import ProgressLike, SchemaLike

Columns = Sequence[str] | str | None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How a source of another format is read: the keywords of `tfrecord_io.convert` that concern it."""

    storage: StorageOptions = DEFAULT_STORAGE
    columns: Columns = None
    schema: SchemaLike | None = None  # of the target; text is parsed as its types
    schema_overrides: Mapping[str, Any] | None = None  # types of single columns, for formats that have none
    delimiter: str | None = None  # of CSV
    null_values: Sequence[str] = ("",)  # of CSV
    progress: ProgressLike = False  # of formats whose files are read in order
    source: Mapping[str, Any] = field(default_factory=dict)  # keywords of the function that reads this format

    def meter(self, sources: Sequence[Source]) -> ProgressMeter:
        """The progress of reading these files."""
        return ProgressMeter(self.progress, total(source.size for source in sources), "bytes")
