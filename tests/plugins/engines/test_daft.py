"""Daft reads and writes TFRecord files in its tasks."""

from __future__ import annotations

import datetime
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading_modes import opened_scans
from rounds import rounds
from suites.conditions import VALUES, condition_files
from tfrecord_io.base.options.operators import Operator
from tfrecord_io.testing.adapter_suite import AdapterSuite, columns

daft = pytest.importorskip("daft")


class TestDaft(AdapterSuite):
    keeps_class = False

    def open(self, path: Any, **keywords: Any) -> Any:
        return tfr.dataset(path, **keywords).to_daft(max_bytes=4000)  # a task for each file

    def rows(self, opened: Any, names: list[str] | None = None) -> dict[str, list[Any]]:
        table = (opened if names is None else opened.select(*names)).to_arrow()
        values = {name: table[name].to_pylist() for name in table.column_names}
        if "images" in values:
            values["images"] = table["images"].combine_chunks().to_numpy_ndarray().tolist()
        return values

    def above(self, opened: Any, least: int) -> Any:
        return opened.where(daft.col("ints") > least)

    def first(self, opened: Any, n: int) -> Any:
        return opened.limit(n)

    def count(self, opened: Any) -> int:
        return int(opened.count_rows())

    def names(self, opened: Any) -> list[str]:
        return list(opened.column_names)

    def test_the_schema_is_known_before_anything_is_read(self, path: Path) -> None:
        opened = self.open(path)
        for file in path.parent.glob("*"):
            file.write_bytes(b"damaged")
        schema = opened.schema().to_pyarrow_schema()
        assert (schema.field("ints").type, schema.field("images").type.shape) == (pa.int16(), [2, 2])

    def test_tasks_may_be_parts_of_files(self, path: Path, table: pa.Table) -> None:
        opened = tfr.dataset(path).to_daft(max_bytes=1000)
        self.assert_rows(self.rows(opened), pa.concat_tables([table] * 3).unify_dictionaries())
        assert self.rows(opened.limit(7), ["ints"])["ints"] == [1, 2, 3, 4, 5, 1, 2]

    def test_a_part_of_a_dataset(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(path.parent)
        part = tfr.dataset("*.tfrecord").filter([("ints", ">", 3)]).select(["text", "int"])
        assert self.rows(part.to_daft()) == {"text": ["é", "b"] * 3, "int": [4, None] * 3}
        with pytest.raises(ValueError, match="cannot be split"):
            tfr.dataset("*.tfrecord", limit=3).to_daft()


def test_only_what_is_needed_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}, tmp_path / "in.tfrecord")
    frame = tfr.dataset(tmp_path / "in.tfrecord").to_daft()
    opened = opened_scans(monkeypatch)
    assert frame.where(daft.col("a") > 1).select("b").to_pydict() == {"b": [5, 6]}
    assert [scan.compiled.schema.names for scan in opened] == [["a", "b"]]


def test_rows_of_which_no_column_is_needed(tmp_path: Path) -> None:
    tfr.write_tfrecord({"a": [1, 2, None]}, tmp_path / "a.tfrecord")
    ones = tfr.dataset(tmp_path / "a.tfrecord").to_daft().select(daft.lit(1).alias("one"))
    assert ones.to_pydict() == {"one": [1, 1, 1]}
    assert (ones.count_rows(), ones.limit(2).count_rows()) == (3, 2)


def test_reading_stops_after_the_first_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"n": range(1000)}, tmp_path / "in.tfrecord")
    frame = tfr.dataset(tmp_path / "in.tfrecord").to_daft()
    opened = opened_scans(monkeypatch)
    assert frame.limit(2).to_pydict() == {"n": [0, 1]}
    assert [scan.selection.limit for scan in opened] == [2]


# ---- conditions

