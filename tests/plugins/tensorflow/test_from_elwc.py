"""Lists of TensorFlow Ranking as rows: those that protobuf parses, wherever they are, and errors that name the list."""

from __future__ import annotations

import gzip
import io
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError as ProtobufError
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from records import blobs, entry, example, field, flip, floats, framed, group, int64s, tag, varint, written
from reference_engine import wire_tags
from reference_engine.record_parser import read_record
from strategies import damaged, payloads
from tfrecord_io.bytes.format.feature_types import Kind, RecordType
from tfrecord_io.bytes.format.protobuf import MessageClasses

# tensorflow_serving/apis/input.proto; the messages of its fields are merged as bytes
ELWC = MessageClasses("tests/elwc.proto", "tests.elwc", {"Elwc": "examples 1 *bytes, context 2 *bytes"})["Elwc"]


def elwc(*examples: bytes, context: bytes | None = None) -> bytes:
    return b"".join(field(1, e) for e in examples) + (b"" if context is None else field(2, context))


def document(number: int) -> bytes:
    return example(doc=blobs(b"d%d" % number), clicks=int64s(number))


LISTS = [
    elwc(document(0), document(1), context=example(query=blobs(b"first"))),
    elwc(context=example(query=blobs(b"no documents"))),
    elwc(document(2)),
    b"",
    elwc(b"", document(3), context=example(query=blobs(b"last"))),
]
ROWS = [
    {"record": 0, "position": 0, "doc": "d0", "clicks": 0, "query": "first"},
    {"record": 0, "position": 1, "doc": "d1", "clicks": 1, "query": "first"},
    {"record": 2, "position": 0, "doc": "d2", "clicks": 2, "query": None},
    {"record": 4, "position": 0, "doc": None, "clicks": None, "query": "last"},
    {"record": 4, "position": 1, "doc": "d3", "clicks": 3, "query": "last"},
]


def read(path: Any, **keywords: Any) -> pa.Table:
    return read_by(tfr.formats.open_elwc, path, **keywords).read_all()


def rows(path: Any, **keywords: Any) -> list[dict[str, Any]]:
    return list(read(path, **keywords).to_pylist())


