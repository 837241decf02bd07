"""The request that all attempts at a plan of a read share, and the assumptions in which they differ.

`PlanRequest` says which files, columns and rows are wanted, and makes the `Scan` of a schema. `UnitedSchemas` looks for
the embedded schemas of all files, once. `tfrecord_io.read.resolve_schema` attempts plans with them.

Tests: tests/read/test_resolve_schema.py and tests/read/test_reader_schema.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrecord_io.base import ScanOptions, Selection, cached_property
from tfrecord_io.bytes import FeatureColumns, RecordType
from tfrecord_io.columns import EmbeddedSchema, NamePattern, Overrides, Projection, Schema
from tfrecord_io.read.added_columns import AddedColumns
from tfrecord_io.read.chunks.embedded_schemas import first_contents, unite_embedded
from tfrecord_io.read.scan import ResolvedSchema, Scan
from tfrecord_io.store import Sources

if TYPE_CHECKING:
    from tfrecord_io.columns import KindCount, Observation


class Assumptions(NamedTuple):
    """The assumptions of decoding. The records may disprove each assumption once, in one direction."""

    record_type: RecordType  # DETECT may become SEQUENCE_EXAMPLE
    fold_tensors: bool  # whether companion features are read, and turn bytes into tensors; may become False
    embedded: EmbeddedSchema | None = None  # grows as files have more columns
    # Whether features of files without an embedded schema become columns in addition to those of `embedded`.
    unites: bool = False
    # The features with values of different kinds, where records may be left out: the first kind is read.
    contested: Mapping[FeatureColumns.Name, Sequence[KindCount]] = MappingProxyType({})
    # The features with values of different kinds whose type ``schema_overrides=`` declares, and what they showed.
    declared: Mapping[str, Observation] = MappingProxyType({})


def has_declared_schema(options: ScanOptions) -> bool:
    """True if ``schema=`` declares the types."""
    return options.schema is not None and not (isinstance(options.schema, str) and options.schema == "infer")


class PlanRequest:
    """The files, options and selection that a plan is made for; no attempt changes them.

    Attributes
    ----------
    all_sources, sources : Sources
        All files, and those that can have rows which pass the filter.
    options : ScanOptions
        With the ``schema_overrides=`` of features only: those of partition columns are applied.
    requested, selection : Selection
        What is delivered, but for the column of file paths; and what is decoded for that, without the filter.
    partitions : AddedColumns
    whole, with_index : bool
        See `Scan`.
    with_evidence : bool
        True to keep the evidence for an inferred schema.

    `narrow` are the options and the selection as the caller stated them, if ``schema=`` was completed since by shapes
    or by the columns of the filter; else None. The `Scan` keeps them, as what it delivers is no more than that.
    """

    def __init__(
        self,
        sources: Sources,
        options: ScanOptions,
        selection: Selection,
        *,
        whole: bool,
        with_index: bool,
        with_evidence: bool,
        narrow: tuple[ScanOptions, Selection] | None,
    ) -> None:
        self.all_sources = self.sources = sources
        self.whole, self.with_index, self.with_evidence = whole, with_index, with_evidence
        self._narrow = narrow
        self.partitions, self.options = AddedColumns(), options
        if sources.have_partitions:
            self.partitions, self.options = _apply_overrides_to_partitions(sources, options)
        self.requested, self._all_columns = selection, None
        if options.include_file_paths is not None:
            self.requested, self._all_columns = _split_off_paths(selection, options.include_file_paths)
        self.selection = self.requested
        if selection.filters is not None:
            if self.partitions.fields and not selection.offset:  # which counts the records of all files
                self.sources = self._possible_sources()
            self.selection = self._selection_without_filter()

    def replace_schema(self, schema: Schema) -> PlanRequest:
        """The request with another ``schema=``."""
        request = copy(self)
        request.options = self.options.changed(schema=schema)
        return request

    def _possible_sources(self) -> Sources:
        """The files that can have rows which pass the filter, by their partition columns."""
        from tfrecord_io.read.row_filter import RowFilter

        filters, partitions = self.requested.filters, self.partitions
        assert filters is not None
        if has_declared_schema(self.options):
            partitions, _ = partitions.declare_types(Schema.parse(self.options.schema), self.all_sources)
        possible = RowFilter(filters, filters.columns).possible(self.all_sources, partitions)
        return possible or self.all_sources[:1]  # a file has the schema of no rows

    def _selection_without_filter(self) -> Selection:
        """The selection to decode all rows with the columns of the filter, which is applied to them."""
        from tfrecord_io.read.row_filter import RowFilter

        assert self.requested.filters is not None
        columns, names = self.requested.columns, self.requested.filters.columns
        if columns is not None:
            columns = RowFilter.add_columns(
                columns, [name for name in names if name != self.options.include_file_paths]
            )
        return self.requested._replace(columns=columns, filters=None, limit=None)

    @property
    def is_pruned(self) -> bool:
        """True if the filter leaves out files by their partition columns."""
        return len(self.sources) < len(self.all_sources)

    @property
    def reads_all(self) -> bool:
        """True if all records are read: a file that the schema does not cover is found in time to begin again."""
        requested = self.requested
        is_part = requested.offset or requested.limit is not None or not self.options.damage.is_strict
        return self.whole and not is_part and not self.is_pruned

    @cached_property
    def projection(self) -> Projection:
        """Selects the features to decode."""
        return Projection(self.selection.columns)

    def scan(self, resolved: ResolvedSchema, **known: Any) -> Scan:
        """The scan under a schema; `known` are fields of it."""
        fields = {"partitions": self.partitions, "with_index": self.with_index, **known}
        scan = Scan(self.sources, self.options, self.selection, resolved, **fields)
        filters = self.requested.filters
        if filters is None and self._all_columns is None:
            return scan
        from tfrecord_io.read.row_filter import RowFilter

        columns, requested_only = self.requested.columns, scan
        if columns != self.selection.columns:  # the filter needs more; else nothing else is compiled
            selection = self.selection._replace(columns=columns)
            requested_only = Scan(self.sources, self.options, selection, resolved, **fields)
        names, index_levels = requested_only.schema.names, requested_only.compiled.added_index
        if self._all_columns is not None:
            names = [*self._all_columns.order(names), *index_levels]
        return replace(
            scan,
            selection=self.selection._replace(limit=self.requested.limit),
            narrow=self._narrow,
            selected=None if names == scan.schema.names else tuple(names),
            index_levels=tuple(index_levels),
            row_filter=None if filters is None else RowFilter.for_schema(filters, scan.schema),
        )

    def check_names(self, features: Schema | Collection[str]) -> None:
        """Check that the files have the requested columns, given the names of all features."""
        if self.requested.columns is None and not self.partitions.fields:
            return
        names = features.names if isinstance(features, Schema) else list(features)
        if self.partitions.fields:
            self.partitions.refuse_features(names, self.sources)
            names = [*names, *self.partitions.names]
        Projection(self.requested.columns).check(names)

    def override_types(
        self, schema: Schema, *, of: Collection[str] | None = None, left_out: Iterable[str] = ()
    ) -> Schema:
        """Apply ``schema_overrides=`` to the schema, or only its keys that match a column in `of`.

        Keys that name only features that are `left_out` by ``columns=`` declare no column.
        """
        overrides = self.options.schema_overrides
        if not overrides:
            return schema
        names = {*schema.names}
        if of is not None:
            overrides = {key: type_ for key, type_ in overrides.items() if NamePattern(key).matches_any(of)}
        elif left_out := set(left_out) - names:
            keys = [
                key
                for key in overrides
                if NamePattern(key).matches_any(names) or not NamePattern(key).matches_any(left_out)
            ]
            overrides = {key: overrides[key] for key in keys}
        if not overrides:
            return schema
        return Overrides(overrides).apply(schema, of_records=True)


def _apply_overrides_to_partitions(sources: Sources, options: ScanOptions) -> tuple[AddedColumns, ScanOptions]:
    """The partition columns, with the types of ``schema_overrides=``, and the options with the other overrides."""
    partitions, overrides = AddedColumns.from_folders(sources).override_types(options.schema_overrides, sources)
    return partitions, options.changed(schema_overrides=overrides or None)


def _split_off_paths(selection: Selection, paths: str) -> tuple[Selection, Projection | None]:
    """The selection without the column of file paths and, where ``columns=`` names that one, the order of all."""
    entries = selection.columns or ()
    if paths not in entries and f"!{paths}" not in entries:
        return selection, None
    columns = tuple(entry for entry in entries if entry.removeprefix("!") != paths)
    return selection._replace(columns=columns if columns or paths in entries else None), Projection(entries)


class UnitedSchemas:
    """The schema that covers the embedded schemas of all files, which are looked for once, when first wanted.

    So a type and the order of the columns do not depend on which files are read: it begins with the manifest, or else
    with the first of all files. Where these have no common type for a column, it has that of the files which the filter
    leaves.
    """

    def __init__(self, request: PlanRequest, found: EmbeddedSchema | None = None, *, is_found: bool = False) -> None:
        self._request = request
        self.found = found  # None: not looked for, or no file has one
        self.is_found = is_found  # whether the files were looked at

    def unite(self, embedded: EmbeddedSchema | None, begin: int = 0) -> EmbeddedSchema | None:
        """The schema that covers `embedded` and those of all files; None if there is none.

        The first `begin` files have been looked at, and have `embedded`: one that is open is not opened again.
        """
        if not self.is_found:
            self.is_found = True
            self.found = self._find(embedded, begin)
        if self.found is None or embedded is None:
            return embedded or self.found

        return self.found.merge(embedded)

    def unite_stated(self, embedded: EmbeddedSchema | None) -> EmbeddedSchema | None:
        """The schema that covers `embedded`, of the first record, and those that are known without opening a file.

        A source without rows has no record that carries its schema.
        """
        sources = self._request.all_sources
        if sources.are_of_manifest:  # which states none, or no record was read
            return embedded
        schemas = [(source.path, source.stated_schema) for source in sources]
        if all(schema is None for _, schema in schemas):
            return embedded
        first = None if embedded is None or embedded.content is None else (embedded.content, embedded.path)
        contents = [schema or first for path, schema in schemas if schema or (first and path == first[1])]
        united = unite_embedded(None, filter(None, contents))
        return united if united is None or embedded is None else united.merge(embedded)

    def _find(self, embedded: EmbeddedSchema | None, begin: int) -> EmbeddedSchema | None:

        request, sources = self._request, self._request.all_sources
        if sources.are_of_manifest:  # which are not looked at one by one
            are_stated = sources.have_stated_schemas
        else:
            are_stated = any(source.stated_schema is not None for source in sources[:begin] or sources)
        begins = not are_stated and sources[:begin] == request.sources[:begin]
        rest = sources[begin:] if begins else sources
        united = unite_embedded(embedded if begins else None, first_contents(rest, request.options))
        if united is None or not united.conflicts or not request.is_pruned:
            return united
        of_read_files = unite_embedded(None, first_contents(request.sources, request.options))
        return united if of_read_files is None else united.prefer(of_read_files)
