"""Pieces of datasets, and lists of datasets and pieces, are read as one source."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from source_calls import ROWS, f


def test_pieces_are_added_to_datasets(files: Path) -> None:
    whole = tfr.dataset(files / "a")
    first, second = whole.pieces(2)
    assert (first + second).to_table() == whole.to_table()
    assert (second + whole).count_rows() == (whole + second).count_rows() == 24
    with pytest.raises(TypeError):
        first + ROWS


@settings(max_examples=rounds(60))
@given(
    marks=st.lists(st.sampled_from(["01", "2", "x"]), max_size=9).map(lambda marks: [*marks, "x"]),
    limits=st.lists(st.integers(-1, 9), min_size=1, max_size=3),
    cut=st.none() | st.integers(1, 5),
    layout=st.sampled_from(["manifest", "embedded", "inferred"]),
    pickled=st.booleans(),
)
def test_parts_of_a_dataset_in_a_list_are_read_under_its_schema(
    marks: list[str], limits: list[int], cut: int | None, layout: str, pickled: bool
) -> None:
    """Whichever rows, and files, are left: types are neither inferred from them nor from the names of their folders."""
    rows = pa.table({"n": range(len(marks)), "values": [[n] * (1 + n % 2) for n in range(len(marks))], "mark": marks})
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord(rows, f"{folder}/d/", partition_by="mark", embed_schema=layout != "inferred")
        if layout != "manifest":
            Path(folder, "d", "_MANIFEST.json").unlink()
        dataset = tfr.dataset(f"{folder}/d/")
        parts: list[Any] = dataset.pieces(cut) if cut else [dataset]
        parts = [part.filter((f("n") <= limit) & (f("mark") <= "2")) for part in parts for limit in limits]
        expected = pa.concat_tables([tfr.read_table(part) for part in parts])
        assert expected.schema.equals(dataset.schema)
        parts = pickle.loads(pickle.dumps(parts)) if pickled else parts
        joined = tfr.dataset(parts)
        for table in (tfr.read_table(parts), joined.to_table(), tfr.open_reader(parts).read_all()):
            assert table.schema.equals(dataset.schema)
            assert table.to_pylist() == expected.to_pylist()
        assert joined.select(["mark"]).filter(f("n") > 1).count_rows() == sum(n > 1 for n in expected["n"].to_pylist())
        assert tfr.read_table([part.select(["mark"]) for part in parts]).equals(expected.select(["mark"]))


@settings(max_examples=rounds(10))
@given(
    marks=st.lists(st.sampled_from(["01", "2", "x", "[2]"]), min_size=1, unique=True),
    column=st.sampled_from(["mark", "m[1]"]),
    n=st.integers(1, 4),
    data=st.data(),
)
def test_a_piece_has_the_types_of_the_folders_of_its_dataset(
    marks: list[str], column: str, n: int, data: st.DataObject
) -> None:
    """Not those of the names of the folders that its own files are in."""
    with tempfile.TemporaryDirectory() as folder:
        rows = pa.table({"n": range(4 * len(marks)), column: marks * 4})
        tfr.write_tfrecord(rows, f"{folder}/d/", partition_by=column)
        Path(folder, "d", "_MANIFEST.json").unlink()
        dataset = tfr.dataset(f"{folder}/d")
        piece = data.draw(st.sampled_from([piece for piece in dataset.pieces(n) if piece.count_rows()]))
        for source in (piece, [piece, piece]):
            tfr.merge(source, f"{folder}/copy", mode="overwrite")
            assert tfr.read_table(f"{folder}/copy").schema.field(column) == dataset.schema.field(column)
            types = {summary.name: summary.type for summary in tfr.describe(source).columns}
            assert types[column] == str(dataset.schema.field(column).type)


@pytest.mark.parametrize("other", ["other.tfrecord", "d/mark=01", "d/mark=2/*.tfrecord"])
def test_a_piece_beside_a_path_has_the_text_of_the_folders_of_its_dataset(tmp_path: Path, other: str) -> None:
    tfr.write_tfrecord({"n": [0, 1, 2], "mark": ["01", "2", "x"]}, tmp_path / "d", partition_by="mark", mode="append")
    (tmp_path / "d" / "_MANIFEST.json").unlink()
    tfr.write_tfrecord({"n": [3]}, tmp_path / "other.tfrecord")
    piece = tfr.dataset(tmp_path / "d").pieces(3)[0]
    for source in ([piece, tmp_path / other], [tmp_path / other, piece]):
        for table in (tfr.read_table(source), tfr.dataset(source).to_table()):
            assert "01" in table["mark"].to_pylist()
            assert table.num_rows == 2


@settings(max_examples=rounds(20))
@given(
    files=st.lists(
        st.tuples(st.sets(st.sampled_from(["n", "text", "values"]), min_size=1), st.booleans()), min_size=1, max_size=4
    )
)
def test_all_rows_of_a_list_of_files_have_the_same_columns_once_its_schema_was_asked_for(
    files: list[tuple[set[str], bool]],
) -> None:
    """Each file has some of the columns, and the schema of them or none."""
    rows = {"n": [1], "text": ["a"], "values": [[1.5, 2.5]]}
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{number}.tfrecord" for number in range(len(files))]
        for path, (names, embed) in zip(paths, files, strict=True):
            tfr.write_tfrecord({name: rows[name] for name in sorted(names)}, path, embed_schema=embed)
        dataset = tfr.dataset(paths, sample=1)
        assert dataset.schema is not None
        assert tfr.read_table(dataset).equals(tfr.read_table(paths))


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
@given(
    kinds=st.lists(st.sampled_from(["fits", "n does not fit", "x does not fit", "rejected"]), max_size=9),
    offset=st.integers(0, 3),
    limit=st.none() | st.integers(0, 5),
    columns=st.sampled_from([["n", "x"], ["x"], ["n"]]),
)
def test_rows_of_a_list_are_those_of_each_dataset_alone(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], offset: int, limit: int | None, columns: list[str]
) -> None:
    """An offset and a limit do not count the records that are left out."""
    path = tmp_path_factory.mktemp("rows") / "a"
    with tfr.RecordWriter(path) as writer:
        for number, kind in enumerate(kinds):
            values = {"n": number, "x": number, "f": 0.5 if kind == "rejected" else 1.5}
            values |= {kind[0]: "text"} if "not" in kind else {}
            writer.write(tfr.encode_example(values))
    dataset = tfr.dataset(path, schema={"n": "int64", "x": "int64", "f": "float32"}, on_error="skip")
    part = dataset.select(["f", *columns]).offset(offset).filter(f("f") > 1).select(columns)
    part = part if limit is None else part.limit(limit)
    expected = part.to_table()
    assert tfr.read_table([part]).equals(expected)
    assert (part + part).count_rows() == 2 * part.count_rows() == 2 * expected.num_rows


def test_parts_of_several_datasets_have_the_types_that_their_manifests_state(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tfr.write_tfrecord({"n": [1, 2], "mark": ["01", "2"]}, tmp_path / name, partition_by="mark")
    parts = [tfr.dataset(tmp_path / name).filter(f("n") == 1) for name in ("a", "b")]
    assert tfr.read_table(parts).to_pydict() == {"n": [1, 1], "mark": ["01", "01"]}
    assert (parts[0].limit(1) + parts[1] + tmp_path / "a").to_table()["mark"].to_pylist() == ["01", "01", "01", "2"]


def test_columns_of_a_list_are_selected_of_all(files: Path) -> None:
    a, b = tfr.dataset(files / "a").select(["n"]), tfr.dataset(files / "b").select(["n"])
    assert tfr.read_table([a, b]).schema.names == ["n"]
    for other in (tfr.dataset(files / "b"), files / "b", b.select([])):
        with pytest.raises(ValueError, match="other columns selected"):
            tfr.read_table([a, other])
    with pytest.raises(ValueError, match="a list select columns"):
        tfr.read_table([a, b], columns=["n"])


def test_a_list_of_narrowed_datasets_does_not_leave_damage_out_by_a_call(files: Path) -> None:
    part = tfr.dataset(files / "a", limit=3)
    with pytest.raises(ValueError, match="on_error= differs from that of the dataset"):
        tfr.read_table([part], on_error="skip")


@pytest.mark.parametrize(
    "kinds", [("schema",), ("schema", "columns"), ("schema", "paths"), ("columns",), ("partitions", "schema")]
)
def test_a_filter_by_a_column_outside_the_schema_selects_no_columns(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    path = tmp_path / "x"
    data = {"a": [1, 2, 3], "b": [4, 5, 6], "c": ["x", "y", "z"], "d": ["k", "k", "l"]}
    tfr.write_tfrecord(data, path, **({"partition_by": "d"} if "partitions" in kinds else {"shards": 1}))
    stated: dict[str, Any] = {"schema": {"a": "int64", "d": "string"}} if "schema" in kinds else {}
    stated |= {"columns": ["a"]} if "columns" in kinds else {}
    stated |= {"include_file_paths": "path"} if "paths" in kinds else {}
    whole = tfr.dataset(path, **stated)
    parts = [
        whole.filter(f("b") > 4),
        whole,
        whole.filter(f("c") == "x"),
        tfr.dataset(path, filters=[("b", ">", 5)], **stated),
    ]
    parts += [whole.filter(f("b") > 4).limit(1), whole.filter(f("b") > 4).filter(f("c") == "z")]
    expected = [[2, 3], [1, 2, 3], [1], [3], [2], [3]]
    tables = [part.to_table() for part in parts]
    assert [table["a"].to_pylist() for table in tables] == expected
    together = tfr.read_table(parts)
    assert together.equals(pa.concat_tables(tables))
    for part, table in zip(parts, tables, strict=True):
        for both, order in ((part + whole, [table, tables[1]]), (whole + part, [tables[1], table])):
            assert both.to_table().equals(pa.concat_tables(order))
            assert both.count_rows() == sum(map(len, order))
    if "columns" not in kinds:
        assert [*(parts[0] + path).to_table()["a"]] == [*tables[0]["a"], *tables[1]["a"]]
        with pytest.raises(ValueError, match="other columns selected"):
            parts[0].select(["a"]) + whole
