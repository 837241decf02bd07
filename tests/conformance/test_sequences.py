"""SequenceExamples are exchanged with TensorFlow both ways, and tfx_bsl decodes the written ones."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from wire_forms import BYTES, FLOAT_BITS, INTS, comparable, is_text

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
KINDS = {"int64": pa.int64(), "float": pa.float32(), "bytes": pa.binary()}
STEPS = "##SEQUENCE##"  # tfx_bsl's column of the feature lists


# ---- TensorFlow reads the written files

TABLE = pa.table(
    {
        "id": pa.array([INT64_MIN, None, INT64_MAX, 0]),
        "score": pa.array([0.5, -0.0, None, 1e-45], pa.float32()),
        "name": pa.array(["größe", "", None, "x" * 300]),
        "tags": pa.array([[1, 2], [], None, [3]]),
        "frames": pa.array([[[1.0, 2.0], None, []], [], None, [[float("inf")]]], pa.list_(pa.list_(pa.float32()))),
        "words": pa.array([[[b"a", b"\x00\xff"], []], [None, None], [[b""]], None], pa.list_(pa.list_(pa.binary()))),
        "counts": pa.array([None, [[INT64_MIN], [1, 2, 3]], [[]], []]),
        "codes": pa.array([[7, 8, 9], [], None, [0]]),
        "votes": pa.array([[True, None], [False], [None], []]),
        "points": pa.array([[[1.0, 2.0], [3.0, 4.0]], [], None, [[5.0, 6.0]]], pa.list_(pa.list_(pa.float32(), 2))),
        "größe/日本": pa.array([["a", "b"], [""], None, []]),
    }
)
SINGLE = {
    "codes": "int64",
    "votes": "bool",
    "größe/日本": "string",
}  # feature lists of single values: only a schema says so


@pytest.fixture(params=[True, False], ids=["schema embedded", "no schema"])
def embed_schema(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def written(engine: str, embed_schema: bool, tmp_path: Path) -> str:
    """TABLE, written by us."""
    fields = {field.column: field for field in tfr.Schema.from_arrow(TABLE.schema)}
    schema = tfr.Schema(fields | {name: tfr.sequence(type_) for name, type_ in SINGLE.items()})
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(TABLE, path, schema=schema, record_type="sequence_example", embed_schema=embed_schema)
    return str(path)


@pytest.fixture
def payloads(tf: Any, written: str) -> list[bytes]:
    return [record.numpy() for record in tf.data.TFRecordDataset(written)]


def _context_features(tf: Any) -> dict[str, Any]:
    return {
        "id": tf.io.FixedLenFeature([], tf.int64, default_value=42),
        "score": tf.io.FixedLenFeature([], tf.float32, default_value=9.0),
        "name": tf.io.FixedLenFeature([], tf.string, default_value="?"),
        "tags": tf.io.RaggedFeature(tf.int64),
    }


def _sequence_features(tf: Any) -> dict[str, Any]:
    return {
        "frames": tf.io.RaggedFeature(tf.float32),
        "words": tf.io.RaggedFeature(tf.string),
        "counts": tf.io.VarLenFeature(tf.int64),
        "codes": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
        "votes": tf.io.RaggedFeature(tf.int64),
        "points": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
        "größe/日本": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    }


def _steps(name: str) -> list[list[list[Any]]]:
    """A column as TensorFlow gives it: no list, and a step without a kind, are empty."""
    rows = [
        [[step] if name in SINGLE and step is not None else step or [] for step in row or []]
        for row in TABLE[name].to_pylist()
    ]
    return [[[v.encode() if isinstance(v, str) else v for v in step] for step in row] for row in rows]


def _flat(rows: list[list[list[Any]]]) -> list[list[Any]]:
    return [[value for step in row for value in step] for row in rows]


def test_parse_sequence_example(tf: Any, payloads: list[bytes]) -> None:
    context, lists, lengths = tf.io.parse_sequence_example(payloads, _context_features(tf), _sequence_features(tf))
    assert context["id"].numpy().tolist() == [INT64_MIN, 42, INT64_MAX, 0]
    assert (
        context["score"].numpy().view(np.uint32).tolist()
        == np.array([0.5, -0.0, 9.0, 1e-45], np.float32).view(np.uint32).tolist()
    )
    assert context["name"].numpy().tolist() == ["größe".encode(), b"", b"?", b"x" * 300]
    assert context["tags"].to_list() == [[1, 2], [], [], [3]]
    for name in ("frames", "words", "votes"):
        assert lists[name].to_list() == _steps(name), name
    # A sparse tensor has nothing where a step is empty: the values with their row, step and position in it.
    places = [
        [row, at, place]
        for row, steps in enumerate(_steps("counts"))
        for at, step in enumerate(steps)
        for place in range(len(step))
    ]
    assert lists["counts"].indices.numpy().tolist() == places
    assert lists["counts"].values.numpy().tolist() == [INT64_MIN, 1, 2, 3]
    for name in ("codes", "points", "größe/日本"):
        steps = _steps(name)
        assert lengths[name].numpy().tolist() == [len(row) for row in steps], name
        padded = lists[name].numpy()
        rows = [padded[at, : len(row)].tolist() for at, row in enumerate(steps)]
        assert rows == (steps if name == "points" else _flat(steps)), name


def test_parse_single_sequence_example(tf: Any, payloads: list[bytes]) -> None:
    described = _sequence_features(tf)
    for at, payload in enumerate(payloads):
        context, lists = tf.io.parse_single_sequence_example(payload, _context_features(tf), described)
        assert context["tags"].numpy().tolist() == [[1, 2], [], [], [3]][at]
        for name in ("frames", "words", "votes"):
            assert lists[name].to_list() == _steps(name)[at], name
        assert lists["counts"].values.numpy().tolist() == _flat(_steps("counts"))[at]
        assert lists["codes"].numpy().tolist() == _flat(_steps("codes"))[at]
        assert lists["points"].numpy().tolist() == _steps("points")[at]


def test_messages_leave_out_null_lists_and_keep_empty_ones_and_steps_without_a_kind(
    tf: Any, payloads: list[bytes]
) -> None:
    examples = [tf.train.SequenceExample.FromString(payload) for payload in payloads]
    for name in TABLE.schema.names:
        context = name in ("id", "score", "name", "tags")
        maps = [example.context.feature if context else example.feature_lists.feature_list for example in examples]
        assert [name in features for features in maps] == TABLE[name].is_valid().to_pylist(), name
        if not context:
            assert all(name not in example.context.feature for example in examples)
            for row, features in zip(TABLE[name].to_pylist(), maps, strict=True):
                kinds = (
                    [step.WhichOneof("kind") is not None for step in features[name].feature] if row is not None else []
                )
                assert kinds == [step is not None for step in row or []], name


def test_a_schema_of_tensorflows_descriptions_gives_the_same(tf: Any, written: str) -> None:
    """The columns are those of parse_sequence_example, but for null instead of empty where the feature is absent."""
    context = {**_context_features(tf), "tags": tf.io.VarLenFeature(tf.int64)}
    lists = {name: feature for name, feature in _sequence_features(tf).items() if name != "votes"}
    table = tfr.read_table(
        tfr.dataset(written, record_type="sequence_example"), schema=tfr.Schema.from_feature_description(context, lists)
    )
    assert table["id"].to_pylist() == [INT64_MIN, 42, INT64_MAX, 0]
    assert table["name"].to_pylist() == ["größe".encode(), b"", b"?", b"x" * 300]
    for name in ("tags", "frames", "words", "counts", "codes", "points"):
        assert table[name].to_pylist() == TABLE[name].to_pylist(), name
    assert table["größe/日本"].to_pylist() == [[b"a", b"b"], [b""], None, []]


def test_comes_back_to_us(written: str, embed_schema: bool) -> None:
    table = tfr.read_table(written)
    expected = TABLE.to_pydict()
    if embed_schema:
        assert table.schema.names == TABLE.schema.names
    else:  # where a step has no kind the steps are lists, and numbers are numbers
        expected["votes"] = [[[1], None], [[0]], [None], []]
    assert table.to_pydict() == expected


# ---- we read TensorFlow's


def _draw(rng: random.Random, kind: str, count: int) -> list[Any]:
    if kind == "int64":
        return [rng.choice(INTS) for _ in range(count)]
    if kind == "float":
        quiet = [b for b in FLOAT_BITS if b != 0x7FA12345]  # Python's protobuf quiets a signalling NaN as it writes
        return [float(np.uint32(rng.choice(quiet)).view(np.float32)) for _ in range(count)]
    return [rng.choice(BYTES) for _ in range(count)]


def _fill(feature: Any, kind: str, values: list[Any] | None) -> None:
    feature.SetInParent()
    if values is not None:
        target = getattr(feature, f"{kind}_list")
        target.SetInParent()
        target.value.extend(values)


class Drawn:
    """Random SequenceExamples of TensorFlow's, with the values that went in.

    Attributes
    ----------
    payloads : list of bytes
    context, lists : dict of str to (kind, rows)
        A row is the values, or None where the feature is absent or has no kind; of a feature list the steps, each so.
    """

    def __init__(self, tf: Any, seed: int, count: int) -> None:
        rng = random.Random(seed)
        names = [f"{letter}{i}" for letter in ("ä", "x/", "") for i in range(3)]
        rng.shuffle(names)
        cut = rng.randint(0, 4)
        self.context = {name: (rng.choice(list(KINDS)), []) for name in names[:cut]}
        self.lists = {name: (rng.choice(list(KINDS)), []) for name in names[cut : cut + rng.randint(1, 4)]}
        single = {name: rng.random() < 0.5 for name in names}
        absent = {name: rng.choice([0.0, 0.1, 0.9, 1.0]) for name in names}
        no_kind = {name: rng.choice([0.0, 0.0, 0.1, 1.0]) for name in names}
        self.payloads = []

        def values(name: str, kind: str) -> list[Any] | None:
            if rng.random() < no_kind[name]:
                return None
            return _draw(rng, kind, 1 if single[name] else rng.choice([0, 1, 2, 5, 40]))

        for _ in range(count):
            example = tf.train.SequenceExample()
            for name, (kind, rows) in self.context.items():
                rows.append(None)
                if rng.random() >= absent[name]:
                    rows[-1] = values(name, kind)
                    _fill(example.context.feature[name], kind, rows[-1])
            for name, (kind, rows) in self.lists.items():
                rows.append(None)
                if rng.random() >= absent[name]:
                    rows[-1] = [values(name, kind) for _ in range(rng.choice([0, 1, 2, 7]))]
                    feature_list = example.feature_lists.feature_list[name]
                    feature_list.SetInParent()
                    for step in rows[-1]:
                        _fill(feature_list.feature.add(), kind, step)
            self.payloads.append(example.SerializeToString())

    @property
    def has_lists(self) -> bool:
        return any(row is not None for _, rows in self.lists.values() for row in rows)


def _expected(kind: str, features: list[list[Any] | None]) -> tuple[pa.DataType, list[Any]]:
    """The type and the values of a column or of steps; features without a kind are None."""
    present = [each for each in features if each is not None]
    if not present:
        return pa.null(), features
    item = KINDS[kind]
    if kind == "bytes" and all(is_text(v) for each in present for v in each):
        item = pa.string()
        features = [None if each is None else [v.decode() for v in each] for each in features]
    if all(len(each) == 1 for each in present):
        return item, [None if each is None else each[0] for each in features]
    return pa.list_(item), features


def _expected_list(kind: str, rows: list[list[list[Any] | None] | None]) -> tuple[pa.DataType, list[Any]]:
    """list<T> where every step has exactly one value, else list<list<T>>; a step without a kind is an inner null."""
    steps = [step for row in rows if row is not None for step in row]
    if None in steps:  # a step without a value
        present = [step for step in steps if step is not None]
        item = KINDS[kind] if present else pa.null()
        if kind == "bytes" and present and all(is_text(v) for step in present for v in step):
            item = pa.string()
            steps = [None if step is None else [v.decode() for v in step] for step in steps]
        step_type = pa.list_(item)
    else:
        step_type, steps = _expected(kind, steps)
    remaining = iter(steps)
    return pa.list_(step_type), [None if row is None else [next(remaining) for _ in row] for row in rows]


def _assert_read(table: pa.Table, drawn: Drawn, where: str) -> None:
    met = {name for name, (_, rows) in drawn.lists.items() if any(row is not None for row in rows)}
    met |= {name for name, (_, rows) in drawn.context.items() if any(row is not None for row in rows)}
    assert met <= set(table.schema.names) <= {*drawn.context, *drawn.lists}, where
    assert table.schema.names == sorted(table.schema.names), where
    assert table.num_rows == len(drawn.payloads), where
    for name in table.schema.names:
        expected = _expected(*drawn.context[name]) if name in drawn.context else _expected_list(*drawn.lists[name])
        assert table.schema.field(name).type == expected[0], f"{where}, {name}"
        assert comparable(table[name].to_pylist()) == comparable(expected[1]), f"{where}, {name}"


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_random_sequence_examples(engine: str, compression: str, tf: Any, write_records: Any, tmp_path: Path) -> None:
    detected = 0
    for seed in range(40):
        drawn = Drawn(tf, seed, count=30)
        path = write_records(tmp_path / f"{seed}.tfrecord", drawn.payloads, compression)
        _assert_read(tfr.read_table(tfr.dataset(path, record_type="sequence_example")), drawn, f"seed {seed}")
        if drawn.has_lists:  # else on the wire they are Examples
            detected += 1
            _assert_read(tfr.read_table(path), drawn, f"seed {seed}, detected")
    assert detected > 20


def test_many_files(engine: str, tf: Any, write_records: Any, tmp_path: Path) -> None:
    drawn = Drawn(tf, seed=8, count=90)
    for shard in range(3):
        write_records(tmp_path / f"data.tfrecord-{shard:05}-of-00003", drawn.payloads[shard * 30 : shard * 30 + 30])
    for threads in (1, 2):
        _assert_read(tfr.read_table(tfr.dataset(tmp_path, threads=threads)), drawn, f"{threads} threads")


def test_serialized_messages_are_accepted(tf: Any) -> None:
    for payload in Drawn(tf, seed=3, count=20).payloads:
        actual = tfr.train.SequenceExample.FromString(payload)
        assert tf.train.SequenceExample.FromString(actual.SerializeToString()) == tf.train.SequenceExample.FromString(
            payload
        )


def test_tfx_bsl_reads_written_files(payloads: list[bytes], tfx_decode_sequences: Any) -> None:
    reference = tfx_decode_sequences(payloads)
    assert reference["tags"].to_pylist() == TABLE["tags"].to_pylist()
    assert reference["id"].to_pylist() == [None if each is None else [each] for each in TABLE["id"].to_pylist()]
    found = reference[STEPS].to_pylist()
    for name in reference[STEPS].type.names:
        rows = [row[name] for row in found]
        if name != "counts":  # its integers are truncated
            assert [[step or [] for step in row or []] for row in rows] == _steps(name), name
        assert [row is None for row in rows] == [row is None for row in TABLE[name].to_pylist()], name
