"""Apache Beam reads and writes datasets by transforms: each row once, also if bundles fail or are run again."""

from __future__ import annotations

import datetime
import decimal
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.errors import CorruptRecordError, SchemaError
from tfrecord_io.kit import DistributedWriter, Scan
from tfrecord_io.testing.adapter_suite import columns

beam = pytest.importorskip("apache_beam")

from apache_beam.io.restriction_trackers import OffsetRestrictionTracker  # noqa: E402
from apache_beam.utils.timestamp import Timestamp  # noqa: E402

from tfrecord_io.beam import ReadAllTables, ReadTable, WriteTable  # noqa: E402
from tfrecord_io.plugins.engines.beam import beam_transforms  # noqa: E402
from tfrecord_io.plugins.engines.beam.beam_rows import RowForm, arrow_schema  # noqa: E402


def collect(*transforms: Any) -> list[Any]:
    """The elements of a PCollection, in any order."""
    with tempfile.TemporaryFile() as file:
        descriptor = file.fileno()  # functions are sent by value, with what they use
        with beam.Pipeline() as pipeline:
            elements: Any = pipeline
            for transform in transforms:
                elements = elements | transform
            _ = elements | "Collect" >> beam.Map(lambda element: os.write(descriptor, pickle.dumps(element)))
        file.seek(0)
        collected = []
        while True:
            try:
                collected.append(pickle.load(file))
            except EOFError:
                return collected


def written(elements: list[Any], transform: Any, hint: Any = None) -> tfr.typing.WriteReport:
    """The report of writing elements."""
    create = beam.Create(elements, reshuffle=False)
    (report,) = collect(create if hint is None else create.with_output_types(hint), transform)
    return report


def numbers(path: Path) -> list[int]:
    return sorted(tfr.read_table(path)["n"].to_pylist())


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.exists() else []


def table_of_all() -> pa.Table:
    """A column of each type that a row of Beam has, and names that it may have."""
    more = {
        "small": pa.array([-1, None, 2, 3, 127], pa.int8()),
        "unsigned": pa.array([0, 255, None, 1, 2], pa.uint8()),
        "large": pa.array([0, 2**63 - 1, None, 1, 2], pa.uint64()),
        "half": pa.array([1.5, None, 0, 2, 3], pa.float16()),
        "price": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-3.50")] + [None] * 2, pa.decimal128(9, 2)),
        "box": pa.array([{"x": 1, "at": [1.5]}, None, {"x": None, "at": []}, {"x": 2, "at": None}, None]),
        "boxes": pa.array([[{"x": 1}, {"x": 2}], [], None, [{"x": None}], [{"x": 3}]]),
        "words": pa.array([["a", "é"], [], None, ["b"], [""]]),
        "pairs": pa.array([[("a", 1)], [], None, [("b", None)], [("c", 2)]], pa.map_(pa.string(), pa.int64())),
    }
    return pa.table(columns() | more)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    tfr.write_tfrecord(table_of_all(), tmp_path / "in@3")
    return tmp_path / "in@3"


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beam_transforms, "_CHUNK_BYTES", 1000)


def assert_same(got: pa.Table, table: pa.Table) -> None:
    """The same types and rows, in any order; NaN is equal to NaN."""
    assert got.schema.equals(table.schema)
    assert repr(got.sort_by("ints").to_pylist()) == repr(table.sort_by("ints").to_pylist())


# ---- reading


def test_batches_are_those_of_read_table(source: Path) -> None:
    batches = collect(ReadTable(source))
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
    assert_same(pa.Table.from_batches(batches), tfr.read_table(source))


def test_frames_have_the_rows_of_read_tfrecord(source: Path) -> None:
    import pandas as pd

    frames = collect(ReadTable(source, as_="pandas", columns=["ints", "text", "int"]))
    whole = pd.concat(frames).sort_values("ints").reset_index(drop=True)
    pd.testing.assert_frame_equal(whole, tfr.read_tfrecord(source, columns=["ints", "text", "int"]))