KINDS = {
    "n": [0, 1, 2, -5, 2**62, 0.5],
    "small": [1, 2, 127, 300, 1.5],
    "x": [0.0, -1.5, float("nan"), 1],
    "text": ["", "a", "é"],
    "raw": [b"", b"a", b"\xff"],
    "flag": [True, False],
    "time": [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)],
    "team": ["red"],
}
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
TERMS = st.one_of(
    *(
        st.builds(
            lambda name, compare, value, flipped: (
                compare(daft.lit(value), daft.col(name)) if flipped else compare(daft.col(name), value)
            ),
            st.just(name),
            st.sampled_from(COMPARISONS),
            st.sampled_from(values),
            st.booleans(),
        )
        for name, values in KINDS.items()
    ),
    st.sampled_from(sorted(VALUES)).map(lambda name: daft.col(name).is_null()),
    st.sampled_from(sorted(VALUES)).map(lambda name: daft.col(name).not_null()),
    st.builds(
        lambda make: make(),
        st.sampled_from(
            [
                lambda: daft.col("flag"),
                lambda: daft.col("n") == daft.col("small"),
                lambda: daft.col("n").is_in([1, 2]),
                lambda: daft.col("n").between(0, 2),
                lambda: daft.col("text").startswith("a"),
                lambda: daft.col("n").between(daft.col("small"), 2),
                lambda: daft.lit(1) < daft.lit(2),
                lambda: daft.col("n") + 1 > 2,
                lambda: daft.col("n").cast(daft.DataType.string()) == "1",
                lambda: daft.col("n") == daft.lit(None),
            ]
        ),
    ),
)
CONDITIONS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.builds(operator.and_, inner, inner), st.builds(operator.or_, inner, inner), inner.map(operator.invert)
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return condition_files(tmp_path_factory.mktemp("conditions"))


@settings(max_examples=rounds(150))
@given(condition=CONDITIONS, limit=st.sampled_from([None, 0, 1, 7]))
def test_a_condition_keeps_the_rows_that_daft_keeps_after_reading(
    files: list[Path], condition: Any, limit: int | None
) -> None:
    def kept(frame: Any) -> str | Exception:
        frame = frame.where(condition)
        try:
            return repr((frame if limit is None else frame.limit(limit)).to_pydict())  # NaN is not equal to itself
        except daft.exceptions.DaftCoreException as error:
            return error

    frame = tfr.dataset(files).to_daft()
    after = kept(daft.from_arrow(frame.to_arrow()))
    if isinstance(after, str):
        assert kept(frame) == after
    else:  # a comparison of types that Daft does not compare
        assert isinstance(kept(frame), Exception)


@pytest.mark.parametrize(
    ("make", "pushed"),
    [
        (lambda: daft.col("text").startswith("a"), "text startswith 'a'"),
        (lambda: daft.col("n").between(0, 2), "n between 0 and 2"),
        (lambda: daft.col("n").is_null() | daft.col("text").not_null(), "n is null or text is not null"),
        (lambda: daft.lit(1) < daft.col("n"), "n > 1"),
    ],
)
def test_what_is_translated(make: Any, pushed: str) -> None:
    """Daft (0.7.26) makes comparisons of between, and keeps startswith to itself where it plans a query."""
    from tfrecord_io.plugins.engines.daft_source import _translate

    types = pa.schema({name: type_ for name, (type_, _) in VALUES.items()})
    translated = _translate(make(), types)
    assert translated is not None
    assert translated.text == pushed


# By operator: what a user of Daft writes, and the condition by which rows are left out; None if Daft filters alone.
PUSHED: dict[str, tuple[Callable[[], Any], str | None]] = {
    "==": (lambda: daft.col("n") == 1, "n == 1"),
    "!=": (lambda: daft.col("n") != 1, "n != 1"),
    "<": (lambda: daft.col("n") < 1, "n < 1"),
    "<=": (lambda: daft.col("n") <= 1, "n <= 1"),
    ">": (lambda: daft.col("n") > 1, "n > 1"),
    ">=": (lambda: daft.col("n") >= 1, "n >= 1"),
    "in": (lambda: daft.col("n").is_in([1, 2]), None),
    "not in": (lambda: ~daft.col("n").is_in([1, 2]), None),
    "contains": (lambda: daft.col("list").list_contains(1), None),
    "startswith": (lambda: daft.col("text").startswith("a"), "text startswith 'a'"),
    "between": (lambda: daft.col("n").between(0, 2), "n between 0 and 2"),
    "is null": (lambda: daft.col("n").is_null(), "n is null"),
    "is not null": (lambda: daft.col("n").not_null(), "n is not null"),
}


