"""Features with values of several feature types: an error, or the records with the less frequent ones are left out."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import written
from strategies import blobs, example, floats, int64s, sequence_example
from tfrecord_io.base import ReadOptions
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.store.paths.resolve import resolve_inputs

VALUES = {"int64": int64s(1), "float": floats(0.5), "bytes": blobs(b"x")}
PYTHON = {"int64": 1, "float": 0.5, "bytes": "x"}
ODD = [example(x=int64s(n), y=floats(n)) for n in range(100)]
ODD[17] = example(x=blobs(b"text"), y=floats(17))


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A file of 100 records, in one of which `x` has another type."""
    return written(tmp_path / "odd.tfrecord", ODD)


@given(
    st.lists(st.lists(st.sampled_from([*VALUES, None]), max_size=12), min_size=1, max_size=3),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_the_most_frequent_type_is_read(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str | None]], threads: int, in_lists: bool
) -> None:
    """Of equally frequent ones that of the first record; the other records are left out and counted."""
    folder = tmp_path_factory.mktemp("files")

    def record(kind: str | None) -> bytes:
        features = {"id": int64s(7)}
        if in_lists:
            return sequence_example(features, {} if kind is None else {"x": [VALUES[kind]]})
        return example(**features, **({} if kind is None else {"x": VALUES[kind]}))

    for number, kinds in enumerate(files):
        written(folder / f"{number}.tfrecord", [record(kind) for kind in kinds])
    every = [kind for kinds in files for kind in kinds]
    frequency = Counter(kind for kind in every if kind is not None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = tfr.open_reader(tfr.dataset(folder, sample="all", threads=threads), on_error="skip")
        tables = [tfr.read_table(tfr.dataset(folder, threads=threads), on_error="skip"), reader.read_all()]
        if len(frequency) > 1:
            with pytest.raises(
                tfr.errors.SchemaError, match=r"feature 'x': it is an? \w+List in .* and an? \w+List in "
            ):
                tfr.read_table(tfr.dataset(folder, threads=threads))
        inferred = tfr.infer_schema(tfr.dataset(folder, threads=threads))
    most = frequency.most_common(1)[0][0] if frequency else None
    kept = [kind for kind in every if kind in (None, most)]
    for table in tables:
        assert table.num_rows == len(kept)
        if most is not None:
            expected = [PYTHON[most]] if in_lists else PYTHON[most]
            assert table["x"].to_pylist() == [None if kind is None else expected for kind in kept]
    assert reader.report.skipped.total == len(every) - len(kept)
    others = {count.kind.name.lower(): count.records for count in inferred.evidence["x"].others} if most else {}
    assert others == {kind: count for kind, count in frequency.items() if kind != most}


def test_records_of_another_type_after_the_sample_are_left_out(engine: str, odd: Path) -> None:
    with (
        pytest.warns(
            tfr.errors.DamagedDataWarning, match=r"1 record with values of another feature type left out in .*x'"
        ),
        tfr.open_reader(tfr.dataset(odd, sample=3), on_error="skip") as reader,
    ):
        assert reader.read_all()["x"].to_pylist() == [n for n in range(100) if n != 17]
    (region,) = reader.report.skipped
    assert (region.records_before, region.error) == (17, "FeatureTypeError")
    assert region.begin is not None
    with (
        tfr.open_reader(tfr.dataset(odd, sample=3)) as reader,
        pytest.raises(tfr.errors.SchemaError, match=r"record 0 and .* record 17"),
    ):
        reader.read_all()


def test_a_function_decides_about_each_record(odd: Path) -> None:
    asked: list[tuple[int | None, str | None]] = []

    def decide(error: tfr.TFRecordError) -> bool:
        asked.append((error.record, error.feature))
        return False

    with pytest.raises(
        tfr.errors.SchemaError, match=r"'x': it is an Int64List in .* record 0 and a BytesList in .* record 17"
    ):
        tfr.read_table(odd, on_error=decide)
    assert asked == [(17, "x")]


MESSAGE = r"1 record with values of another feature type left out in .*record 17 .*'x': expected an Int64List"


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        (lambda path: tfr.describe(path).columns[0].type, "int64"),
        (lambda path: tfr.report(path).statistics[0].features[0].summary.type, "int64"),
        (lambda path: tfr.read_metadata(path).schema.field("x").type, "int64"),
    ],
)
def test_tools_look_at_the_other_records(odd: Path, tool: Any, shown: str) -> None:
    with pytest.warns(tfr.errors.DamagedDataWarning, match=MESSAGE):
        assert tool(odd) == shown


