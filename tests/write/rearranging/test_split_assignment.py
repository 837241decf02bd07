"""Groups, classes and duplicates: which record goes where depends on the values of columns alone."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from traced import peak

KEYS = st.one_of(
    st.tuples(st.just(pa.int64()), st.lists(st.none() | st.integers(-2, 3), max_size=60)),
    st.tuples(st.just(pa.uint64()), st.lists(st.none() | st.sampled_from([0, 1, 2**32, 2**63 - 1]), max_size=60)),
    st.tuples(st.just(pa.string()), st.lists(st.none() | st.sampled_from(["", "a", "None", "nan", "ä"]), max_size=60)),
    st.tuples(st.just(pa.binary()), st.lists(st.none() | st.sampled_from([b"", b"\0", b"\xff"]), max_size=60)),
    st.tuples(st.just(pa.binary(1)), st.lists(st.none() | st.sampled_from([b"a", b"\0", b"\xff"]), max_size=60)),
    st.tuples(st.just(pa.bool_()), st.lists(st.none() | st.booleans(), max_size=60)),
    st.tuples(
        st.just(pa.float32()), st.lists(st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan")]), max_size=60)
    ),
    st.tuples(st.just(pa.timestamp("us")), st.lists(st.none() | st.integers(0, 3), max_size=60)),
    st.tuples(
        st.just(pa.dictionary(pa.int32(), pa.string())), st.lists(st.none() | st.sampled_from(["a", "b"]), max_size=60)
    ),
)
FAR = st.sampled_from(  # types of which Python has some values only
    [
        (pa.date32(), 2**30),
        (pa.timestamp("s"), 2**50),
        (pa.timestamp("ns"), 2**62 + 1),
        (pa.timestamp("us", "+02:00"), 2**60),
        (pa.duration("s"), 2**60),
        (pa.duration("ns"), 2**62 + 1),
        (pa.time64("ns"), 2**46 + 1),
    ]
).flatmap(
    lambda each: st.tuples(st.just(each[0]), st.lists(st.none() | st.sampled_from([0, 1, 1000, each[1]]), max_size=60))
)
HALVES = st.tuples(
    st.just(pa.float16()), st.lists(st.sampled_from([np.float16(x) for x in (0.0, -0.0, 0.1, np.nan)]), max_size=60)
)


def rows_of(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    """Keys as Python values, with one representative of equal values."""

    def canonical(value: Any) -> Any:
        return "nan" if value != value else value

    columns = [map(canonical, table[name].to_pylist()) for name in names]
    return list(zip(*columns, strict=True))


@settings(max_examples=rounds(60))
@given(KEYS, KEYS, st.sampled_from(["first", "last"]), st.sampled_from([1, 1 << 28]), st.integers(1, 3))
def test_one_record_of_each_key_stays_in_its_order(
    one: Any, other: Any, keep: str, memory_bytes: int, shards: int
) -> None:
    size = min(len(one[1]), len(other[1]))
    columns = {name: pa.array(values[:size], type_) for name, (type_, values) in zip("ab", (one, other), strict=True)}
    table = pa.table({**columns, "n": pa.array(range(size), pa.int64())})
    expected: dict[Any, int] = {}
    for number, key in enumerate(rows_of(table, "a", "b")):
        if keep == "last" or key not in expected:
            expected[key] = number
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord(table, f"{folder}/d", shards=shards)
        if size:
            report = tfr.dedupe(
                f"{folder}/d", f"{folder}/one.tfrecord", by=["a", "b"], keep=keep, memory_bytes=memory_bytes
            )
            actual = tfr.read_table(f"{folder}/one.tfrecord")
            assert report.records == len(expected)
            kept = table.take(sorted(expected.values()))
            assert actual.schema == kept.schema
            assert rows_of(actual, *kept.column_names) == rows_of(kept, *kept.column_names)


@pytest.mark.parametrize("keep", ["first", "last"])
def test_dedupe_takes_twice_the_memory_of_its_keys(tmp_path: Path, keep: Any) -> None:
    rows = 300_000
    tfr.write_tfrecord({"x": np.arange(rows)}, tmp_path / "a.tfrecord")
    assert peak(lambda: tfr.dedupe(tmp_path / "a.tfrecord", tmp_path / "b.tfrecord", by="x", keep=keep)) < 55 * rows


@settings(max_examples=rounds(40))
@given(
    st.lists(st.none() | st.integers(0, 30), min_size=1, max_size=80),
    st.lists(st.none() | st.integers(0, 30), max_size=40),
    st.sampled_from(["group", "stratify"]),
    st.sampled_from([[0.8, 0.2], [0.5, 0.25, 0.25], {"a": 0.1, "b": 0.3}, [0, 1]]),
    st.integers(0, 3),
    st.sampled_from([1, 7, 65_536]),
)
def test_records_that_are_added_change_the_part_of_no_other(
    values: list, added: list, how: str, fractions: Any, seed: int, batch_size: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for name, rows in (("before", values), ("after", values + added)):
            table = {"user": pa.array(rows, pa.int64()), "n": list(range(len(rows)))}
            tfr.write_tfrecord(table, f"{folder}/{name}.tfrecord")
            keywords = {how: "user"}
            # What is added is in other batches, and the number of rows in one has no effect.
            source = tfr.dataset(f"{folder}/{name}.tfrecord", batch_size=batch_size if name == "after" else 65_536)
            made = tfr.split(source, f"{folder}/{name}", fractions=fractions, seed=seed, **keywords)
            tables = {
                part: tfr.read_table(f"{folder}/{name}/{part}.tfrecord", columns=["n", "user"])
                if report.records
                else None
                for part, report in made.items()
            }
            parts.append({n: part for part, rows in tables.items() if rows for n in rows["n"].to_pylist()})
            if how == "group":
                users = Counter(u for rows in tables.values() if rows for u in set(rows["user"].to_pylist()))
                assert set(users.values()) <= {1}
            if sum(fractions.values() if isinstance(fractions, dict) else fractions) == 1:
                assert len(parts[-1]) == len(rows)
        assert {n: part for n, part in parts[1].items() if n < len(values)} == parts[0]


@settings(max_examples=rounds(60))
@given(KEYS | FAR | HALVES, st.integers(0, 3), st.integers(1, 3), st.sampled_from([1, 3, 65_536]))
@example((pa.float32(), [0.0, -0.0] * 20), 0, 1, 65_536)
@example((pa.float32(), [0.0, -0.0] * 20), 0, 1, 1)
@example((pa.string(), ["", None] * 20), 0, 1, 3)
@example((pa.float16(), [np.float16(0.1), np.float16(-0.0)]), 0, 1, 65_536)
@example((pa.date32(), [2**30]), 0, 1, 65_536)
def test_equal_values_are_one_group_and_one_class(keys: Any, seed: int, files: int, batch_size: int) -> None:
    """Values of any type, in any number of files and batches; a missing value and an empty text are equal here."""
    type_, values = keys
    if not values:
        return
    table = pa.table({"key": pa.array(values, type_), "n": pa.array(range(len(values)), pa.int64())})
    equal = ["" if value in (None, b"") else "nan" if value != value else value for value in values]
    size = -(-len(values) // files)
    with tempfile.TemporaryDirectory() as folder:
        for number, begin in enumerate(range(0, len(values), size)):
            tfr.write_tfrecord(table.slice(begin, size), f"{folder}/in-{number}.tfrecord")
        for how in ("group", "stratify"):
            fractions = {"one": 0.5, "two": 0.5}
            source = tfr.dataset(f"{folder}/in-*", batch_size=batch_size)
            made = tfr.split(source, f"{folder}/{how}", fractions=fractions, seed=seed, **{how: "key"})
            own = [
                tfr.read_table(f"{folder}/{how}/{part}.tfrecord", columns=["n"])["n"].to_pylist() if one.records else []
                for part, one in made.items()
            ]
            assert sorted(own[0] + own[1]) == [*range(len(values))]
            counts = [Counter(equal[n] for n in rows) for rows in own]
            if how == "group":
                assert not counts[0].keys() & counts[1].keys()
            else:
                assert all(abs(counts[0][value] - counts[1][value]) <= 4 for value in set(equal))


@pytest.mark.parametrize("batch_size", [11, 65_536])
def test_each_class_has_its_share(tmp_path: Path, batch_size: int) -> None:
    labels = np.random.default_rng(0).choice(["common", "rare", "rarest"], 20000, p=[0.949, 0.05, 0.001]).tolist()
    tfr.write_tfrecord({"label": labels}, tmp_path / "d.tfrecord")
    source = tfr.dataset(tmp_path / "d.tfrecord", batch_size=batch_size)
    tfr.split(source, tmp_path / "out", fractions=[0.7, 0.2, 0.1], stratify="label", seed=5)
    sizes = Counter(labels)
    for part, share in {"train": 0.7, "validation": 0.2, "test": 0.1}.items():
        counts = Counter(tfr.read_table(tmp_path / "out" / f"{part}.tfrecord")["label"].to_pylist())
        for label, size in sizes.items():
            assert abs(counts[label] - share * size) <= 4


def test_groups_have_the_sizes_of_fractions_on_average(tmp_path: Path) -> None:
    tfr.write_tfrecord({"user": [f"user {n}" for n in range(20000)]}, tmp_path / "d.tfrecord")
    parts = tfr.split(tmp_path / "d.tfrecord", tmp_path / "out", fractions=[0.7, 0.3], group="user")
    assert abs(parts["train"].records - 14000) < 300
    other = tfr.split(tmp_path / "d.tfrecord", tmp_path / "other", fractions=[0.7, 0.3], group="user", seed=1)
    assert not tfr.read_table(tmp_path / "other/test.tfrecord").equals(tfr.read_table(tmp_path / "out/test.tfrecord"))
    assert other["test"].records + other["train"].records == 20000


def test_the_part_of_a_group_is_the_documented_hash(tmp_path: Path) -> None:
    from hashlib import blake2b

    users = ["ada", "grace", "alan", "edsger", "", "barbara"]
    tfr.write_tfrecord({"user": users}, tmp_path / "d.tfrecord")
    tfr.split(tmp_path / "d.tfrecord", tmp_path / "out", fractions=[0.5, 0.5], group="user", seed=7)
    numbers = {u: int.from_bytes(blake2b(u.encode(), digest_size=8, key=b"7").digest(), "little") for u in users}
    expected = [user for user in users if numbers[user] < 2**63]
    assert tfr.read_table(tmp_path / "out/train.tfrecord")["user"].to_pylist() == expected


def test_columns_that_are_no_keys(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2], "xs": [[1], [2, 3]]})
    tfr.write_tfrecord(table, tmp_path / "a")
    for call in (
        lambda: tfr.dedupe(tmp_path / "a", tmp_path / "b", by="xs"),
        lambda: tfr.split(tmp_path / "a", tmp_path / "b", fractions=[0.5, 0.5], group="xs"),
        lambda: tfr.split(tmp_path / "a", tmp_path / "b", fractions=[0.5, 0.5], stratify="xs"),
    ):
        with pytest.raises(tfr.errors.FeatureTypeError, match=r"'xs': its type is list<.*>, and a column of single"):
            call()
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"group=.*'m'|'m'"):
        tfr.split(tmp_path / "a", tmp_path / "b", fractions=[0.5, 0.5], group="m")
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="by= takes the name of one column"):
        tfr.dedupe(tmp_path / "a", tmp_path / "b", by="[n]")
    for keywords in ({"group": "n"}, {"stratify": "n"}, {"group": "n", "stratify": "n", "fractions": [1, 0]}):
        with pytest.raises(ValueError, match="pass either group= or stratify="):
            tfr.split(tmp_path / "a", tmp_path / "b", **keywords)
    for by in ([], 3, [None]):
        with pytest.raises((ValueError, TypeError), match="by="):
            tfr.dedupe(tmp_path / "a", tmp_path / "b", by=by)
    with pytest.raises(ValueError, match="keep='any'"):
        tfr.dedupe(tmp_path / "a", tmp_path / "b", by="n", keep="any")
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        lambda source, target: tfr.split(source, target, by="nope"),
        lambda source, target: tfr.split(source, target, fractions=[0.5, 0.5], group="nope"),
        lambda source, target: tfr.split(source, target, fractions=[0.5, 0.5], stratify="nope"),
        lambda source, target: tfr.dedupe(source, target, by=["n", "nope"]),
    ],
)
def test_a_key_that_no_record_has(tmp_path: Path, call: Callable[[Path, Path], object], damaged: bool) -> None:
    """Damage is named, rather than the column, as the records after it may have that."""
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": [1, 2, 3]}, path, embed_schema=False)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= damaged
    path.write_bytes(content)
    error = tfr.errors.CorruptRecordError if damaged else tfr.errors.FeatureNotFoundError
    with pytest.raises(error, match="record 1 at byte 30" if damaged else "'nope'"):
        call(path, tmp_path / "out")


@pytest.mark.parametrize("type_", [pa.string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
def test_a_missing_value_is_no_text(tmp_path: Path, type_: pa.DataType) -> None:
    keys = pa.array(["None", None, "nan", "", None, "<NA>"]).cast(type_)
    tfr.write_tfrecord(pa.table({"key": keys, "n": range(6)}), tmp_path / "a.tfrecord")
    tfr.dedupe(tmp_path / "a.tfrecord", tmp_path / "b.tfrecord", by="key")
    assert tfr.read_table(tmp_path / "b.tfrecord")["n"].to_pylist() == [0, 1, 2, 3, 5]


def test_the_folder_is_part_of_the_key(tmp_path: Path) -> None:
    for day in (1, 2):
        tfr.write_tfrecord({"id": [1, 1, 2]}, f"{tmp_path}/d/day={day}/")
    assert tfr.dedupe(tmp_path / "d", tmp_path / "a.tfrecord", by=["id", "day"]).records == 4
    tfr.dedupe(tmp_path / "d", tmp_path / "b.tfrecord", by="id", keep="last")
    assert tfr.read_table(tmp_path / "b.tfrecord").to_pydict() == {"id": [1, 2], "day": [2, 2]}
