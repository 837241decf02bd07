"""Bounds of the values in folders are those of all of them, and leave out no folder that is looked for."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.columns import EmbeddedSchema
from tfrecord_io.store.paths.column_folder import FEW_FOLDERS, ColumnFolder
from tfrecord_io.store.paths.folder_bounds import FolderBounds, SoughtFolders
from tfrecord_io.write.partition_folders import folder_values


def test_bounds_are_of_texts_and_of_integers() -> None:
    found = FolderBounds.from_folders(["a=7/b=x", "a=10/b=%C3%A9", "a=-03/b=__HIVE_DEFAULT_PARTITION__"])
    assert found == {
        "a": FolderBounds(("-03", "7"), (-3, 10), nulls=False),
        "b": FolderBounds(("x", "é"), None, nulls=True),
    }
    assert FolderBounds.from_folders(["a=__HIVE_DEFAULT_PARTITION__"]) == {"a": FolderBounds(None, None, nulls=True)}
    assert FolderBounds.from_folders(["a=1", "a=1.5"])["a"].integers is None


@pytest.mark.parametrize("folders", [[], [""], ["a=%FF"], ["a=1/a=2"], ["a=" + "x" * 65]], ids=repr)
def test_folders_without_plain_values_have_no_bounds(folders: list[str]) -> None:
    assert FolderBounds.from_folders(folders) == {}


def test_bounds_contain_narrower_ones_alone() -> None:
    wide = FolderBounds(("1", "7"), (1, 10), nulls=True)
    for narrow in (wide, FolderBounds(None, None, nulls=True), FolderBounds(("10", "7"), (7, 10), nulls=False)):
        assert wide.contain(narrow)
    for other in (None, FolderBounds(("0", "7"), (1, 7), nulls=False), FolderBounds(("1", "7"), (1, 11), nulls=False)):
        assert not wide.contain(other)
    assert not wide.contain(FolderBounds(("1", "1x"), None, nulls=False)), "not all are integers"
    assert not wide._replace(nulls=False).contain(wide)
    assert not FolderBounds(None, None, nulls=True).contain(wide)


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (pa.int8(), (7, 10)),
        (pa.uint64(), (7, 10)),
        (pa.string(), ("10", "7")),
        (pa.float64(), (None, None)),
        (pa.bool_(), (None, None)),
        (pa.date32(), (None, None)),
    ],
    ids=str,
)
def test_a_type_says_what_bounds_tell(type_: pa.DataType, expected: tuple[object, object]) -> None:
    (row,) = FolderBounds.batch([FolderBounds.from_folders(["a=7", "a=10"])], [pa.field("a", type_)]).to_pylist()
    assert (row["least a"], row["greatest a"]) == expected


def test_dates_have_the_order_of_their_texts() -> None:
    bounds = FolderBounds.from_folders(["a=2024-10-01", "a=2024-02-29"])
    (row,) = FolderBounds.batch([bounds], [pa.field("a", pa.date32())]).to_pylist()
    assert row == {"least a": date(2024, 2, 29), "greatest a": date(2024, 10, 1)}


TEXTS: dict[pa.DataType, list[str]] = {
    pa.int32(): ["7", "007", "-1", "-0", "0", "10", "999999999"],
    pa.string(): ["7", "07", "x", "é", "a/b", "100%", "__HIVE_DEFAULT_PARTITION__x", "y" * 70, ""],
    pa.date32(): ["2024-01-01", "1969-12-31", "2024-10-02"],
    pa.float64(): ["1", "1.0", "1e0", "-0.0", "0", "1.5", "nan"],
    pa.bool_(): ["true", "false", "1", "0"],
}


class FolderCase(NamedTuple):
    """The types of partition columns, folders of a dataset, and folders that are looked for."""

    types: dict[str, pa.DataType]
    folders: list[str]
    wanted: list[str]


@st.composite
def folders_of_types(draw: st.DrawFn) -> FolderCase:
    types = {name: draw(st.sampled_from([*TEXTS])) for name in draw(st.sampled_from([["a"], ["a", "b"]]))}
    values = st.tuples(*(st.sampled_from([None, *TEXTS[type_]]) for type_ in types.values()))
    paths = st.lists(values, min_size=1, max_size=6).map(
        lambda rows: ["/".join(ColumnFolder(*pair).name for pair in zip(types, row, strict=True)) for row in rows]
    )
    return FolderCase(types, draw(paths), draw(paths))


@given(folders_of_types())
def test_a_folder_that_is_looked_for_is_not_left_out(drawn: FolderCase) -> None:
    types, folders, wanted = drawn
    schema = EmbeddedSchema.of(pa.schema(types)).pack()
    values = {f: folder_values(ColumnFolder.pairs_in(f"{f}/", ""), schema) for f in (*folders, *wanted)}
    sought = SoughtFolders(dict(values[folder]) for folder in wanted)  # type: ignore[arg-type]
    matching = [folder for folder in folders if values[folder] in [values[other] for other in wanted]]
    assert set(matching) <= set(sought.candidates(folders))
    for first in range(len(folders)):
        for end in range(first + 1, len(folders) + 1):
            bounds = FolderBounds.from_folders(folders[first:end])
            if set(matching) & set(folders[first:end]):
                assert sought.may_be_in(bounds)
            for folder in folders[first:end]:
                pairs = dict(ColumnFolder.pairs_in(f"{folder}/", ""))
                assert all(found.may_have_text(pairs[column]) for column, found in bounds.items())


@given(folders_of_types())
def test_candidates_among_few_folders_are_those_among_many(drawn: FolderCase) -> None:
    types, folders, wanted = drawn
    schema = EmbeddedSchema.of(pa.schema(types)).pack()
    values = (folder_values(ColumnFolder.pairs_in(f"{folder}/", ""), schema) for folder in wanted)
    sought = SoughtFolders(map(dict, values))  # type: ignore[arg-type]
    copies = 1 + FEW_FOLDERS // len(folders)
    assert sought.candidates(folders * copies) == sought.candidates(folders) * copies
    texts, many = (ColumnFolder.texts_in(paths, [*types, "c"]) for paths in (folders, folders * copies))
    assert {name: array.to_pylist() * copies for name, array in texts.items()} == {
        name: array.to_pylist() for name, array in many.items()
    }


def test_nothing_is_looked_for() -> None:
    assert not SoughtFolders([]).may_be_in({})
    assert SoughtFolders([]).candidates(["a=1"]) == []


def test_folders_of_other_values_are_left_out() -> None:
    sought = SoughtFolders([{"a": pa.scalar(7)}, {"a": pa.scalar(70)}])
    assert [sought.may_be_in(FolderBounds.from_folders(pair)) for pair in (["a=1", "a=8"], ["a=8", "a=69"])] == [
        True,
        False,
    ]
    assert sought.candidates(["a=7", "a=8", "a=07"]) == ["a=7", "a=07"]
    assert not SoughtFolders([{"a": pa.scalar(None, pa.int64())}]).may_be_in(FolderBounds.from_folders(["a=1"]))
