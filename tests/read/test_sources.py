"""Every call takes every source: a path, a dataset with its options and its selection, a piece of one, a list of those.

Each call on each kind of source gives what it gives on the path of files that have the same rows.
"""

from __future__ import annotations

import inspect
import io
import os
import pickle
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from border import FULL_NAMES, PUBLIC, public
from rounds import COMPLETE, rounds
from tfrecord_io.options import unwrapped
from tfrecord_io.options.names_in_other_libraries import REFUSED, of_dataset
from tfrecord_io.tools.build_index import check_indexes, write_indexes

f = pc.field
ROWS = pa.table(
    {
        "n": pa.array(range(24), pa.int32()),
        "key": [f"k{i % 5}" for i in range(24)],
        "steps/x": pa.array([[i, i + 1, i + 2] for i in range(24)], pa.list_(pa.int64(), 3)),
    }
)
Run = Callable[[Any, Path], Any]
Refuses = Callable[["Kind"], bool]


@dataclass(frozen=True)
class Kind:
    """How a source is made of two datasets, `a` with the rows 0 to 15 and `b` with the others.

    Attributes
    ----------
    make : callable
    same : callable or pyarrow.Table
        Makes the same of paths; or the rows that it has.
    rows, columns, piece : bool
        Some rows or columns are selected, or it is a piece.
    """

    make: Callable[[str, str], Any]
    same: Any
    rows: bool = False
    columns: bool = False
    piece: bool = False

    @property
    def is_part(self) -> bool:
        return self.rows or self.columns or self.piece


def of(*ranges: tuple[int, int]) -> pa.Table:
    return pa.concat_tables([ROWS[begin:end] for begin, end in ranges])


def filtered(a: str, b: str) -> Any:
    return tfr.dataset(a).filter(f("n") > 4).filter((f("key") != "k2") & (f("n") != 9))


KINDS = {
    "dataset": Kind(lambda a, b: tfr.dataset(a), lambda a, b: a),
    "datasets": Kind(lambda a, b: [tfr.dataset(a), tfr.dataset(b)], lambda a, b: [a, b]),
    "dataset and path": Kind(lambda a, b: [tfr.dataset(a), b], lambda a, b: [a, b]),
    "sum": Kind(lambda a, b: tfr.dataset(b) + tfr.dataset(a), lambda a, b: [b, a]),
    "filter": Kind(filtered, of((5, 7), (8, 9), (10, 12), (13, 16)), rows=True),
    "offset and limit": Kind(lambda a, b: tfr.dataset(a).offset(3).limit(9), of((3, 12)), rows=True),
    "select": Kind(
        lambda a, b: tfr.dataset(a).select(["steps/x", "n", "key"]), of((0, 16)).select([2, 0, 1]), columns=True
    ),
    "filters=": Kind(
        lambda a, b: tfr.dataset(a, filters=(f("n") > 4) & (f("key") != "k2") & (f("n") != 9)),
        of((5, 7), (8, 9), (10, 12), (13, 16)),
        rows=True,
    ),
    "offset= and limit=": Kind(lambda a, b: tfr.dataset(a, offset=3, limit=9), of((3, 12)), rows=True),
    "columns=": Kind(
        lambda a, b: tfr.dataset(a, columns=["steps/x", "n", "key"]), of((0, 16)).select([2, 0, 1]), columns=True
    ),
    "piece": Kind(lambda a, b: tfr.dataset(a).pieces(2)[1], of((8, 16)), piece=True),
    "piece of a file": Kind(lambda a, b: tfr.dataset("all.tfrecord").pieces(3)[1], of((5, 15)), piece=True),
    "parts": Kind(
        lambda a, b: [tfr.dataset(a).pieces(2)[1], tfr.dataset(b).filter(f("n") > 21), b],
        of((8, 16), (22, 24), (16, 24)),
        rows=True,
        piece=True,
    ),
}


def table(found: pa.Table) -> pa.Table:
    return found.replace_schema_metadata(None).combine_chunks()


def arrays(found: dict[str, Any]) -> dict[str, Any]:
    return {name: values.tolist() for name, values in found.items()}


def stream(source: Any) -> pa.Table:
    with tfr.open_reader(source, batch_size=5) as reader:
        return table(pa.Table.from_batches(reader, reader.schema))


def payloads(source: Any) -> list[Any]:
    with tfr.RecordReader(source) as reader:
        return [arrays(tfr.decode_example(payload)) for payload in reader]


def report(source: Any) -> Any:
    made = tfr.report(source).to_dict()
    return str(made["features"]), made["sampling"]["records"]


def exported(name: str) -> Run:
    def run(source: Any, out: Path) -> Any:
        tfr.convert(source, out / name)
        return (out / name).read_bytes()

    return run


def numbers(report: Any) -> Any:
    found = np.load(report.path)
    return list(found) if isinstance(found, np.lib.npyio.NpzFile) else found.tolist()


def by_sql(source: Any, out: Path) -> Any:
    connection = pytest.importorskip("duckdb").connect()
    tfr.register_duckdb(connection, source, name="t")
    return connection.sql("SELECT count(*), sum(n), min(key) FROM t WHERE n > 6").fetchall()


def by_polars(source: Any, out: Path) -> Any:
    polars = pytest.importorskip("polars")
    return tfr.scan_polars(source).filter(polars.col("n") > 6).collect().to_dict(as_series=False)


def by_xarray(source: Any, out: Path) -> Any:
    xarray = pytest.importorskip("xarray")
    return xarray.open_dataset(source, engine="tfrecord")["n"].values.tolist()


def copied(call: Callable[[Any, Path], Any]) -> Run:
    def run(source: Any, out: Path) -> Any:
        made = call(source, out / "copy.tfrecord")
        return made.records, table(tfr.read_table(out / "copy.tfrecord"))

    return run