@pytest.mark.parametrize("row", Operator.ALL, ids=lambda row: row.symbol)
def test_each_operator_is_pushed_down_or_left_to_daft(row: Operator) -> None:
    from tfrecord_io.plugins.engines.daft_source import _translate

    assert row.symbol in PUSHED, f"add what a user of Daft writes for {row.symbol}, and what is left out by it"
    make, text = PUSHED[row.symbol]
    assert (row.daft is not None) == (text is not None)
    translated = _translate(make(), pa.schema({"n": pa.int64(), "text": pa.string(), "list": pa.list_(pa.int64())}))
    assert (None if translated is None else translated.text) == text


# ---- writing


def test_columns_of_every_kind(tmp_path: Path) -> None:
    table = pa.table({name: values for name, values in columns().items() if name != "team"})
    tfr.write_tfrecord(table, tmp_path / "in.tfrecord")
    report = tfr.write_tfrecord(tfr.dataset(tmp_path / "in.tfrecord").to_daft(), tmp_path / "out")
    assert report.records == 5
    again, before = tfr.read_table(tmp_path / "out@*"), tfr.read_table(tmp_path / "in.tfrecord")
    assert again.schema.types == before.schema.types
    assert repr(again.to_pylist()) == repr(before.to_pylist())


def test_a_shard_for_each_partition(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": range(1000)}, tmp_path / "in.tfrecord")
    frame = tfr.dataset(tmp_path / "in.tfrecord").to_daft().into_batches(100)
    report = tfr.write_tfrecord(frame, tmp_path / "out/")
    assert {file.records for file in report.files} == {100}
    assert sorted(tfr.read_table(tmp_path / "out/")["n"].to_pylist()) == [*range(1000)]


def test_no_rows(tmp_path: Path) -> None:
    frame = daft.from_pydict({"n": [1, 2], "text": ["a", "b"]}).where(daft.col("n") > 2)
    assert tfr.write_tfrecord(frame, tmp_path / "out/").records == 0
    assert tfr.read_table(tmp_path / "out/").schema.names == ["n", "text"]


def test_an_attempt_that_is_repeated_is_there_once(tmp_path: Path) -> None:
    """Daft calls finalize with the results of one attempt at each task; the workers have copies of the sink."""
    from daft.io.sink import WriteResult
    from daft.recordbatch import MicroPartition

    from tfrecord_io.base.options.write import WriteOptions
    from tfrecord_io.plugins.engines.daft_source import TFRecordSink
    from tfrecord_io.write.distributed import DistributedWriter

    writer = DistributedWriter.begin(tmp_path / "out", WriteOptions())
    sink = TFRecordSink(writer, pa.schema([("n", pa.int64())]))

    def attempt(*values: int) -> WriteResult[Any]:
        (result,) = sink.safe_write(iter([MicroPartition.from_pydict({"n": [value]}) for value in values]))
        returned: WriteResult[Any] = pickle.loads(pickle.dumps(result))
        return returned

    attempt(1, 2)
    results = [attempt(1, 2), attempt(3)]
    attempt(3)
    sink.finalize(results)
    assert tfr.read_table(tmp_path / "out@2")["n"].to_pylist() == [1, 2, 3]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["_MANIFEST-out.json", "out-00000-of-00002", "out-00001-of-00002"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="EncodeError: record 0: feature 'x': float32 cannot hold"):
        tfr.write_tfrecord(daft.from_pydict({"x": [0.1]}), tmp_path / "out/", float64="error")
    with pytest.raises(FileNotFoundError):
        tfr.read_table(tmp_path / "out/")
    with pytest.raises(TypeError, match="shards=3: only a writer in one process has this keyword"):
        tfr.write_tfrecord(daft.from_pydict({"x": [1]}), tmp_path / "out/", shards=3)


@pytest.mark.parametrize("value", [object(), {"a": object()}, [[object()]]], ids=["column", "struct", "lists"])
def test_python_objects_are_not_pickled(tmp_path: Path, value: Any) -> None:
    frame = daft.from_pydict({"n": [1], "x": [value]})
    with pytest.raises(tfr.errors.EncodeError, match="feature 'x': a Daft column of Python objects cannot be stored"):
        tfr.write_tfrecord(frame, tmp_path / "out/")
    assert not list(tmp_path.iterdir())
