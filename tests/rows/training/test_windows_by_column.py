"""Windows with steps of their own for each column: those of a plain loop, exact over resumes; images decoded once."""

from __future__ import annotations

import io
import itertools
import json
import pickle
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.rows.arrays.image_arrays import PixelReader
from training_batches import chunks_of, going_on

RANDOM = np.random.default_rng(4)
EPISODES = [list(range(100 * i, 100 * i + int(RANDOM.integers(0, 15)))) for i in range(24)]
steps_of = st.one_of(
    st.integers(-3, 3),
    st.tuples(st.integers(-4, 2), st.integers(1, 5)).map(lambda pair: range(pair[0], pair[0] + pair[1])),
    st.lists(st.integers(-20, 20), min_size=1, max_size=3),
)
forms = st.fixed_dictionaries({"x": steps_of, "y": steps_of, "stride": st.integers(1, 4)})
Row = dict[str, Any]


def column(name: str, steps: list[Any], at: int, offsets: Any) -> Row:
    """The values of a column in a window at a step."""
    if isinstance(offsets, int):
        value, exists = column("", steps, at, [offsets]).values()
        return {name: value[0]} | ({} if offsets == 0 else {f"{name}/mask": exists[0]})
    places = [at + offset for offset in offsets]
    found = [steps[min(max(place, 0), len(steps) - 1)] for place in places]
    return {name: found, f"{name}/mask": [0 <= place < len(steps) for place in places]}


def expected(episodes: Iterable[int], form: dict[str, Any]) -> list[Row]:
    """The windows of episodes, one by one."""
    return [
        {"id": number}
        | column("seen/x", EPISODES[number], at, form["x"])
        | column("seen/y", [value / 2 for value in EPISODES[number]], at, form["y"])
        | {"steps/text": str(EPISODES[number][at])}
        for number in episodes
        for at in range(0, len(EPISODES[number]), form["stride"])
    ]


def windowed(data: Any, form: dict[str, Any]) -> Any:
    return tfr.windows(data, {"seen/*": form["y"], "seen/x": form["x"]}, stride=form["stride"])


def table_of(numbers: Iterable[int]) -> pa.Table:
    numbers = [*numbers]
    own = [EPISODES[number] for number in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "seen/x": pa.array(own, pa.list_(pa.int64())),
            "seen/y": pa.array([[value / 2 for value in steps] for steps in own], pa.list_(pa.float32())),
            "steps/text": pa.array([[*map(str, steps)] for steps in own], pa.list_(pa.string())),
        }
    )


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("episodes")
    paths = [str(folder / f"{file}.tfrecord") for file in range(4)]
    for file, path in enumerate(paths):
        tfr.write_tfrecord(table_of(range(6 * file, 6 * file + 6)), path, write_index=True)
    return paths


def rows_of(batches: Iterable[dict[str, Any]]) -> list[Row]:
    return [
        dict(zip(batch, values, strict=True))
        for batch in batches
        for values in zip(*(array.tolist() for array in batch.values()), strict=True)
    ]