def in_parts(call: Callable[[Any, Path], Any]) -> Run:
    def run(source: Any, out: Path) -> Any:
        made = call(source, out / "parts")
        return {name: (each.records, table(tfr.read_table(each.path))) for name, each in made.items()}

    return run


def by_number(source: Any, out: Path) -> Any:
    with tfr.open_random(source, key="n") as records:
        return table(records[:]), records.lookup(8)["key"]


def repaired(source: Any, out: Path) -> Any:
    return tfr.salvage(source, out / "salvaged/").records, sorted(map(len, os.walk(out / "salvaged")))


def deleted(source: Any, out: Path) -> Any:
    return tfr.delete(source, filters=f("n") == 9).records, table(tfr.read_table(out / "a"))


def compacted(source: Any, out: Path) -> Any:
    return tfr.compact(source).records, table(tfr.read_table(out / "a"))


def transferred(source: Any, out: Path) -> Any:
    return tfr.copy(source, out / "backup/").records, table(tfr.read_table(out / "backup/"))


def never(kind: Kind) -> bool:
    return False


def is_part(kind: Kind) -> bool:
    """Calls that work on whole files."""
    return kind.is_part


def has_columns(kind: Kind) -> bool:
    """Calls that work on whole records."""
    return kind.columns


def as_read(path: Path, source: Any) -> tfr.Dataset:
    """A file, of which damage is treated as that of `source` is: a mixture has one `on_error`."""
    return tfr.dataset(path, on_error=unwrapped(tfr.dataset(source)).options.on_error)