def test_the_evidence_has_both_types(odd: Path) -> None:
    inferred = tfr.infer_schema(odd)
    assert str(inferred["x"].type) == "int64"
    (other,) = inferred.evidence["x"].others
    assert (other.kind.name, other.records, other.first.record) == ("BYTES", 1, 17)
    assert f"a BytesList in 1 record: {odd} record 17" in repr(inferred)


def test_verify_and_salvage_agree_that_nothing_is_damaged(odd: Path, tmp_path: Path) -> None:
    checked = tfr.verify(odd).files[0]
    assert (checked.status, checked.intact, checked.problems[0].record) == ("mixed types", 99, 17)
    salvaged = tfr.salvage(odd, tmp_path / "copy.tfrecord")
    assert (tmp_path / "copy.tfrecord").read_bytes() == odd.read_bytes(), salvaged


def test_feature_lists_with_steps_of_several_types(engine: str, tmp_path: Path) -> None:
    rows = [sequence_example({}, {"s": feature_list}) for feature_list in ([int64s(1)], [int64s(2), floats(1.0)])]
    path = written(tmp_path / "a", [*rows, rows[0]])
    with pytest.raises(
        tfr.errors.SchemaError, match=r"'s': it is an Int64List in .* record 0 and a FloatList in .* record 1"
    ):
        tfr.read_table(path)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert tfr.read_table(path, on_error="skip")["s"].to_pylist() == [[1], [1]]


def test_columns_of_common_types_are_inferred_without_an_object_each(engine: str, tmp_path: Path) -> None:
    kinds = [int64s(1), floats(0.5), blobs(b"x")]
    record = example(**{f"c{at}": kinds[at % 3] for at in range(300)})
    planned = plan_scan(resolve_inputs(written(tmp_path / "wide.tfrecord", [record] * 20)), ReadOptions(), whole=True)
    scan = planned.close()
    assert (len(scan.features), len(scan.schema)) == (300, 300)
    slot = Schema.__dict__["fields"]  # which is empty until the fields are asked for
    with pytest.raises(AttributeError):
        slot.__get__(scan.features)
    assert len(scan.features.fields) == len(slot.__get__(scan.features)) == 300


# ---- empty lists, which have no kind


EMPTY = {"int64": int64s(), "float": floats(), "bytes": blobs()}
LISTS = {"int64": int64s(1, 2), "float": floats(0.5, 1), "bytes": blobs(b"x", b"y")}
ITEMS = {"int64": [1, 2], "float": [0.5, 1.0], "bytes": ["x", "y"]}


@given(
    kind=st.sampled_from(list(EMPTY)),
    cells=st.lists(st.sampled_from([*EMPTY, "values", None]), min_size=1, max_size=20),
    sample=st.sampled_from([1, 3, "all"]),
    declared=st.booleans(),
    steps=st.booleans(),
)
def test_an_empty_list_of_any_kind_is_one_of_the_column(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    cells: list[str | None],
    sample: Any,
    declared: bool,
    steps: bool,
) -> None:
    folder = tmp_path_factory.mktemp("lists")
    features = {**EMPTY, "values": LISTS[kind]}
    if steps:
        records = [sequence_example({}, {} if cell is None else {"x": [features[cell]]}) for cell in ["values", *cells]]
    else:
        records = [example(**({} if cell is None else {"x": features[cell]})) for cell in ["values", *cells]]
    path = written(folder / "a.tfrecord", records)
    type_ = {"int64": "int64", "float": "float32", "bytes": "string"}[kind]
    field = tfr.sequence(tfr.list_(type_)) if steps else tfr.list_(type_)
    schema = {"x": field} if declared else None
    got = tfr.read_table(tfr.dataset(path, schema=schema, sample=sample, on_error="skip"))["x"].to_pylist()
    items = [None if cell is None else ITEMS[kind] if cell == "values" else [] for cell in ["values", *cells]]
    assert got == [item if item is None or not steps else [item] for item in items]


def test_the_error_names_the_first_record_with_a_value(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=own) for own in (int64s(), floats(1), floats(), blobs(b"x"))])
    with pytest.raises(tfr.errors.SchemaError, match=r"a FloatList in .+ record 1 and a BytesList in .+ record 3"):
        tfr.read_table(path)


def test_where_all_lists_are_empty_the_first_decides(tmp_path: Path) -> None:
    records = [example(x=own) for own in (floats(), int64s(), blobs())]
    for number, record in enumerate(records):
        written(tmp_path / f"{number}.tfrecord", [record])
    together = written(tmp_path / "together", records)
    for source in (together, str(tmp_path / "*.tfrecord")):
        assert str(tfr.read_table(source)["x"].type) == "list<item: float>"


def test_records_without_features_are_counted(tmp_path: Path) -> None:
    assert tfr.infer_schema(written(tmp_path / "a", [b"", b"", b""])).records == 3