def plain(value: Any) -> Any:
    """A value of a row as ``to_pylist`` has it."""
    if isinstance(value, Timestamp):
        return in_utc(value.to_utc_datetime(has_tz=True))
    if isinstance(value, decimal.Decimal) and value == value.to_integral_value() and value >= 0:
        return int(value)
    if isinstance(value, beam.Row) or hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, dict):
        return list(value.items())
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_rows_have_the_values_of_each_type(source: Path) -> None:
    rows = sorted(collect(ReadTable(source, as_="rows"), beam.Reshuffle()), key=lambda row: row.ints)
    table = tfr.read_table(source)
    expected = table.to_pylist()
    for row, images in zip(expected, table["images"].combine_chunks().to_numpy_ndarray().tolist(), strict=True):
        row["images"] = images
    assert repr([plain(row) for row in rows]) == repr([{**row, "time": in_utc(row["time"])} for row in expected])


def in_utc(time: datetime.datetime | None) -> datetime.datetime | None:
    return None if time is None else time.astimezone(datetime.UTC)


def test_rows_are_a_pcollection_with_a_schema(source: Path) -> None:
    pipeline = beam.Pipeline()
    rows = pipeline | ReadTable(source, as_="rows", columns=["ints", "text", "list", "box"])
    fields = dict(rows.element_type._fields)
    assert fields["ints"] == Optional[np.int16]  # noqa: UP045
    assert fields["text"] == Optional[str]  # noqa: UP045
    schema = arrow_schema(rows.element_type)
    assert schema is not None
    read = tfr.read_table(source, columns=["ints", "text", "list", "box"]).schema
    assert schema.types == read.types


def test_rows_are_grouped_by_the_names_of_their_fields(source: Path) -> None:
    sums = collect(
        ReadTable(source, as_="rows", columns=["team", "ints"]),
        beam.GroupBy("team").aggregate_field("ints", sum, "total"),
    )
    assert {(row.team, row.total) for row in sums} == {("red", 10), ("blue", 2), (None, 3)}


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("image/encoded", pa.array([b"a"]), "a field of Beam's rows has a name of letters"),
        ("class", pa.array([1]), "a field of Beam's rows has a name of letters"),
        ("at", pa.array([1], pa.timestamp("ns")), r"Beam's rows have no timestamp\[ns\]"),
        ("at", pa.array([1], pa.duration("s")), r"Beam's rows have no duration\[s\]"),
        ("at", pa.array([1], pa.time64("us")), r"Beam's rows have no time64\[us\]"),
        ("parts", pa.array([[{"x/y": 1}]]), "a field of Beam's rows has a name of letters"),
        ("z", np.ones((1, 2), "complex64"), "Beam's rows have no complex64"),
    ],
)
def test_what_rows_cannot_hold_is_refused_by_name(tmp_path: Path, column: str, values: Any, reason: str) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({column: values, "x": [1]}, path)
    with pytest.raises(SchemaError, match=reason) as caught:
        ReadTable(path, as_="rows")
    assert str(caught.value.feature).startswith(column)
    assert [row.x for row in collect(ReadTable(path, as_="rows", columns=["x"]))] == [1]
    (batch,) = collect(ReadTable(path))
    assert batch.equals(tfr.read_table(path).to_batches()[0])


def test_a_part_of_a_dataset(source: Path) -> None:
    part = tfr.dataset(source).filter([("ints", ">", 3)]).select(["text", "int"])
    (rows, *more) = collect(ReadTable(part))
    assert rows.to_pylist() == [{"text": "é", "int": 4}, {"text": "b", "int": None}]
    assert not more