CALLS: dict[str, tuple[Run, Refuses]] = {
    "read_table": (lambda s, out: table(tfr.read_table(s)), never),
    "read_table, narrowed": (
        lambda s, out: table(tfr.read_table(tfr.dataset(s, threads=1), filters=f("n") > 7, limit=4)),
        never,
    ),
    "read_tfrecord": (lambda s, out: repr(tfr.read_tfrecord(s).to_dict("list")), never),
    "read_arrays": (lambda s, out: arrays(tfr.read_arrays(s)), never),
    "iter_arrays": (lambda s, out: [arrays(batch) for batch in tfr.iter_arrays(s, batch_size=4)], never),
    "open_reader": (lambda s, out: stream(s), never),
    "dataset": (lambda s, out: table(tfr.dataset(s).to_table()), never),
    "dataset, pickled": (lambda s, out: table(pickle.loads(pickle.dumps(tfr.dataset(s))).to_table()), never),
    "dataset, in pieces": (
        lambda s, out: table(pa.concat_tables(piece.read() for piece in tfr.dataset(s).pieces(3))),
        lambda kind: kind in (KINDS["offset and limit"], KINDS["offset= and limit="]),
    ),
    "infer_schema": (lambda s, out: sorted(map(repr, tfr.infer_schema(s))), never),
    "count": (lambda s, out: tfr.count(s), lambda kind: False),
    "describe": (lambda s, out: tfr.describe(s).to_dict(), never),
    "report": (lambda s, out: report(s), never),
    "diff": (lambda s, out: tfr.diff(s, out / "all.tfrecord", any_order=True).to_dict(), never),
    "read_metadata": (lambda s, out: tfr.read_metadata(s).schema.names, never),
    "join": (lambda s, out: table(tfr.join(s, {"key": ["k1"], "m": [1]}, on="key").read_all()), never),
    "explode": (lambda s, out: table(tfr.explode(s).read_all()), never),
    "windows": (lambda s, out: table(tfr.windows(s, length=2).to_table()), never),
    "mix": (
        lambda s, out: table(tfr.mix([s, as_read(out / "all.tfrecord", s)], stop="all").to_table()),
        lambda kind: False,
    ),
    "convert to TFRecord": (copied(lambda s, path: tfr.convert(s, path)), never),
    "convert to JSON": (exported("rows.jsonl"), never),
    "convert to Parquet": (exported("rows.parquet"), never),
    "convert to npz": (exported("rows.npz"), never),
    "scan_polars": (by_polars, never),
    "register_duckdb": (by_sql, never),
    "xarray": (by_xarray, never),
    "write_tfrecord": (copied(lambda s, path: tfr.write_tfrecord(tfr.dataset(s), path)), never),
    "write_npy": (lambda s, out: numbers(tfr.formats.write_npy(s, out / "n.npy", column="n")), never),
    "write_npz": (lambda s, out: sorted(numbers(tfr.formats.write_npz(s, out / "n.npz", columns=["n"]))), never),
    "RecordReader": (lambda s, out: payloads(s), has_columns),
    "merge": (copied(lambda s, path: tfr.merge(s, path)), has_columns),
    "split": (copied(lambda s, path: tfr.split(s, f"{path}@2") and tfr.merge(f"{path}@2", path)), has_columns),
    "split by": (in_parts(lambda s, path: tfr.split(s, path, by="key")), has_columns),
    "split in fractions": (in_parts(lambda s, path: tfr.split(s, path, fractions=[0.5, 0.5])), has_columns),
    "shuffle": (copied(lambda s, path: tfr.shuffle(s, path, seed=3)), has_columns),
    "sample": (copied(lambda s, path: tfr.sample(s, path, n=3, seed=3)), has_columns),
    "dedupe": (copied(lambda s, path: tfr.dedupe(s, path, by="key", keep="last")), has_columns),
    "open_random": (by_number, lambda kind: kind.rows),
    "verify": (lambda s, out: (tfr.verify(s).ok, tfr.verify(s).records), is_part),
    "salvage": (repaired, is_part),
    "copy": (transferred, is_part),
    "compact": (compacted, is_part),
    "delete": (deleted, is_part),
    "build_index": (lambda s, out: [each.records for each in tfr.build_index(s, columns="n")], is_part),
    "write_indexes": (lambda s, out: [each.records for each in write_indexes(s)], is_part),
    "check_indexes": (lambda s, out: [type(each.error) for each in check_indexes(s)], is_part),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two datasets of shards, and a file with the rows of both."""
    folder = tmp_path_factory.mktemp("files")
    for name, begin, end in (("a", 0, 16), ("b", 16, 24)):
        for first in range(begin, end, 4):
            tfr.write_tfrecord(ROWS[first : first + 4], f"{folder}/{name}/", mode="append")
    tfr.write_tfrecord(ROWS, folder / "all.tfrecord")
    return folder


def outcome(run: Run, make: Callable[[], Any], files: Path, place: Path) -> Any:
    """The result of a call on copies of the files, or the class of what it raises, and why."""
    shutil.copytree(files, place)
    os.chdir(place)
    try:
        return run(make(), place)
    except (tfr.TFRecordError, ValueError, TypeError) as error:
        return type(error), str(error)


def tried() -> Iterator[tuple[str, str]]:
    """Each call with each kind of source in the complete run; otherwise with one of those that select alike."""
    alike: dict[tuple[bool, bool, bool], list[str]] = {}
    for name, kind in KINDS.items():
        alike.setdefault((kind.rows, kind.columns, kind.piece), []).append(name)
    for number, call in enumerate(CALLS):
        for names in alike.values():
            yield from ((call, name) for name in (names if COMPLETE else [names[number % len(names)]]))


@pytest.mark.parametrize(("call", "name"), [*tried()])
def test_each_call_takes_each_source(
    call: str, name: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run, refuses), kind = CALLS[call], KINDS[name]
    monkeypatch.chdir(tmp_path)
    found = outcome(run, lambda: kind.make("a", "b"), files, tmp_path / "found")
    if refuses(kind):
        assert found[0] is ValueError, found
        assert any(word in found[1] for word in ("whole files", "whole records", "offset= or limit=")), found
        return

    def same() -> Any:
        if callable(kind.same):
            return kind.same("a", "b")
        tfr.write_tfrecord(kind.same, "same.tfrecord")
        return "same.tfrecord"

    expected = outcome(run, same, files, tmp_path / "expected")
    if isinstance(expected, tuple) and isinstance(expected[0], type):  # such as compact, of a list
        expected, found = expected[0], found[0]
    assert found == expected


def in_folder(source: Any, out: Path) -> Any:
    tfr.formats.write_file_folder(source, out / "folder", file="file", filename="key")
    return {path.name: path.read_bytes() for path in (out / "folder").iterdir()}


def written(source: Any, out: Path) -> Any:
    with tfr.open_writer(out / "written.tfrecord") as writer:
        writer.write(source)
        writer.write(source)
    return tfr.read_table(out / "written.tfrecord")


def appended(source: Any, out: Path) -> Any:
    for _ in range(2):
        tfr.write_tfrecord(source, f"{out}/appended/", mode="append")
    return tfr.read_table(out / "appended")


def of_tfds(source: Any, out: Path) -> Any:
    tfr.formats.write_tfds(source, out / "named/1.0.0")
    return tfr.read_table(out / "named/1.0.0")


def joined(source: Any, out: Path) -> Any:
    return tfr.join(out / "keys.tfrecord", source, on="key").read_all()


AS_DATA: dict[str, Run] = {
    "write_tfrecord": copied(tfr.write_tfrecord),
    "write_tfrecord, appended": appended,
    "open_writer": written,
    "write_tfds": of_tfds,
    "write_elwc": lambda s, out: [
        tfr.formats.write_elwc(s, out / "lists", by="key").records,
        tfr.formats.open_elwc(out / "lists").read_all(),
    ],
    "join": joined,
}


@pytest.mark.parametrize("call", AS_DATA)
def test_a_dataset_and_a_piece_are_tables_to_calls_that_take_data(call: str, tmp_path: Path) -> None:
    rows = pa.table({"key": ["a", "b", "c", "d"], "file": [b"1", b"2", b"3", b"4"]})
    found = []
    sources = (lambda whole: whole.pieces(2)[1], lambda whole: whole.offset(1), lambda _: rows[1:])
    for number, make in enumerate(sources):
        (place := tmp_path / str(number)).mkdir()
        tfr.write_tfrecord(rows, place / "all.tfrecord")
        tfr.write_tfrecord(rows.select(["key"]), place / "keys.tfrecord")
        found.append(AS_DATA[call](make(tfr.dataset(place / "all.tfrecord")), place))
    assert found[0] == found[1] == found[2]


def test_a_folder_of_files_is_written_of_a_piece(tmp_path: Path) -> None:
    rows = pa.table({"key": ["a", "b", "c"], "file": [b"1", b"2", b"3"]})
    tfr.write_tfrecord(rows, tmp_path / "all.tfrecord")
    second = tfr.dataset(tmp_path / "all.tfrecord").pieces(2)[1]
    assert len(in_folder(second, tmp_path)) == second.count_rows() + 1


def test_a_piece_names_the_dataset_that_has_a_method(files: Path) -> None:
    piece = tfr.dataset(files / "a").pieces(2)[1]
    with pytest.raises(AttributeError, match=r"no attribute 'to_pandas': tfr\.dataset\(piece\)\.to_pandas has it"):
        piece.to_pandas()
    assert tfr.dataset(piece).to_pandas()["n"].tolist() == list(range(8, 16))
    with pytest.raises(AttributeError, match="no attribute 'colums'"):
        piece.colums  # noqa: B018
    assert pickle.loads(pickle.dumps(piece)).read() == piece.read()
    with pytest.raises(ValueError, match="adopt works on whole files, and not on a piece"):
        tfr.adopt(piece)


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


# ---- options


def damage(path: str, byte: int, records: Sequence[int] | None = None) -> None:
    """Change a byte of records, all by default, of a file that is not compressed."""
    data, begin, number = bytearray(Path(path).read_bytes()), 0, 0
    while begin < len(data):
        end = begin + int.from_bytes(data[begin : begin + 8], "little") + 16
        if records is None or number in records:
            data[begin + byte if byte >= 0 else end + byte] ^= 1
        begin, number = end, number + 1
    Path(path).write_bytes(data)


def unchecked() -> Any:
    for path in Path("a").glob("*.tfrecord"):
        damage(str(path), -1)
    return "a", {"check_crc": False}


def skipping() -> Any:
    """Records whose lengths are damaged, so that all calls leave them out."""
    tfr.write_tfrecord(ROWS[:16], "damaged.tfrecord")
    damage("damaged.tfrecord", 0, [3, 9])
    return "damaged.tfrecord", {"on_error": "skip"}


def with_paths() -> str:
    tfr.write_tfrecord(tfr.read_table(tfr.dataset("a", include_file_paths="file")), "with paths.tfrecord")
    return "with paths.tfrecord"


def without_damaged() -> str:
    tfr.write_tfrecord(of((0, 3), (4, 9), (10, 16)), "intact.tfrecord")
    return "intact.tfrecord"


OPTIONS: dict[str, tuple[Callable[[], tuple[str, dict[str, Any]]], Callable[[], str]]] = {
    "check_crc": (unchecked, lambda: "a"),
    "on_error": (skipping, without_damaged),
    "include_file_paths": (lambda: ("a", {"include_file_paths": "file"}), with_paths),
}
_WITHOUT_COLUMNS = ("RecordReader", "verify", "salvage", "copy", "compact", "delete", "write_indexes", "check_indexes")


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
@pytest.mark.matrix
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("call", CALLS)
def test_each_call_heeds_what_a_dataset_states_or_refuses_it(
    call: str, option: str, opened: bool, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run, _), (make, same) = CALLS[call], OPTIONS[option]
    monkeypatch.chdir(tmp_path)

    def stating() -> Any:
        path, options = make()
        source = tfr.dataset(path, **options)
        if opened:
            assert source.schema.names
        return source

    found = outcome(run, stating, files, tmp_path / "found")
    if option in REFUSED.get(call.partition(" ")[0], ()):
        assert found[0] is ValueError
        assert f"takes no {option}= of a dataset" in found[1]
        return
    if (call, option) == ("xarray", "on_error"):  # whose rows are read when they are needed, by number
        assert found[0] is tfr.errors.CorruptRecordError
        return
    of_files = option == "include_file_paths" and call in _WITHOUT_COLUMNS
    assert found == outcome(run, (lambda: "a") if of_files else same, files, tmp_path / "expected")


@pytest.mark.parametrize("call", [name for name in CALLS if name not in ("count", "read_metadata")])  # by the manifest
def test_each_call_heeds_the_limits_of_a_dataset_or_refuses_them(
    call: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = lambda: tfr.dataset("a", limits=tfr.Limits(record_bytes=5))  # noqa: E731
    try:
        found = outcome(CALLS[call][0], source, files, tmp_path / "found")
    except Exception as error:  # of DuckDB
        found = type(error), str(error)
    if call in ("verify", "salvage"):
        assert found[0] in (False, 0)
    elif call == "check_indexes":
        assert set(found) == {tfr.errors.CorruptRecordError}
    else:
        assert ("takes no limits= of a dataset" if call == "copy" else "over the limit of 5 bytes") in found[1]


@pytest.mark.parametrize("call", [name for name in CALLS if name not in ("count", "read_metadata")])  # by the manifest
def test_each_call_heeds_the_compression_of_a_dataset_or_refuses_it(
    call: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = lambda: tfr.dataset("a", compression="gzip")  # noqa: E731
    try:
        found = outcome(CALLS[call][0], source, files, tmp_path / "found")
    except Exception as error:  # of DuckDB
        found = type(error), str(error)
    if call == "verify":
        assert not found[0]
    else:
        assert "takes no compression= of a dataset" in found[1] or "gzip" in found[1], found


_CALLS = [public(name) for name in sorted(PUBLIC) if FULL_NAMES[name] in (name, f"formats.{name}")]
OF_SOURCES = [call for call in _CALLS if callable(call) and of_dataset(call) and call is not tfr.dataset]


@pytest.mark.parametrize("name", ["compression", "limits"])
@pytest.mark.parametrize("call", OF_SOURCES, ids=lambda call: call.__name__)
def test_compression_and_limits_beside_a_path_belong_to_a_call_or_are_named(call: Any, name: str) -> None:
    """A compression is that of a target, if a call writes one; limits are those of what is read."""
    value = {"compression": "gzip", "limits": tfr.Limits(record_bytes=5)}[name]
    parameters = inspect.signature(call).parameters
    if name in parameters:
        assert name == "compression"
        assert "target" in parameters
        return
    with pytest.raises(TypeError) as error:
        call("a.tfrecord", **{name: value})
    refused = name in REFUSED.get(call.__name__, ())
    assert f"{name}=" in str(error.value) or f"'{name}'" in str(error.value)
    named = "source_options=" if call is tfr.convert else "tfr.dataset("
    assert refused or named in str(error.value)


@pytest.mark.parametrize("call", [tfr.merge, tfr.shuffle, tfr.dedupe, tfr.split, tfr.sample, tfr.convert])
def test_a_compression_beside_a_path_is_that_of_the_target(call: Any, files: Path, tmp_path: Path) -> None:
    own = {tfr.dedupe: {"by": "n"}, tfr.sample: {"n": 24}, tfr.shuffle: {"seed": 1}}.get(call, {})
    target = f"{tmp_path}/out@1" if call is tfr.split else tmp_path / "out.tfrecord"
    call(files / "all.tfrecord", target, compression="gzip", **own)
    (written,) = tmp_path.glob("out*")
    assert written.read_bytes()[:2] == b"\x1f\x8b"
    assert tfr.read_table(written).num_rows == 24


def test_plain_files_may_be_called_plain_for_calls_that_read_by_number(files: Path) -> None:
    with tfr.open_random(tfr.dataset(files / "all.tfrecord", compression=None)) as records:
        assert len(records) == 24
    with pytest.raises(ValueError, match=r"takes no compression= of a dataset: only plain files have records"):
        tfr.open_random(tfr.dataset(files / "all.tfrecord", compression="gzip"))


def test_limits_and_compression_of_salvage_are_those_of_the_files(files: Path, tmp_path: Path) -> None:
    path, target = files / "all.tfrecord", tmp_path / "out.tfrecord"
    with pytest.raises(tfr.errors.CompressionError, match=r"tfr.dataset\(…, compression='gzip'\) was passed"):
        tfr.salvage(tfr.dataset(path, compression="gzip"), target)
    assert tfr.salvage(tfr.dataset(path, limits=tfr.Limits(record_bytes=5)), target).records == 0
    for name in ("compression", "limits", "record_type"):
        with pytest.raises(TypeError, match=rf"to dataset\(\): tfr.salvage\(tfr.dataset\(source, {name}=…\), …\)"):
            tfr.salvage(path, target, **{name: object()})


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A file of 30 records, of which number 7 is damaged."""
    path = tmp_path / "damaged.tfrecord"
    tfr.write_tfrecord({"n": list(range(30))}, path, write_index=True)
    begin, size = (int(word) for word in Path(f"{path}.index").read_text().splitlines()[7].split())
    data = bytearray(path.read_bytes())
    data[begin + size - 5] ^= 1
    path.write_bytes(data)
    Path(f"{path}.index").unlink()
    return path


def test_a_dataset_brings_its_options(damaged: Path) -> None:
    source = tfr.dataset(damaged, on_error="skip", schema={"n": "int32"}, include_file_paths="path")
    with pytest.warns(tfr.errors.DamagedDataWarning):
        found = tfr.read_table(source)
    assert (found.num_rows, found.schema.names, found.schema.field("n").type) == (29, ["n", "path"], pa.int32())
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert tfr.count(tfr.dataset(damaged, on_error="skip"), check_crc=True) == 29
    chosen = tfr.dataset(damaged, on_error="skip").filter(f("n") > 5)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert [each["n"] for each in payloads(chosen)] == [[6], *([n] for n in range(8, 30))]


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
@pytest.mark.matrix
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("has_schema", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_a_callable_is_asked_once_about_each_region(
    call: str, has_schema: bool, opened: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "on_error" in REFUSED.get(call.partition(" ")[0], ()) or call in ("xarray", "dataset, pickled"):
        return
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord(ROWS, "all.tfrecord", embed_schema=has_schema)
    tfr.write_tfrecord(ROWS[:16], "damaged.tfrecord", embed_schema=has_schema)
    damage("damaged.tfrecord", 0, [3, 9])
    asked = list[int]()

    def answer(error: tfr.TFRecordError) -> bool:
        assert error.region is not None
        asked.append(error.region.records_before)
        return True

    source = tfr.dataset("damaged.tfrecord", on_error=answer)
    assert not opened or source.schema.names
    CALLS[call][0](source, tmp_path)
    assert sorted(asked) in ([3, 9], [] if call == "read_metadata" and has_schema else [3, 9])


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
def test_pieces_and_selections_of_a_dataset_share_its_answers(damaged: Path) -> None:
    asked = list[tuple[str, int | None]]()

    def answer(error: tfr.TFRecordError) -> bool:
        assert error.region is not None
        asked.append((error.region.path, error.region.begin))
        return len(asked) == 1  # would raise the same error a second time

    source = tfr.dataset(damaged, on_error=answer)
    assert source.to_table().num_rows == tfr.read_table(source, limit=40).num_rows == 29
    assert sum(piece.read().num_rows for piece in source.pieces(3)) == 29
    assert source.filter(f("n") > 3).to_table().num_rows == 25
    assert tfr.count(source.filter(f("n") > 3)) == 25
    assert len(asked) == 1
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.read_table(damaged, on_error=answer)


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
def test_rows_that_arrays_cannot_hold_are_asked_about_once_in_each_piece(tmp_path: Path) -> None:
    """Where they begin is not known: records are counted from the begin of a piece."""
    tfr.write_tfrecord({"x": [None if n % 8 == 3 else n for n in range(64)]}, tmp_path / "gaps")
    asked = list[int]()
    source = tfr.dataset(tmp_path / "gaps", on_error=lambda error: not asked.append(error.region.records_before))
    for _ in range(2):
        batches = [tfr.iter_arrays(piece, batch_size=5, epochs=2) for piece in source.pieces(4)]
        assert sorted(int(n) for each in batches for batch in each for n in batch["x"])[::2] == [
            n for n in range(64) if n % 8 != 3
        ]
        assert len(asked) == 8


def merged_part(source: tfr.Dataset) -> None:
    tfr.merge(tfr.Dataset(replace(unwrapped(source), origin=None)), "out.tfrecord")


@pytest.mark.parametrize("call", [payloads, merged_part])
def test_damage_among_chosen_records_is_where_it_is_in_the_file(
    damaged: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(damaged.parent)
    with pytest.raises(tfr.errors.CorruptRecordError) as expected:
        payloads(damaged)
    source = tfr.dataset(damaged, check_crc=False).filter(f("n") >= 5)
    with pytest.raises(tfr.errors.CorruptRecordError) as error:
        call(tfr.Dataset(replace(unwrapped(source), options=unwrapped(source).options.changed(check_crc=True))))
    assert (error.value.path, error.value.record) == (str(damaged), 7)
    assert error.value.offset == expected.value.offset


def test_options_of_a_dataset_are_not_given_again(files: Path) -> None:
    source = tfr.dataset(files / "a", check_crc=False, limits=tfr.Limits(features=50))
    assert tfr.read_table(tfr.dataset(source, check_crc=False, threads=1)).num_rows == 16
    for other in (source, source.filter(f("n") > 3)):
        with pytest.raises(ValueError, match=r"limits= differs .*: tfr\.dataset\(path, limits=…\)$"):
            tfr.dataset(other, limits=tfr.Limits(features=60))
    with pytest.raises(ValueError, match=r"check_crc= differs .*: tfr\.dataset\(path, check_crc=…\)$"):
        tfr.dataset(tfr.dataset(files / "a").filter(f("n") > 3), check_crc=False)
    stated = tfr.dataset(files / "a", on_error="skip", schema={"n": "int32"})
    for call in (tfr.read_table, tfr.describe, tfr.dataset, tfr.read_arrays, tfr.open_random):
        with pytest.raises(ValueError, match=r"on_error= differs .*: tfr\.dataset\(path, on_error=…\)$"):
            call(stated, on_error=lambda error: True)
    for other in (stated, tfr.dataset(files / "a").filter(f("n") > 3)):
        with pytest.raises(ValueError, match=r"^iter_arrays: schema= differs from that of the dataset"):
            tfr.iter_arrays(other, batch_size=2, schema={"n": "int8"})
    for other in (tfr.dataset(files / "a", limit=3), tfr.dataset(files / "a").limit(3)):
        for name, value in {"schema": {"n": "int32"}, "on_error": "skip"}.items():
            with pytest.raises(ValueError, match=f"{name}= differs from that of the dataset"):
                tfr.read_table(other, limit=2, **{name: value})
    with pytest.raises(ValueError, match=r"^the datasets differ in check_crc=: open them with the same"):
        tfr.count([source, tfr.dataset(files / "b", limits=tfr.Limits(features=50))])
    with pytest.raises(TypeError, match="unexpected keyword"):
        tfr.count(source, colums=["n"])
    with pytest.raises(TypeError, match="a Dataset is given alone, or in a list"):
        tfr.read_table(iter([source]))


def test_columns_of_a_list_are_selected_of_all(files: Path) -> None:
    a, b = tfr.dataset(files / "a").select(["n"]), tfr.dataset(files / "b").select(["n"])
    assert tfr.read_table([a, b]).schema.names == ["n"]
    for other in (tfr.dataset(files / "b"), files / "b", b.select([])):
        with pytest.raises(ValueError, match="other columns selected"):
            tfr.read_table([a, other])
    with pytest.raises(ValueError, match="a list select columns"):
        tfr.read_table([a, b], columns=["n"])


_ONCE = "more than once|only once|any number of times|several times"
_ONCE += "|takes (the )?path|a path or a list|expected (a table|datasets)"


@pytest.mark.parametrize("call", CALLS)
def test_each_call_takes_a_file_object_or_says_that_it_needs_paths(
    call: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = CALLS[call][0] if call != "verify" else lambda source, out: tfr.verify(source).records
    found = outcome(run, lambda: io.BytesIO(Path("all.tfrecord").read_bytes()), files, tmp_path / "found")
    if isinstance(found, tuple) and found[0] is TypeError:
        assert re.search(_ONCE, found[1]), found
        assert call not in ("read_table", "read_tfrecord", "read_arrays", "open_reader", "count", "merge", "salvage")
    else:
        assert found == outcome(run, lambda: "all.tfrecord", files, tmp_path / "expected")


# ---- selections


def test_selections_follow_one_another(files: Path) -> None:
    source = tfr.dataset(files / "a")
    assert source.offset(2).limit(6).offset(1).to_table()["n"].to_pylist() == [3, 4, 5, 6, 7]
    assert source.limit(3).offset(5).to_table().num_rows == 0
    assert tfr.read_table(tfr.dataset(source.offset(2), offset=3), limit=2)["n"].to_pylist() == [5, 6]
    assert tfr.read_table(source.filter(f("n") > 3), filters=f("n") < 6)["n"].to_pylist() == [4, 5]
    with pytest.raises(ValueError, match=r"call offset\(\) before filter\(\)"):
        source.filter(f("n") > 3).offset(1)
    with pytest.raises(tfr.errors.FeatureNotFoundError):
        tfr.read_table(source.select(["key"]), columns=["n"])


def test_the_files_of_a_sum_are_looked_up_again(files: Path, tmp_path: Path) -> None:
    shutil.copytree(files, tmp_path / "files")
    a, b = tmp_path / "files" / "a", tmp_path / "files" / "b"
    both = tfr.dataset(a) + tfr.dataset(b)
    tfr.write_tfrecord(ROWS[:3], f"{b}/", mode="append")
    assert (both.count_rows(), both.refresh().count_rows()) == (24, 27)
    with pytest.raises(ValueError, match="opened as a whole"):
        (tfr.dataset(a).limit(3) + b).refresh()
    with pytest.raises(TypeError):
        tfr.dataset(a) + ROWS


def test_a_split_of_tfds_is_no_whole_dataset(files: Path) -> None:
    source = tfr.dataset(files / "a")
    options = replace(unwrapped(source).options, split="train")
    source = tfr.Dataset(replace(unwrapped(source), options=options, origin=(files / "a", options)))
    refused = r"takes no split= of a dataset: .* write its rows first with tfr\.write_tfrecord"
    for call in (tfr.salvage, tfr.copy):
        with pytest.raises(ValueError, match=f"{call.__name__} {refused}"):
            call(source, "out")
    with pytest.raises(ValueError, match=f"delete {refused}"):
        tfr.delete(source, filters=f("n") > 2)


@given(data=st.data())
@settings(max_examples=rounds(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_any_selections_are_read_and_copied(data: st.DataObject, tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    suffix = data.draw(st.sampled_from(["", ".gz"]))
    count = data.draw(st.integers(1, 30))
    numbers = [None if n % 7 == 3 else n for n in range(count)]
    letters = pa.array([f"c{n % 3}" for n in range(count)])
    rows = pa.table({"n": pa.array(numbers, pa.int16()), "c": letters.dictionary_encode()})
    path = folder / f"in{data.draw(st.sampled_from(['', '@3']))}.tfrecord{suffix}"
    has_schema = data.draw(st.booleans())
    tfr.write_tfrecord(rows, path, embed_schema=has_schema)
    options: dict[str, Any] = {"schema_overrides": {"n": "int32"}} if has_schema else {}
    parts: list[Any] = []
    for _ in range(data.draw(st.integers(1, 3))):
        part: Any = tfr.dataset(path, **options)
        if data.draw(st.booleans()):
            pieces = part.pieces(data.draw(st.integers(1, 4)))
            part = pieces[data.draw(st.integers(0, len(pieces) - 1))]
        elif data.draw(st.booleans()):
            part = part.offset(data.draw(st.integers(0, count)))
        if data.draw(st.booleans()):
            part = part.filter(f("n") >= data.draw(st.integers(0, count)))
        if isinstance(part, tfr.Dataset) and data.draw(st.booleans()):
            part = part.limit(data.draw(st.integers(0, count)))
        parts.append(part)
    tables = [pa.table(part) for part in parts]
    expected = [pair for each in tables for pair in pairs(each)]
    assert tfr.count(parts) == sum(map(tfr.count, parts)) == len(expected)
    if not expected:
        return
    found = tfr.read_table(parts)
    tfr.merge(parts, folder / "out.tfrecord")
    copy = tfr.read_table(folder / "out.tfrecord")
    assert pairs(found) == pairs(copy) == expected
    if has_schema:
        assert found.schema.types == copy.schema.types == tables[0].schema.types


def pairs(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of the columns that a file without a schema may lack."""
    return [(row.get("n"), row.get("c")) for row in rows.to_pylist()]


def test_what_a_call_states_of_a_dataset_holds_or_is_refused(files: Path) -> None:
    """Whether or not its schema was looked at."""
    path = files / "a"
    for look in (False, True):
        source = tfr.dataset(path)
        if look:
            assert source.schema.names
        with pytest.raises(tfr.TFRecordError, match="limit of 5"):
            tfr.dataset(source, limits=tfr.Limits(record_bytes=5)).to_table()
        assert tfr.dataset(source, schema={"n": "int32"}).schema == pa.schema({"n": pa.int32()})
        with pytest.raises(ValueError, match=r"split= differs from that of the dataset"):
            tfr.dataset(source, split="train")
        with pytest.raises(ValueError, match=r"storage_options= differs from that of the dataset"):
            tfr.read_table(source, storage_options={"anon": True})
        filtered = tfr.dataset(path, filters=f("n") > 2)
        if look:
            assert filtered.schema.names
        assert tfr.read_table(filtered, on_error="skip") == tfr.read_table(path, filters=f("n") > 2)
        named = tfr.dataset(path, include_file_paths="file")
        if look:
            assert named.schema.names
        assert tfr.read_table(named, columns=["n"]).column_names == ["n"]
        assert tfr.read_table(named, columns=["file"]).column_names == ["file"]
        typed = tfr.dataset(path, schema_overrides={"n": "int32"})
        if look:
            assert typed.schema.names
        other = next(name for name in tfr.dataset(path).columns if name != "n")
        assert tfr.read_table(typed, columns=[other]).column_names == [other]
        assert tfr.read_table(typed).schema.field("n").type == pa.int32()


@pytest.mark.parametrize(
    "call",
    [tfr.read_tfrecord, tfr.read_table, tfr.read_arrays, tfr.open_reader, tfr.dataset, tfr.count, tfr.RecordReader],
)
def test_a_call_that_states_the_default_contradicts_a_dataset_that_states_another_value(call: Any, files: Path) -> None:
    for other in (tfr.dataset(files / "a", on_error="skip"), [tfr.dataset(files / "a", on_error="skip")]):
        with pytest.raises(ValueError, match="on_error= differs from that of the dataset"):
            call(other, on_error="raise")
    call(tfr.dataset(files / "a"), on_error="raise")


OTHER_VALUES: dict[str, Any] = {  # by keyword of `dataset` whose default is not None: another value
    "stable_types": True,
    "infer_text": False,
    "sample": 5,
    "on_new": "ignore",
    "compression": None,
    "allow_missing_shards": True,
    "check_crc": False,
    "limits": tfr.Limits(features=50),
    "large_offsets": True,
    "batch_size": 4,
    "batch_bytes": 1000,
    "progress": print,
}


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("name", OTHER_VALUES)
def test_a_default_that_is_written_beside_a_dataset_holds_or_is_refused(name: str, look: bool, files: Path) -> None:
    default = inspect.signature(tfr.dataset).parameters[name].default
    source = tfr.dataset(files / "a", **{name: OTHER_VALUES[name]})
    assert not look or source.schema.names
    assert getattr(unwrapped(tfr.dataset(source)).stated, name) == OTHER_VALUES[name]
    if name in ("batch_size", "batch_bytes", "progress"):
        assert getattr(unwrapped(tfr.dataset(source, **{name: default})).stated, name) == default
        return
    with pytest.raises(ValueError, match=f"^dataset: {name}= differs from that of the dataset"):
        tfr.dataset(source, **{name: default})


@pytest.mark.parametrize("name", OTHER_VALUES)
def test_what_is_stated_of_a_dataset_whose_schema_was_looked_at_holds_or_is_refused(name: str, files: Path) -> None:
    source, other = tfr.dataset(files / "a"), OTHER_VALUES[name]
    assert source.schema.names
    if name == "allow_missing_shards":
        with pytest.raises(ValueError, match=f"^dataset: {name}= differs from that of the dataset"):
            tfr.dataset(source, **{name: other})
        return
    assert getattr(unwrapped(tfr.dataset(source, **{name: other})).stated, name) == other


def test_other_values_are_those_of_all_keywords_with_a_default() -> None:
    parameters = inspect.signature(tfr.dataset).parameters.values()
    assert {p.name for p in parameters if p.default not in (None, p.empty)} - {"offset"} == {*OTHER_VALUES}


def test_batches_have_the_default_size_if_the_call_says_so(files: Path) -> None:
    source = tfr.dataset(files / "a", batch_size=3)
    for size, expected in ({}, 3), ({"batch_size": 65_536}, 16):
        with tfr.open_reader(source, **size) as reader:
            assert reader.read_next_batch().num_rows == expected


SHOWS_PROGRESS = {
    "read_table": lambda source, out, **keywords: tfr.read_table(source, **keywords),
    "read_arrays": lambda source, out, **keywords: tfr.read_arrays(source, **keywords),
    "open_reader": lambda source, out, **keywords: tfr.open_reader(source, **keywords).read_all(),
    "infer_schema": lambda source, out, **keywords: tfr.infer_schema(source, **keywords),
    "describe": lambda source, out, **keywords: tfr.describe(source, **keywords),
    "verify": lambda source, out, **keywords: tfr.verify(source, **keywords),
    "merge": lambda source, out, **keywords: tfr.merge(source, out / "out.tfrecord", **keywords),
    "convert": lambda source, out, **keywords: tfr.convert(source, out / "out.tfrecord", **keywords),
    "convert to CSV": lambda source, out, **keywords: tfr.convert(
        tfr.dataset(source).select(["n"]), out / "n.csv", **keywords
    ),
}


@pytest.mark.parametrize("call", SHOWS_PROGRESS)
def test_a_call_that_says_no_progress_shows_none(call: str, files: Path, tmp_path: Path) -> None:
    shown: list[Any] = []
    source = tfr.dataset(files / "a", progress=shown.append)
    SHOWS_PROGRESS[call](source, tmp_path, progress=False)
    assert not shown
    SHOWS_PROGRESS[call](source, tmp_path)
    assert shown


def test_options_of_convert_that_are_defaults_are_compared_with_those_of_a_dataset(files: Path, tmp_path: Path) -> None:
    source = tfr.dataset(files / "a", check_crc=False)
    with pytest.raises(ValueError, match="check_crc= differs from that of the dataset"):
        tfr.convert(source, tmp_path / "a.parquet", source_options={"check_crc": True})
    assert tfr.convert(source, tmp_path / "a.parquet", source_options={"check_crc": False}).records == 16


def test_none_leaves_what_it_is_to_the_dataset(files: Path) -> None:
    source = tfr.dataset(files / "a", schema={"n": "int64"}, limit=3, filters=f("n") > 4, on_error="skip")
    found = tfr.read_table(source, schema=None, limit=None, filters=None, columns=None, on_error=None)
    assert found == pa.table({"n": pa.array([5, 6, 7], pa.int64())})


def test_a_list_of_narrowed_datasets_does_not_leave_damage_out_by_a_call(files: Path) -> None:
    part = tfr.dataset(files / "a", limit=3)
    with pytest.raises(ValueError, match="on_error= differs from that of the dataset"):
        tfr.read_table([part], on_error="skip")


def test_threads_ask_for_the_schema_of_a_dataset_at_the_same_time(files: Path) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(40):
                source = tfr.dataset(files / "a")
                names = [
                    pool.submit(lambda each: (each.schema.names, each.options.batch_size), unwrapped(source))
                    for _ in range(8)
                ]
                assert len({str(name.result()) for name in names}) == 1
    finally:
        sys.setswitchinterval(interval)


_WITH_PATHS: dict[str, Callable[[tfr.Dataset], list[str]]] = {
    "list": lambda dataset: (dataset + dataset).schema.names,
    "rows of a list": lambda dataset: (dataset.filter([("path", "!=", "")]) + dataset).to_table().schema.names,
    "describe": lambda dataset: [column.name for column in tfr.describe(dataset).columns],
    "describe rows": lambda dataset: [
        column.name for column in tfr.describe(dataset.filter([("path", "!=", "")])).columns
    ],
    "table": lambda dataset: tfr.read_table(dataset, filters=[("path", "!=", "")]).schema.names,
}


@pytest.mark.parametrize("embed", [False, True])
@pytest.mark.parametrize("columns", [["n"], ["path", "n"], ["n", "path"], ["path"], ["!path"], ["!n"]])
def test_the_column_of_paths_is_one_of_those_that_are_selected(tmp_path: Path, columns: list[str], embed: bool) -> None:
    tfr.write_tfrecord({"n": [1], "word": ["a"]}, tmp_path / "a", embed_schema=embed)
    dataset = tfr.dataset(tmp_path / "a", include_file_paths="path")
    selected = dataset.select(columns)
    expected = selected.schema.names
    assert {name: read(selected) for name, read in _WITH_PATHS.items()} == dict.fromkeys(_WITH_PATHS, expected)
    with tfr.open_random(selected) as records:
        assert sorted(records[0]) == sorted(records[:].schema.names) == sorted(expected)
    filters = [("path", "!=", "")]
    assert tfr.read_table(dataset, columns=columns, filters=filters).schema.names == expected
    if "path" in columns or "!path" in columns:
        asked = tfr.dataset(tmp_path / "a", include_file_paths="path", columns=columns, filters=filters)
        assert asked.to_table().schema.names == expected