def as_text(rows: Iterable[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@settings(max_examples=rounds(300, 20))
@given(form=forms, batch_rows=st.integers(1, 30))
def test_they_are_those_of_the_lists(paths: list[str], form: dict[str, Any], batch_rows: int) -> None:
    rows, data = expected(range(24), form), windowed(tfr.dataset(paths), form)
    table = data.to_table()
    assert table.to_pylist() == rows
    table.validate(full=True)
    with chunks_of(batch_rows):
        parts = list(windowed(table_of(range(24)), form))
    assert all(len(part) <= batch_rows for part in parts)
    assert pa.Table.from_batches(parts, table.schema).equals(table)
    assert windowed(table_of(range(24)).to_batches(max_chunksize=batch_rows), form).read_all().equals(table)
    assert data.count_rows() == len(rows)
    assert pickle.loads(pickle.dumps(data)).head(9).equals(table[:9])
    assert rows_of(data.iter_arrays(batch_size=batch_rows)) == rows
    source = pickle.loads(pickle.dumps(data.to_grain()))
    assert rows_of([source.arrays(range(len(source)))]) == rows
    assert rows_of([source.arrays([5, 1])]) == [rows[5], rows[1]]


reads = st.fixed_dictionaries(
    {
        "shuffle_buffer": st.sampled_from([0, 1, 5, 40, 400]),
        "batch_size": st.integers(1, 20),
        "worker": st.sampled_from([(0, 1), (0, 1), (0, 2), (2, 3), (3, 7)]),
        "uneven": st.sampled_from(["keep", "keep", "pad", "drop"]),
    }
)


def is_continued(data: Any, keywords: dict[str, Any], taken: int) -> list[Row]:
    """Check that a state after some batches continues with the next ones; all rows of two epochs."""
    whole = data.iter_arrays(**keywords)
    before = rows_of(itertools.islice(whole, taken))
    state = json.loads(json.dumps(whole.state()))
    rest = rows_of(going_on(whole))
    with data.iter_arrays(**keywords, state=state) as resumed:
        first = rows_of(itertools.islice(resumed, 1))
        again = json.loads(json.dumps(resumed.state()))
        assert first + rows_of(going_on(resumed)) == rest
    assert first + rows_of(data.iter_arrays(**keywords, state=again)) == rest
    return before + rest


@settings(max_examples=rounds(300, 15))
@given(form=forms, read=reads, unit=st.integers(1, 9), taken=st.integers(0, 30), chosen=st.booleans())
def test_a_state_continues_exactly(
    paths: list[str], form: dict[str, Any], read: dict[str, Any], unit: int, taken: int, chosen: bool
) -> None:
    data = tfr.dataset(paths, threads=1)
    data = windowed(data.filter([("id", "!=", 9)]) if chosen else data, form)
    keywords = {**read, "seed": 3, "epochs": 2}
    with chunks_of(unit):
        rows = is_continued(data, keywords, taken)
    if read["worker"] == (0, 1):
        numbers = [number for number in range(24) if not (chosen and number == 9)]
        assert as_text(rows) == as_text(2 * expected(numbers, form))
    elif read["uneven"] != "keep":
        count, (_, workers) = len(expected([n for n in range(24) if not (chosen and n == 9)], form)), read["worker"]
        assert len(rows) == 2 * (-(-count // workers) if read["uneven"] == "pad" else count // workers)


@settings(max_examples=rounds(200, 15))
@given(
    form=forms,
    buffer=st.sampled_from([0, 5, 40]),
    batch_size=st.integers(1, 20),
    stop=st.sampled_from(["first", "all"]),
    source=st.sampled_from([None, "source"]),
    made=st.booleans(),
    worker=st.sampled_from([(0, 1), (1, 2)]),
    taken=st.integers(0, 20),
)
def test_mixtures(
    paths: list[str],
    form: dict[str, Any],
    buffer: int,
    batch_size: int,
    stop: Any,
    source: str | None,
    made: bool,
    worker: Any,
    taken: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Parts are windows, or rows that were stored."""
    parts: list[Any] = [windowed(tfr.dataset(paths[:2]), form), windowed(tfr.dataset(paths[2:]), form)]
    if made:
        path = tmp_path_factory.mktemp("made") / "a.tfrecord"
        tfr.write_tfrecord(parts[1], path, write_index=True)
        parts[1] = tfr.dataset(path, schema=tfr.Schema.from_arrow(parts[0].schema))
    mixture = tfr.mix(parts, [0.7, 0.3], seed=2, stop=stop, source_column=source)
    keywords = {"batch_size": batch_size, "shuffle_buffer": buffer, "seed": 3, "epochs": 2, "worker": worker}
    rows = is_continued(mixture, keywords, taken)
    if worker == (0, 1) and stop == "all":
        assert {*as_text({k: row[k] for k in row if k != "source"} for row in rows)} == {
            *as_text(expected(range(24), form))
        }
    if buffer == 0 and worker == (0, 1):
        table = mixture.to_table()
        assert rows[: len(table)] == table.to_pylist()
        numbered = mixture.to_grain()
        assert rows_of([numbered.arrays(range(len(numbered)))]) == table.to_pylist()


@pytest.mark.parametrize("balance", ["id"])
def test_balanced_mixtures(paths: list[str], balance: str) -> None:
    form = {"x": range(-1, 2), "y": 0, "stride": 3}
    mixture = tfr.mix([windowed(tfr.dataset(paths), form)], balance=balance, stop="all")
    rows = is_continued(mixture, {"batch_size": 9, "shuffle_buffer": 20, "seed": 1}, 3)
    assert {*as_text(rows)} == {*as_text(expected(range(24), form))}


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_share_the_episodes(paths: list[str], workers: int) -> None:
    form = {"x": range(-1, 2), "y": 0, "stride": 2}
    data = windowed(tfr.dataset(paths), form)
    parts = [
        rows_of(data.iter_arrays(batch_size=8, worker=(i, workers), shuffle_buffer=9, seed=1)) for i in range(workers)
    ]
    assert as_text(itertools.chain(*parts)) == as_text(expected(range(24), form))


def test_which_columns_an_entry_stands_for() -> None:
    rows = pa.table({"steps/a": [[1, 2]], "steps/b/c": [[3, 4]], "steps/b/d": [[5, 6]], "e": [[7, 8]]})

    def shapes(offsets: Any) -> dict[str, Any]:
        return {
            name: row
            for name, row in tfr.windows(rows, offsets).read_all().to_pylist()[0].items()
            if "/mask" not in name
        }

    assert shapes({}) == {"steps/a": 1, "steps/b/c": 3, "steps/b/d": 5, "e": [7, 8]}
    assert shapes({"a": [0, 1], "e": 1}) == {"steps/a": [1, 2], "steps/b/c": 3, "steps/b/d": 5, "e": 8}
    assert shapes({"b/*": 1, "*": [0]}) == {"steps/a": [1], "steps/b/c": 4, "steps/b/d": 6, "e": [7]}
    assert shapes({"steps/b/*": 1, "b/c": [0]}) == {"steps/a": 1, "steps/b/c": [3], "steps/b/d": 6, "e": [7, 8]}
    assert shapes({"steps/*": [0], "steps/b/*": 1}) == {"steps/a": [1], "steps/b/c": [3], "steps/b/d": [5], "e": [7, 8]}


@pytest.mark.parametrize(
    ("offsets", "keywords", "error", "message"),
    [
        ({"z": [0]}, {}, tfr.errors.FeatureNotFoundError, "offsets= names no column"),
        ({}, {}, tfr.errors.FeatureNotFoundError, "no column has this prefix"),
        ({"a": []}, {}, ValueError, "at least one step"),
        ({"a": [0.5]}, {}, TypeError, r"expected steps such as range\(-1, 1\)"),
        ({"a": True}, {}, TypeError, "expected steps"),
        ({"a": [0]}, {"length": 3}, ValueError, "leave out length="),
        ({"a": [0]}, {"pad": "edge"}, ValueError, "leave out length= and pad="),
        ({"a": [0], "n": [1]}, {}, tfr.errors.SchemaError, "a column of steps is a list"),
        ({"b": [1]}, {}, tfr.errors.SchemaError, "windows add a column 'b/mask', which exists"),
    ],
)
def test_offsets_that_cannot_be(offsets: Any, keywords: Any, error: type[Exception], message: str) -> None:
    rows = pa.table({"a": [[1, 2]], "n": [1], "b": [[1, 2]], "b/mask": [1]})
    with pytest.raises(error, match=message):
        tfr.windows(rows, offsets, **keywords)


def test_lists_of_different_lengths_name_the_episode(tmp_path: Path) -> None:
    rows = {"a": [[1, 2], [3, 4], [5]], "b": [[1, 2], [3], [5]]}
    tfr.write_tfrecord(rows, tmp_path / "a.tfrecord")
    data = tfr.windows(tmp_path / "a.tfrecord", {"*": range(2)})
    with pytest.raises(tfr.errors.SchemaError, match="the row has 1 step in this column, but 2 in 'a'") as raised:
        list(data.iter_arrays(batch_size=1))
    assert raised.value.record == 1


def test_states_of_other_offsets_are_refused(paths: list[str]) -> None:
    form = {"x": range(2), "y": 0, "stride": 1}
    state = windowed(paths, form).iter_arrays(batch_size=3).state()
    windowed(paths, form).iter_arrays(batch_size=3, state=state).close()
    for changed in ({"x": range(3)}, {"y": 1}, {"stride": 2}):
        with pytest.raises(ValueError, match="the state was made with windows="):
            windowed(paths, {**form, **changed}).iter_arrays(batch_size=3, state=state)
    with pytest.raises(ValueError, match="the state was made with windows="):
        tfr.windows(paths, length=3).iter_arrays(batch_size=3, state=state)


def test_tensors_and_other_lists(tmp_path: Path) -> None:
    poses = np.arange(2 * 3 * 4, dtype="float32").reshape(2, 3, 4)
    table = {"pose": poses, "text": [[1, 2, 3], [4]]}
    schema = {"pose": tfr.tensor("float32", (3, 4)), "text": tfr.list_("int64")}
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord", schema=schema)
    data = tfr.windows(tmp_path / "a.tfrecord", {"pose": [-1, 1]})
    (batch,) = data.iter_arrays(batch_size=9, pad_to=4)
    assert batch["pose"].shape == (6, 2, 4)
    assert (batch["pose"][0] == poses[0, [0, 1]]).all()
    assert batch["pose/mask"].tolist() == [[False, True], [True, True], [True, False]] * 2
    batches = data.iter_arrays(batch_size=2, bucket_by="text", bucket_sizes=[2, 4], shuffle_buffer=3, seed=1)
    assert sorted(batch["text"].shape for batch in batches) == [(1, 4), (2, 4), (3, 2)]


# ---- images

SIZE = (4, 4)


def png(value: int) -> bytes:
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.fromarray(np.full((*SIZE, 3), value, np.uint8)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The images that are decoded."""
    found, read = list[bytes](), PixelReader.read

    def noted(self: PixelReader, item: tuple[int, bytes]) -> Any:
        found.append(item[1])
        return read(self, item)

    monkeypatch.setattr(PixelReader, "read", noted)
    return found


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two files of episodes, whose images have their own values, from 0 on."""
    folder, value = tmp_path_factory.mktemp("films"), itertools.count()
    paths = [folder / f"{file}.tfrecord" for file in range(2)]
    for path in paths:
        images = [[png(next(value)) for _ in range(count)] for count in (7, 1, 0, 12, 5)]
        tfr.write_tfrecord({"image": images, "n": [[*range(len(own))] for own in images]}, path, write_index=True)
    return paths


@pytest.mark.parametrize("kind", ["of one size", "of any size", "one step"])
@pytest.mark.parametrize("buffer", [0, 1, 8, 100])
@pytest.mark.parametrize("threads", [1, 2])
def test_images_are_decoded_once(films: list[Path], decoded: list[bytes], kind: str, buffer: int, threads: int) -> None:
    image = tfr.image(resize=SIZE) if kind == "of one size" else tfr.image()
    schema = {"image": tfr.list_(image), "n": tfr.list_("int64")}
    offsets = -1 if kind == "one step" else range(-2, 2)
    data = tfr.windows(tfr.dataset(films, schema=schema, threads=threads), {"image": offsets, "n": 0})
    rows = [(value[0] if kind == "one step" else value) for value in ()]
    with chunks_of(3):
        for batch in data.iter_arrays(batch_size=4, shuffle_buffer=buffer, seed=2):
            rows += [np.asarray(pixels)[..., 0, 0, 0].tolist() for pixels in batch["image"]]
    windows = [
        [min(max(at + offset, 0), count - 1) + first for offset in ([-1] if kind == "one step" else range(-2, 2))]
        for file in range(2)
        for first, count in zip(np.array([0, 7, 8, 8, 20]) + 25 * file, (7, 1, 0, 12, 5), strict=True)
        for at in range(count)
    ]
    assert sorted(rows) == sorted(own[0] if kind == "one step" else own for own in windows)
    used = {png(value) for own in windows for value in own}
    assert Counter(decoded) == Counter(used)


@pytest.mark.parametrize("taken", [0, 3, 9])
def test_images_of_resumed_windows(films: list[Path], decoded: list[bytes], taken: int) -> None:
    data = tfr.windows(
        tfr.dataset(films, schema={"image": tfr.list_(tfr.image(resize=SIZE)), "n": tfr.list_("int64")}),
        {"image": range(-2, 2), "n": 0},
    )
    keywords: dict[str, Any] = {"batch_size": 4, "shuffle_buffer": 20, "seed": 2}
    whole = data.iter_arrays(**keywords)
    for _ in itertools.islice(whole, taken):
        pass
    state, rest = whole.state(), [batch["image"].tolist() for batch in whole]
    decoded.clear()
    assert [batch["image"].tolist() for batch in data.iter_arrays(**keywords, state=state)] == rest
    assert max(Counter(decoded).values()) == 1
    parts = [tfr.windows(tfr.dataset(film, schema=data.scan.schema), {"image": range(-2, 2), "n": 0}) for film in films]
    mixture = tfr.mix(parts, seed=1, source_column="part")
    decoded.clear()
    got = [row for batch in mixture.iter_arrays(**keywords) for row in batch["image"][..., 0, 0, 0].tolist()]
    assert len(got) > 25
    assert max(Counter(decoded).values()) == 1
    decoded.clear()
    numbered = data.to_grain().arrays(range(50))["image"]
    assert max(Counter(decoded).values()) == 1
    assert numbered.tolist() == [row for batch in data.iter_arrays(batch_size=50) for row in batch["image"].tolist()]


def test_images_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images of the windows in the buffer are kept, not those of whole episodes."""
    from tfrecord_io.rows.arrays.shared_images import SharedImages

    images = [[png(step % 256) for step in range(200)] for _ in range(4)]
    tfr.write_tfrecord({"image": images}, tmp_path / "a.tfrecord", schema={"image": tfr.list_(tfr.image(resize=SIZE))})
    most, keep = [0], SharedImages.keep

    def noted(self: SharedImages, name: str, index: int, pixels: Any) -> None:
        keep(self, name, index, pixels)
        most[0] = max(most[0], len(self._decoded))

    monkeypatch.setattr(SharedImages, "keep", noted)
    data = tfr.windows(tmp_path / "a.tfrecord", {"image": range(-1, 1)})
    assert sum(len(batch["image"]) for batch in data.iter_arrays(batch_size=8, shuffle_buffer=50, seed=1)) == 800
    assert most[0] < 200


@pytest.mark.parametrize("buffer", [0, 9])
def test_windows_of_a_damaged_image(tmp_path: Path, buffer: int) -> None:
    images = [[png(step) for step in range(6)] for _ in range(2)]
    images[1][2] = b"no image"
    tfr.write_tfrecord({"image": images}, tmp_path / "a.tfrecord", schema={"image": tfr.list_(tfr.image(resize=SIZE))})
    data = tfr.dataset(tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.DecodeError, match=r"image \d of its list") as raised:
        list(tfr.windows(data, {"image": range(2)}).iter_arrays(batch_size=2, shuffle_buffer=buffer, seed=1))
    assert raised.value.record == 1
    skipping = tfr.windows(tfr.dataset(tmp_path / "a.tfrecord", on_error="skip"), {"image": range(2)})
    with pytest.warns(tfr.errors.DamagedDataWarning):
        rows = [
            row
            for batch in skipping.iter_arrays(batch_size=2, shuffle_buffer=buffer, seed=1)
            for row in batch["image"][..., 0, 0, 0].tolist()
        ]
    whole = [[min(at, 5), min(at + 1, 5)] for at in range(6)]
    assert sorted(rows) == sorted([*whole, *(own for own in whole if 2 not in own)])
    keywords: dict[str, Any] = {"batch_size": 2, "shuffle_buffer": buffer, "seed": 1}
    for taken in range(7):
        with warnings.catch_warnings(action="ignore"):
            batches = skipping.iter_arrays(**keywords)
            before = list(itertools.islice(batches, taken))
            before += going_on(skipping.iter_arrays(**keywords, state=batches.state()))
        assert [row for batch in before for row in batch["image"][..., 0, 0, 0].tolist()] == rows


def test_steps_have_one_mask(tmp_path: Path) -> None:
    """That of the window: `missing` is about other columns."""
    rows = {"steps/a": [[1, 2], [4]], "x": pa.array([1, None], pa.int64())}
    tfr.write_tfrecord(pa.table(rows), tmp_path / "a.tfrecord", write_index=True)
    data = tfr.windows(tfr.dataset(tmp_path / "a.tfrecord"), {"a": [0, 1]})
    steps, masks = [[1, 2], [2, 2], [4, 4]], [[True, True], [True, False], [True, False]]
    (batch,) = data.iter_arrays(batch_size=9, missing="mask")
    assert [batch["steps/a"].tolist(), batch["steps/a/mask"].tolist()] == [steps, masks]
    assert not isinstance(batch["steps/a"], np.ma.MaskedArray)
    assert batch["x"].tolist() == [1, 1, None]
    row = data.to_grain(missing="mask")[1]
    assert {name: np.asarray(value).tolist() for name, value in row.items()} == {
        "steps/a": steps[1], "steps/a/mask": masks[1], "x": 1, "x/mask": False
    }  # fmt: skip