def test_mistakes_are_errors_before_the_pipeline_runs(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be split"):
        ReadTable(source, limit=3)
    with pytest.raises(FileNotFoundError, match="absent"):
        ReadTable(tmp_path / "absent")
    with pytest.raises(ValueError, match="as_='row': expected 'batches', 'rows', 'pandas'"):
        ReadTable(source, as_="row")
    with pytest.raises(TypeError, match="unexpected keyword argument 'nrows'"):
        ReadTable(source, nrows=3)
    with pytest.raises(TypeError, match="needs schema="):
        ReadAllTables(as_="rows")
    with pytest.raises(ValueError, match="the number of shards is that of the partitions"):
        WriteTable(tmp_path / "out@3")
    with pytest.raises(TypeError, match="only a writer in one process has this keyword"):
        WriteTable(f"{tmp_path}/out/", max_shard_bytes=3)


def test_labels_have_the_names_of_sources(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.tfrecord"
    tfr.write_tfrecord({"n": [1]}, other)
    with beam.Pipeline() as pipeline:
        for path in (source, other):
            rows = pipeline | ReadTable(path, columns=[])
            assert rows.producer.full_label.startswith(f"ReadTable({path})")
    assert ReadTable(tfr.dataset(source)).default_label().endswith("in-00000-of-00003, 2 more)")


def test_paths_of_a_pcollection(tmp_path: Path) -> None:
    for name, values in {"a": {"n": [1, 2]}, "b": {"n": [3], "x": ["é"]}}.items():
        tfr.write_tfrecord(values, tmp_path / f"{name}.tfrecord")
    paths = [str(tmp_path / "a.tfrecord"), str(tmp_path / "b.tfrecord")]
    batches = sorted(collect(beam.Create(paths), ReadAllTables()), key=len)
    assert [batch.to_pydict() for batch in batches] == [{"n": [3], "x": ["é"]}, {"n": [1, 2]}]
    rows = collect(beam.Create(paths), ReadAllTables(as_="rows", schema={"n": "int32"}))
    assert sorted(row.n for row in rows) == [1, 2, 3]


def test_damage_is_reported_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": range(5)}, path)
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    with pytest.raises(Exception, match=r"a\.tfrecord: .*record 4 at byte \d+: payload CRC mismatch") as caught:
        collect(ReadTable(path))
    assert isinstance(caught.value, CorruptRecordError)
    assert sum(batch.num_rows for batch in collect(ReadTable(path, on_error="skip"))) == 4


@pytest.mark.usefixtures("small_chunks")
def test_metrics_count_rows_bytes_and_files(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": range(1000)}, tmp_path / "in@2", embed_schema=False)
    pipeline = beam.Pipeline()
    _ = pipeline | ReadTable(tmp_path / "in@2") | WriteTable(f"{tmp_path}/out/")
    counters = pipeline.run().metrics().query(beam.metrics.MetricsFilter().with_namespace("tfrecord_io"))["counters"]
    counts = {counter.key.metric.name: counter.committed for counter in counters}
    size = sum(file.stat().st_size for file in tmp_path.glob("in-*"))
    report = tfr.read_metadata(tmp_path / "out/")
    assert counts == {
        "rows_read": 1000,
        "bytes_read": size,
        "files_read": 2,
        "rows_written": 1000,
        "bytes_written": report.bytes,
        "files_written": len(report.files),
    }


# ---- splitting


@pytest.mark.usefixtures("small_chunks")
def test_large_files_are_read_in_byte_ranges_and_small_ones_together(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": range(1000)}, tmp_path / "large.tfrecord")
    tfr.write_tfrecord({"n": range(1000, 1020)}, tmp_path / "small@20")
    paths = [tmp_path / "large.tfrecord", tmp_path / "small@20"]
    batches = collect(ReadTable(paths))
    assert sorted(n for batch in batches for n in batch["n"].to_pylist()) == [*range(1020)]
    (run,) = beam_transforms._runs_of_files(Scan.of(paths))
    chunks = beam_transforms._chunks(run)
    assert len(chunks) > 20
    assert max(len(chunk.files) for chunk in chunks) > 5


@given(splits=st.lists(st.tuples(st.integers(0, 30), st.floats(0, 1, exclude_max=True)), max_size=6))
def test_what_is_split_off_at_run_time_is_read_once(
    tmp_path_factory: pytest.TempPathFactory, splits: list[tuple[int, float]]
) -> None:
    path = tmp_path_factory.mktemp("in") / "a.tfrecord"
    tfr.write_tfrecord({"n": range(1000)}, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam_transforms, "_CHUNK_BYTES", 1000)
        (run,) = beam_transforms._runs_of_files(Scan.of(path))
        run = pickle.loads(pickle.dumps(run))
        provider, read = beam_transforms._ChunkRanges(), beam_transforms._ReadChunks("batches", None)
        whole = provider.initial_restriction(run)
        left, got, remaining = list(provider.split(run, whole)), list[int](), list(splits)
        assert sum(part.size() for part in left) == whole.size() > 20
        while left:
            tracker = OffsetRestrictionTracker(left.pop())
            for step, batch in enumerate(read.process(run, tracker)):
                got += batch["n"].to_pylist()
                if remaining and step >= remaining[0][0] % 2:
                    _, fraction = remaining.pop(0)
                    if (parts := tracker.try_split(fraction)) is not None:
                        left.append(parts[1])
            tracker.check_done()
        assert sorted(got) == [*range(1000)]


# ---- writing


Pet = NamedTuple("Pet", [("name", str), ("age", Optional[np.int16])])  # noqa: UP045, UP014


def test_batches_tables_and_frames(tmp_path: Path) -> None:
    import pandas as pd

    table = pa.table({"n": [1, 2], "x": ["a", None]})
    elements = [table, *table.to_batches(), pd.DataFrame({"n": [3], "x": ["b"]})]
    report = written(elements, WriteTable(f"{tmp_path}/out/", index=False))
    assert (report.records, report.columns) == (5, ("n", "x"))
    assert numbers(tmp_path / "out") == [1, 1, 2, 2, 3]
    assert tfr.verify(tmp_path / "out").ok


def test_rows_of_a_pcollection_with_a_schema(tmp_path: Path) -> None:
    written([Pet("a", 3), Pet("é", None)], WriteTable(f"{tmp_path}/pets/"), Pet)
    table = tfr.read_table(tmp_path / "pets").sort_by("name")
    assert table.to_pylist() == [{"name": "a", "age": 3}, {"name": "é", "age": None}]
    assert table.schema.types == [pa.string(), pa.int16()]


def test_rows_that_are_dicts(tmp_path: Path) -> None:
    schema = {"n": "int64", "lists": "list<float>", "image": tfr.tensor("uint8", (None, 2))}
    rows = [{"n": n, "lists": [0.5] * n, "image": np.full((n + 1, 2), n, "uint8")} for n in range(5)]
    written(rows, WriteTable(f"{tmp_path}/out/", schema=schema))
    arrays = tfr.read_arrays(tmp_path / "out")
    assert [image.shape for image in arrays["image"]] == [(n + 1, 2) for n in arrays["n"]]
    written([{"l": [1, 2]}, {"l": []}], WriteTable(f"{tmp_path}/lists/", schema={"l": "list<int64>"}))
    assert sorted(tfr.read_table(tmp_path / "lists")["l"].to_pylist()) == [[], [1, 2]]
    written([{"n": n} for n in range(3000)], WriteTable(f"{tmp_path}/many/", schema={"n": "int64"}))
    assert numbers(tmp_path / "many") == [*range(3000)]
    with pytest.raises(Exception, match="rows have no schema: bundles could not agree on types; pass schema="):
        written(rows, WriteTable(f"{tmp_path}/other/"))


def test_rows_that_are_read_and_written_are_the_same(source: Path, tmp_path: Path) -> None:
    table = tfr.read_table(source)
    collect(ReadTable(source, as_="rows"), WriteTable(f"{tmp_path}/out/", schema=tfr.dataset(source).schema))
    assert_same(tfr.read_table(tmp_path / "out"), table)
    inferred = ["ints", "int", "float", "flag", "text", "raw", "list", "time", "day", "team", "box", "boxes", "words"]
    write = WriteTable(f"{tmp_path}/inferred/", column_encoding={"boxes": "nested"})
    collect(ReadTable(source, as_="rows", columns=inferred), write)
    got, plain_types = tfr.read_table(tmp_path / "inferred").sort_by("ints"), {"team": pa.string()}
    for name in inferred:
        if name != "time":
            type_ = plain_types.get(name, table.schema.field(name).type)
            assert got[name].type == type_, name
            assert repr(got[name].to_pylist()) == repr(table[name].cast(type_).to_pylist()), name
    assert [*map(in_utc, table["time"].to_pylist())] == [*map(in_utc, got["time"].to_pylist())]


def test_a_beam_type_without_an_arrow_type_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"feature 'price': .*decimal.*pass schema="):
        arrow_schema(NamedTuple("Price", [("price", decimal.Decimal)]))
    assert arrow_schema(int) is None


def test_a_number_of_shards(tmp_path: Path) -> None:
    batches = [pa.record_batch({"n": [n]}) for n in range(20)]
    report = written(batches, WriteTable(f"{tmp_path}/out/", shards=4))
    assert len(report.files) == 4
    assert numbers(tmp_path / "out") == [*range(20)]
    assert all(file.records == 5 for file in report.files)


@pytest.mark.parametrize("shards", [None, 2])
def test_tensors_of_several_shapes(tmp_path: Path, shards: int | None) -> None:
    images = [np.full((n + 1, 2), n, "uint8") for n in range(5)]
    tfr.write_tfrecord({"n": range(5), "image": images}, tmp_path / "in.tfrecord")
    collect(ReadTable(tmp_path / "in.tfrecord", batch_size=2), WriteTable(f"{tmp_path}/out/", shards=shards))
    arrays = tfr.read_arrays(tmp_path / "out")
    assert sorted(zip(arrays["n"].tolist(), map(len, arrays["image"]), strict=True)) == [(n, n + 1) for n in range(5)]


def test_folders_and_modes(tmp_path: Path) -> None:
    def write(values: list[int], **keywords: Any) -> None:
        table = pa.table({"n": values, "half": [n % 2 for n in values]})
        written(table.to_batches(max_chunksize=2), WriteTable(f"{tmp_path}/out/", partition_by=["half"], **keywords))

    write([0, 1, 2, 3, 4])
    assert [name for name in names(tmp_path / "out") if "=" in name] == ["half=0", "half=1"]
    write([5, 6], mode="append")
    assert numbers(tmp_path / "out") == [*range(7)]
    with pytest.raises(Exception, match="a sharded dataset of this name exists"):
        write([9], mode="error")
    write([7], mode="overwrite_partitions")
    assert numbers(tmp_path / "out") == [0, 2, 4, 6, 7]
    write([1], mode="overwrite")
    assert numbers(tmp_path / "out") == [1]


def test_no_rows(tmp_path: Path) -> None:
    nothing = beam.Create([]).with_output_types(Pet)
    (report,) = collect(nothing, WriteTable(f"{tmp_path}/none/"))
    assert report.records == 0
    assert tfr.read_table(tmp_path / "none").schema.names == ["name", "age"]


def test_an_unbounded_pcollection_is_refused(tmp_path: Path) -> None:
    pipeline = beam.Pipeline()
    stream = pipeline | beam.Create([pa.record_batch({"n": [1]})])
    stream.is_bounded = False
    with pytest.raises(ValueError, match="the PCollection must be bounded"):
        _ = stream | WriteTable(f"{tmp_path}/out/")


# ---- bundles that fail, or run again


def begun(path: Path, **keywords: Any) -> DistributedWriter:
    return DistributedWriter.begin(f"{path}/", beam_transforms.WriteOptions.from_keywords(keywords))


def run_bundle(writer: DistributedWriter, batches: list[pa.RecordBatch], *, fails: bool = False) -> Iterator[Any]:
    """A bundle as a runner calls it; one that fails after its rows is given up, as is the DoFn, or the DoFn goes on."""
    bundle = beam_transforms._WriteBundle()
    bundle.start_bundle()
    for batch in batches:
        bundle.process(batch, writer)
    if fails:
        bundle.start_bundle()
        return
    yield from (windowed.value for windowed in bundle.finish_bundle())


@pytest.mark.parametrize("keywords", [{}, {"mode": "append"}, {"partition_by": ["half"]}, {"mode": "overwrite"}])
@pytest.mark.parametrize("seed", range(rounds(5)))
def test_bundles_that_run_again_are_published_once(tmp_path: Path, keywords: dict[str, Any], seed: int) -> None:
    random, path = np.random.default_rng(seed), tmp_path / "out"
    before = [] if seed % 2 or not keywords.get("mode") else [-1]
    if before:
        written([pa.record_batch({"n": before})], WriteTable(f"{path}/", **keywords))
    writer = pickle.loads(pickle.dumps(begun(path, **keywords)))
    parts = []
    for first in range(0, 30, 3):
        rows = range(first, first + 3)
        batches = [
            pa.record_batch({"n": [n], "half": [n % 2]} if "partition_by" in keywords else {"n": [n]}) for n in rows
        ]
        for _ in range(random.integers(3)):  # whose result is lost
            [*run_bundle(writer, batches, fails=bool(random.integers(2)))]
        parts += run_bundle(writer, batches)
    report = beam_transforms._publish(None, writer, parts)
    random.shuffle(parts)
    again = beam_transforms._publish(None, writer, parts)  # as the answer was lost
    kept = before if keywords.get("mode") == "append" else []
    assert numbers(path) == [*kept, *range(30)]
    assert (again.records, again.bytes, len(again.files)) == (30, report.bytes, len(report.files))
    assert not [name for name in names(path) if "staged" in name or name.endswith(".tmp")]
    assert tfr.verify(path).ok


def test_a_publication_that_failed_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = begun(tmp_path / "out")
    parts = [*run_bundle(writer, [pa.record_batch({"n": [1, 2]})])]

    def fail(*_: Any) -> None:
        raise OSError("the network is gone")

    monkeypatch.setattr(type(writer.target), "publish", fail)
    with pytest.raises(OSError, match="the network is gone"):
        beam_transforms._publish(None, writer, parts)
    monkeypatch.undo()
    assert beam_transforms._publish(None, writer, parts).records == 2
    assert numbers(tmp_path / "out") == [1, 2]


def test_parts_that_do_not_fit_leave_nothing(tmp_path: Path) -> None:
    writer = begun(tmp_path / "out")
    parts = [*run_bundle(writer, [pa.record_batch({"n": [1]})]), *run_bundle(writer, [pa.record_batch({"n": ["a"]})])]
    with pytest.raises(SchemaError, match="pass schema="):
        beam_transforms._publish(None, writer, parts)
    assert names(tmp_path / "out") == []


PROGRAM = """\
import sys
import apache_beam as beam, pyarrow as pa
from tfrecord_io.beam import ReadTable, WriteTable

def fail(batch):
    if "5" in batch["n"].to_pylist():
        raise ValueError("five")
    return batch

def batches(n):
    return pa.record_batch({"n": [n]})

try:
    with beam.Pipeline() as pipeline:
        rows = pipeline | beam.Create([str(n) for n in range(10)]) | beam.Map(batches)
        done = rows | WriteTable(sys.argv[1])
        _ = done | beam.Map(lambda report: 1 / 0)
        _ = rows | WriteTable(sys.argv[2])
        _ = rows | beam.Reshuffle() | beam.Map(fail) | WriteTable(sys.argv[3])
except Exception as error:
    print(type(error).__name__, file=sys.stderr)
"""


def test_a_pipeline_that_fails_leaves_nothing_when_its_process_ends(tmp_path: Path) -> None:
    out = [tmp_path / name for name in ("done", "other", "failed")]
    command = [sys.executable, "-c", PROGRAM, *(f"{path}/" for path in out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Error" in done.stderr
    for path in out:  # complete, or nothing
        assert not [name for name in names(path) if name.endswith((".staged", ".tmp"))]
        assert names(path) == [] or tfr.count(path) == 10
    assert names(out[2]) == []


def test_a_row_form_is_sent_to_other_processes(source: Path) -> None:
    form = pickle.loads(pickle.dumps(RowForm(tfr.dataset(source).schema)))
    assert [name for name, _ in form.element_type._fields] == tfr.dataset(source).columns