def test_a_row_for_each_example(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", LISTS)
    assert rows(path) == ROWS
    assert read(path).column_names == ["clicks", "doc", "position", "query", "record"]
    without = [{name: value for name, value in row.items() if name != "query"} for row in ROWS]
    assert rows(path, part="examples") == without
    queries = ["first", "no documents", None, None, "last"]
    assert rows(path, part="context") == [{"query": query, "record": at} for at, query in enumerate(queries)]


def test_forms_of_a_list(engine: str, tmp_path: Path) -> None:
    """A repeated context is merged, fields have any order, unknown fields and other wire types are skipped."""
    first, second = example(query=blobs(b"old"), user=int64s(1)), example(query=blobs(b"new"), x=floats(0.5))
    unknown = field(7, b"\xff") + tag(1, 0) + varint(5) + tag(2, 5) + bytes(4) + group(9, field(1, b"\xff"))
    payload = field(2, first) + unknown + field(1, document(1), pad=2) + field(2, second) + field(1, document(2))
    expected = {"query": "new", "user": 1, "x": 0.5, "record": 0}
    assert rows(written(tmp_path / "a", [payload])) == [
        {"doc": f"d{n}", "clicks": n, "position": n - 1, **expected} for n in (1, 2)
    ]


def _rows_of_protobuf(lists: list[bytes]) -> tuple[list[bytes], list[int], int | None]:
    """Serialized rows of all lists as protobuf merges them, their lists, and the first list that is refused."""
    made, owners = [], []
    for number, payload in enumerate(lists):
        try:
            wire_tags.parse(ELWC, payload, {})
            list(wire_tags.fields(payload))
        except ProtobufError:
            return made, owners, number
        message = ELWC.FromString(payload)
        if not all(map(_is_example, message.context)):
            return made, owners, number
        for position, own in enumerate(message.examples):
            if not _is_example(own):
                return made, owners, number
            numbers = example(record=int64s(number), position=int64s(position))
            made.append(b"".join(message.context) + own + numbers)
            owners.append(number)
    return made, owners, None


def _is_example(payload: bytes) -> bool:
    try:
        read_record(payload, RecordType.EXAMPLE, lambda name, is_list: False)
    except ProtobufError:
        return False
    return True


CONTEXTS = payloads({"q": Kind.BYTES, "user": Kind.INT64}, {})
EXAMPLES = payloads({"a": Kind.INT64, "b": Kind.BYTES, "c": Kind.FLOAT}, {})
FIELDS = CONTEXTS.map(lambda content: field(2, content)) | st.lists(EXAMPLES, max_size=3).map(lambda own: elwc(*own))
PAYLOADS = st.lists(FIELDS, max_size=3).map(b"".join)


def _outcome(path: Path, function: Any, **keywords: Any) -> pa.Table | tfr.TFRecordError:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of embedded schemas, and of no records
        try:
            if function is tfr.open_reader:
                return tfr.open_reader(tfr.dataset(path, record_type="example")).read_all()
            return read(path)
        except tfr.TFRecordError as error:
            return error


@given(st.lists(PAYLOADS | PAYLOADS.flatmap(damaged), max_size=5))
def test_rows_are_those_of_protobuf(engine: str, lists: list[bytes]) -> None:
    made, owners, refused = _rows_of_protobuf(lists)
    with tempfile.TemporaryDirectory() as folder:
        expected = _outcome(written(Path(folder) / "rows", made), tfr.open_reader)
        actual = _outcome(written(Path(folder) / "lists", lists), tfr.formats.open_elwc)
    if isinstance(actual, pa.Table):
        assert refused is None
        assert not isinstance(expected, tfr.TFRecordError), expected
        assert actual.schema == expected.schema
        assert repr(actual.to_pylist()) == repr(expected.to_pylist())  # where NaNs are equal
        return
    assert actual.record is None or len(lists) > actual.record
    if "the name is used in" in actual.reason or "adds a column" in actual.reason:
        return  # by damage: see below
    if isinstance(expected, pa.Table):
        assert isinstance(actual, tfr.errors.DecodeError)
        assert actual.record == refused
    else:
        assert (actual.feature, actual.expected, actual.got) == (expected.feature, expected.expected, expected.got)
        assert actual.record == (None if expected.record is None else owners[expected.record])


# Where the rows are ------------------------------------------------------------------------------------------------


def test_numbers_go_on_from_file_to_file(engine: str, tmp_path: Path) -> None:
    written(tmp_path / "a-00000-of-00002", LISTS[:2])
    (tmp_path / "a-00001-of-00002").write_bytes(gzip.compress(framed(*LISTS[2:])))
    assert rows(tmp_path / "a@2") == ROWS
    assert rows([tmp_path / "a-00000-of-00002", tmp_path / "a-00001-of-00002"]) == ROWS
    assert rows(io.BytesIO(framed(*LISTS))) == ROWS


def test_large_lists_and_many(engine: str, tmp_path: Path) -> None:
    """Lists fill several blocks and pieces; a context is larger than a block."""
    rng = np.random.default_rng(5)
    size = 400 if engine == "reference_engine" else 4000
    counts = [*rng.integers(0, 6, size).tolist(), size, 0, 3]
    lists, number = [], 0
    for at, count in enumerate(counts):
        long = blobs(bytes(9 << 20 if at == size + 2 else 20))
        lists.append(elwc(*map(document, range(number, number + count)), context=example(long=long, at=int64s(at))))
        number += count
    table = read(written(tmp_path / "a", lists), schema=dict.fromkeys(["record", "position", "clicks", "at"], "int64"))
    assert table["clicks"].to_pylist() == list(range(number))
    assert table["record"].to_pylist() == table["at"].to_pylist() == np.repeat(np.arange(len(counts)), counts).tolist()
    assert table["position"].to_pylist() == [position for count in counts for position in range(count)]


def test_no_records_and_no_rows(engine: str, tmp_path: Path) -> None:
    for lists in ([], [b""], [elwc(context=example(query=blobs(b"a")))]):
        with pytest.warns(tfr.errors.SchemaWarning, match="no records"):
            assert read(written(tmp_path / "a", lists)).num_rows == 0


def test_progress_counts_the_bytes_of_the_files(tmp_path: Path) -> None:
    path = written(tmp_path / "a", LISTS)
    for call in (
        lambda progress: read(path, progress=progress),
        lambda progress: tfr.convert(path, tmp_path / "b.csv", source_format="elwc", progress=progress),
        lambda progress: tfr.convert(path, tmp_path / "c.tfrecord", source_format="elwc", progress=progress),
    ):
        states: list[tfr.typing.Progress] = []
        call(states.append)
        assert (states[-1].done, states[-1].total, states[-1].unit) == (
            path.stat().st_size,
            path.stat().st_size,
            "bytes",
        )

    def cancel(progress: tfr.typing.Progress) -> None:
        raise KeyError("cancelled")

    with pytest.raises(KeyError, match="cancelled"):
        read(path, progress=cancel)


def test_keywords_of_readers(tmp_path: Path) -> None:
    path = written(tmp_path / "a", LISTS)
    assert rows(path, columns=["record", "doc"])[2] == {"record": 2, "doc": "d2"}
    assert rows(path, filters=[("clicks", ">=", 1), ("record", "<", 4)]) == ROWS[1:3]
    assert rows(path, offset=1) == ROWS[1:]
    assert rows(tfr.dataset(path, offset=1, limit=2)) == ROWS[1:3]
    payloads = tfr.dataset(path, record_type="bytes")
    assert rows(payloads) == ROWS
    assert rows(payloads.limit(1)) == ROWS[:2]
    assert rows(path, schema={"query": "binary", "clicks": "int32"})[0] == {"query": b"first", "clicks": 0}
    batches = list(tfr.formats.open_elwc(tfr.dataset(path, batch_size=2)))
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert rows(path, stable_types=True)[0]["record"] == [0]
    assert tfr.write_tfrecord(tfr.formats.open_elwc(path), tmp_path / "flat").records == 5
    assert tfr.read_table(tmp_path / "flat").to_pylist() == rows(path)
    with tfr.formats.open_elwc(path) as reader:
        assert next(reader).num_rows == 5
        assert reader.origins.locate(3) == (str(path), 4)  # the list of the row
    for keywords, error in (
        ({"record_type": "example"}, TypeError),
        ({"include_file_paths": "path"}, TypeError),
        ({"on_error": "skip"}, ValueError),
        ({"part": "both"}, ValueError),
    ):
        with pytest.raises(error):
            read_by(tfr.formats.open_elwc, path, **keywords)  # type: ignore[arg-type]
    folder = tmp_path / "hive" / "label=3"
    folder.mkdir(parents=True)
    written(folder / "a.tfrecord", LISTS)
    with pytest.raises(ValueError, match="the column 'label' of folders"):
        tfr.formats.open_elwc(tmp_path / "hive")
    assert rows(folder) == ROWS


# Faults ------------------------------------------------------------------------------------------------------------


def fault(path: Path, kind: type[tfr.TFRecordError] = tfr.errors.DecodeError, **keywords: Any) -> tfr.TFRecordError:
    with pytest.raises(kind) as caught:
        read(path, **keywords)
    assert caught.value.path == str(path)
    return caught.value


def test_a_record_that_is_no_list(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [*LISTS, field(1, document(4)) + b"\x0a\x7f"])
    error = fault(path)
    assert (error.record, error.offset) == (5, len(framed(*LISTS)))
    assert "not a valid ExampleListWithContext" in error.reason
    if engine == "native":
        assert f"a field of 127 bytes, but only 0 are left at byte {len(elwc(document(4))) + 1} of" in error.reason
    reader = tfr.formats.open_elwc(path)
    assert next(reader).num_rows == 5
    with pytest.raises(tfr.errors.DecodeError):
        next(reader)
    with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 5"):
        assert rows(path, on_error="stop") == ROWS


def test_faults_inside_the_parts_name_record_and_byte(engine: str, tmp_path: Path) -> None:
    good, context = document(1), example(query=blobs(b"a"))
    bad_values = field(1, entry("x", field(2, field(1, b"12345"))))  # packed floats of five bytes
    bad_name = field(1, field(1, field(1, b"\xff")))
    before = framed(elwc(good))
    for bad in (bad_values, bad_name):
        for payload in (field(2, context) + elwc(good, bad), elwc(good, context=bad)):
            error = fault(written(tmp_path / "a", [elwc(good), payload]))
            assert (error.record, error.offset) == (1, len(before))
            if engine == "native":
                start = payload.index(bad)
                number = int(error.reason.rpartition(" at byte ")[2].split()[0])
                assert start < number < start + len(bad), error.reason


def test_each_part_of_a_context_is_a_message(engine: str, tmp_path: Path) -> None:
    """Bytes that are an Example only together are not."""
    whole = example(query=blobs(b"words"))
    path = written(tmp_path / "a", [*LISTS, elwc(document(1)) + field(2, whole[:4]) + field(2, whole[4:])])
    error = fault(path)
    assert (error.record, error.reason.partition(":")[0]) == (5, "its context")


def test_a_name_in_both_parts(engine: str, tmp_path: Path) -> None:
    lists = [elwc(document(0), context=example(query=blobs(b"a"))), elwc(document(1), example(query=blobs(b"b")))]
    path = written(tmp_path / "a", [*LISTS[:1] * 3, *lists])
    error = fault(path, tfr.errors.SchemaError)
    assert (error.record, error.feature, error.offset) == (4, "query", len(framed(*LISTS[:1] * 3, lists[0])))
    assert "the name is used in the context and in the examples" in str(error)
    assert len(rows(path, columns="!query")) == 9
    assert len(rows(path, columns=["doc", "record"])) == 9
    assert rows(path, part="examples")[-1]["query"] == "b"
    assert rows(path, part="context")[0] == {"query": "first", "record": 0}
    for name in ("record", "position"):
        for part in ({}, {"part": "examples"}):
            error = fault(written(tmp_path / "a", [elwc(example(**{name: int64s(1)}))]), tfr.errors.SchemaError, **part)
            assert (error.feature, error.record) == (name, 0)
            assert "open_elwc adds a column of this name" in str(error)
    assert (
        rows(written(tmp_path / "a", [elwc(context=example(position=int64s(1)))]), part="context")[0]["position"] == 1
    )


def test_values_that_do_not_fit_name_the_list(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [*LISTS, elwc(document(1), example(clicks=floats(1)))])
    error = fault(path, tfr.TFRecordError)
    assert (error.feature, error.record, error.offset) == ("clicks", 5, len(framed(*LISTS)))
    error = fault(path, tfr.errors.FeatureTypeError, schema={"clicks": "int64"})
    assert (error.feature, error.record, error.offset) == ("clicks", 5, len(framed(*LISTS)))


def test_damaged_files(engine: str, tmp_path: Path) -> None:
    path = flip(written(tmp_path / "a", LISTS), len(framed(*LISTS[:2])) + 20)
    error = fault(path, tfr.errors.CorruptRecordError)
    assert (error.record, error.offset) == (2, len(framed(*LISTS[:2])))
    reader = tfr.formats.open_elwc(path)
    assert next(reader).to_pylist() == ROWS[:2]
    with pytest.raises(tfr.errors.CorruptRecordError, match="record 2"):
        next(reader)
    assert len(rows(path, check_crc=False)) in (4, 5)
    path.write_bytes(framed(*LISTS)[:-3])
    error = fault(path, tfr.errors.TruncatedRecordError)
    assert error.record == 4
    other = written(tmp_path / "b", LISTS)
    with pytest.raises(tfr.errors.TruncatedRecordError) as caught:
        read([other, path])
    assert (caught.value.path, caught.value.record) == (str(path), 4)
    (tmp_path / "c").write_bytes(gzip.compress(framed(*LISTS))[:-10])
    assert fault(tmp_path / "c", tfr.errors.CompressionError).path == str(tmp_path / "c")


def test_other_messages_get_advice(engine: str, tmp_path: Path) -> None:
    error = fault(written(tmp_path / "a", [document(1), document(2)]))
    assert error.record == 0
    assert "read tf.train.Examples with read_table" in str(error)
    with pytest.raises(tfr.errors.DecodeError, match=r"tfr\.formats.open_elwc reads ExampleListWithContext"):
        tfr.read_table(written(tmp_path / "a", LISTS))


def test_a_repeated_context_is_bounded(tmp_path: Path) -> None:
    """Few bytes do not become any number of them: 1 MB of context for 100,000 empty examples is 100 GB."""
    path = written(tmp_path / "a", [*LISTS, field(2, example(long=blobs(bytes(10**6)))) + field(1, b"") * 10**5])
    error = fault(path, limits=tfr.Limits(expansion_bytes=1 << 20))
    assert error.of_memory
    assert (error.record, error.offset) == (5, len(framed(*LISTS)))
    assert "a context of 1000" in error.reason
    assert len(rows(path, part="examples", limits=tfr.Limits(expansion_bytes=1 << 20))) == 10**5 + 5
    with pytest.raises(tfr.errors.SchemaError, match=r"limits=tfr.Limits\(features=3\)"):
        read(path, limits=tfr.Limits(features=3))
