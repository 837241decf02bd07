"""Parts of a manifest change nothing: filters on folders, replaced folders and removed files are as without parts."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.columns import EmbeddedSchema
from tfrecord_io.read import AddedColumns
from tfrecord_io.read.row_filter import RowFilter
from tfrecord_io.store.filesystem.interface import LocalFileSystem
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.history import History, merge
from tfrecord_io.store.paths.manifest import Manifest
from tfrecord_io.store.paths.manifest_files import ManifestColumns, all_files
from tfrecord_io.store.paths.manifest_parts import PartedFiles, StoredPart, pack
from tfrecord_io.store.paths.manifest_sources import ManifestSources
from tfrecord_io.store.read.source import ManifestFile
from tfrecord_io.store.write.write_modes import ReplaceFolders
from tfrecord_io.write.schema_union import SchemaUnion

ID = "0123456789abcdef"
TYPES: dict[pa.DataType, list[str | None]] = {
    pa.int64(): ["7", "07", "-1", "0", "10", "123456789012345678", None],
    pa.int8(): ["7", "007", "100", "-3"],
    pa.string(): ["7", "07", "x", "é", "a/b", "100%", "", None, "y" * 70],
    pa.date32(): ["2024-01-01", "1969-12-31", "2024-10-02", None],
    pa.float64(): ["1", "1.0", "1e0", "-0.0", "0", "1.5", None],
    pa.bool_(): ["true", "false", None],
}


class Layout:
    """A dataset of some files in folders, one by one and in parts."""

    def __init__(self, types: dict[str, pa.DataType], rows: list[tuple[Any, ...]], ends: list[int], tail: bool) -> None:
        self.fields = tuple(pa.field(name, type_) for name, type_ in types.items())
        self.schema = EmbeddedSchema.of(pa.schema(self.fields)).pack()
        self.columns = tuple(types)
        self.files = tuple(
            ManifestFile(f"{self.folder(row)}/part-{at:05d}-{ID}.tfrecord", at % 3, 100 + at, at)
            for at, row in enumerate(rows)
        )
        bounds = sorted({0, len(rows), *(end for end in ends if end < len(rows))})
        pieces: list[Any] = []
        for first, end in pairwise(bounds):
            files = self.many[first:end]
            pieces.append(files if tail and end == len(rows) else self.part(files))
        self.parted = PartedFiles(pieces)

    def folder(self, row: tuple[Any, ...]) -> str:
        return "/".join(ColumnFolder(*pair).name for pair in zip(self.columns, row, strict=True))

    @property
    def many(self) -> ManifestColumns:
        files = ManifestColumns.of(self.files)
        assert files is not None
        return files

    def part(self, files: ManifestColumns) -> StoredPart:
        return StoredPart(pack(files, "part")[0], files=files)

    def sources(self, files: Any) -> ManifestSources:
        manifest = Manifest("part", ID, files, partition_by=self.columns, partition_schema=self.schema)
        sources = ManifestSources.of_manifest(LocalFileSystem(), "data/_MANIFEST.json", manifest)
        assert sources is not None
        return sources


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    types = {name: draw(st.sampled_from([*TYPES])) for name in draw(st.sampled_from([["a"], ["a", "b"]]))}
    values = st.tuples(*(st.sampled_from(TYPES[type_]) for type_ in types.values()))
    rows = draw(st.lists(values, min_size=1, max_size=8))
    if draw(st.booleans()):
        rows.sort(key=repr)
    return Layout(types, rows, draw(st.lists(st.integers(1, 8), max_size=4)), draw(st.booleans()))


@st.composite
def filters(draw: st.DrawFn, layout: Layout) -> Any:
    field = draw(st.sampled_from(layout.fields))
    texts = draw(st.lists(st.sampled_from([t for t in TYPES[field.type] if t is not None]), min_size=1, max_size=3))
    literals = [pa.scalar(text).cast(field.type) for text in texts]
    kind, column = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "null", "~", "and", "or"])), pc.field
    if kind == "in":
        return column(field.name).isin(pa.array([literal.as_py() for literal in literals], field.type))
    if kind == "null":
        return column(field.name).is_null()
    if kind == "~":
        return ~draw(filters(layout))
    if kind in ("and", "or"):
        first, second = draw(filters(layout)), draw(filters(layout))
        return first & second if kind == "and" else first | second
    return {
        "==": column(field.name) == literals[0],
        "!=": column(field.name) != literals[0],
        "<": column(field.name) < literals[0],
        "<=": column(field.name) <= literals[0],
        ">": column(field.name) > literals[0],
        ">=": column(field.name) >= literals[0],
    }[kind]


@given(st.data())
def test_a_filter_on_folders_finds_the_same_files(data: st.DataObject) -> None:
    layout = data.draw(layouts())
    condition = data.draw(filters(layout), label="filter")
    row_filter = RowFilter.for_schema(condition, pa.schema(layout.fields))
    partitions = AddedColumns(layout.fields)
    plain, parted = layout.sources(layout.many), layout.sources(layout.parted)
    expected = row_filter.possible(plain, partitions)
    assert row_filter.possible(plain[1:], partitions).paths == row_filter.possible(parted[1:], partitions).paths
    found = row_filter.possible(layout.sources(layout.parted), partitions)
    assert found.paths == expected.paths
    assert (found.bytes, found.stated_records) == (expected.bytes, expected.stated_records)
    assert found[:1].paths == expected[:1].paths
    assert found.take(np.arange(len(found))[::-1]).paths == expected.paths[::-1]
    if len(found):
        assert len(pickle.loads(pickle.dumps(found))) == len(expected)


@given(layouts(), st.data())
def test_folders_that_are_replaced_are_the_same(layout: Layout, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.sampled_from(TYPES[f.type]) for f in layout.fields)), max_size=2))
    own_files = tuple(ManifestFile(f"{layout.folder(row)}/part-00009-{ID}.tfrecord", 1, 1, 1) for row in rows)
    where = None
    if data.draw(st.booleans()):
        field = data.draw(st.sampled_from(layout.fields))
        text = data.draw(st.sampled_from(TYPES[field.type]))
        where = {field.name: None if text is None else pa.scalar(text).cast(field.type).as_py()}
    own = Manifest("part", ID, own_files, partition_by=layout.columns, partition_schema=layout.schema)
    change = ReplaceFolders(SchemaUnion(where=where), layout.columns)
    kept = change._remaining_files(layout.files, own, layout.schema)
    assert change._remaining_files(layout.many, own, layout.schema) == kept
    parted = change._remaining_files(layout.parted, own, layout.schema)
    assert isinstance(parted, PartedFiles)
    assert tuple(parted) == kept
    untouched = [part for part in layout.parted.parts if part in parted.parts]
    gone = {*layout.files} - {*kept}
    touched = [p for p in layout.parted.pieces if isinstance(p, StoredPart) and gone.intersection(tuple(p.files))]
    assert len(untouched) == len(layout.parted.parts) - len(touched)


@given(layouts(), st.lists(st.integers(0, 7), max_size=4))
def test_questions_about_some_files_have_the_same_answers(layout: Layout, numbers: list[int]) -> None:
    listed, wanted = all_files(layout.files), [at for at in numbers if at < len(layout.files)]
    paths = [layout.files[at].path for at in wanted]
    plain = Manifest("part", ID, layout.files, partition_by=layout.columns)
    folders = {path.rpartition("/")[0] for path in paths} | {"a=none"}
    for files in (layout.many, layout.parted):
        manifest = plain._replace(files=files)
        assert files.numbers_of([*paths, "a=7/none"]) == [*wanted, None]
        assert files.rows_before(wanted) == listed.rows_before(wanted)
        assert files.folders_among(folders) == listed.folders_among(folders)
        assert files.leave_out_folders(folders) == listed.leave_out_folders(folders)
        assert manifest.first_rows(paths) == plain.first_rows(paths)
        assert manifest.files_of(paths) == plain.files_of(paths)
        assert manifest.folders_without(paths) == plain.folders_without(paths)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=6), st.data())
def test_runs_between_files_are_those_of_all_rows(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    rows = [commit for commit, count in runs for _ in range(count)]
    history = History(3, runs=merge(runs))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=6)))[: 2 * (len(runs) // 2)]
    files = [(begin, end - begin) for begin, end in zip(cuts[::2], cuts[1::2], strict=False)]
    found = [*history.split_at(files, len(rows))]
    assert len(found) == len(files) + 1
    pieces = [[commit for commit, count in piece for _ in range(count)] for pair in found for piece in pair]
    assert [commit for piece in pieces for commit in piece] == (rows if history.runs else [0] * len(rows))
    assert list(map(len, pieces[1::2])) == [*(count for _, count in files), 0]
