"""Batches of the rows that fulfil a filter, and their states, do not depend on column indexes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import matching_records_only, small_index_groups
from rounds import rounds
from training_batches import chunks_of, going_on

f = pc.field
NAMES = ["a.tfrecord", "b.tfrecord", "c.tfrecord.gz", "d.tfrecord", "e.tfrecord"]
COUNTS = [9, 0, 7, 12, 5]
FORMS: list[tuple[list[int], list[int], bool]] = [  # files, those of them with an index, whether a schema is embedded
    ([0, 1, 3, 4], [0, 1, 3, 4], True),
    ([0, 1, 3, 4], [0, 1, 3, 4], False),
    ([0, 1, 2, 3, 4], [0, 1, 3, 4], True),
    ([4, 2, 3, 0], [3, 4], True),
    ([0, 3, 4], [0, 4], False),
]
CONDITIONS = [f("n") == 3, f("n") < 0, f("n") <= 3, (f("n") == 1) & (f("x") > 9), (f("n") == 2) | (f("x") == 1)]


@pytest.fixture(scope="module")
def used() -> Iterator[list[int]]:
    with matching_records_only() as used:
        yield used


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[Path], list[Path]]]:
    """The files of each form with column indexes, and copies without."""
    found = []
    for files, indexed, embeds in FORMS:
        folders = tmp_path_factory.mktemp("indexed"), tmp_path_factory.mktemp("plain")
        begin = 0
        for file in files:
            x = np.arange(begin, begin := begin + COUNTS[file])
            path = folders[0] / NAMES[file]
            tfr.write_tfrecord({"x": x, "n": x % 5, "pad": [bytes(50)] * len(x)}, path, embed_schema=embeds)
            shutil.copy(path, folders[1])
        with small_index_groups():
            tfr.build_index([folders[0] / NAMES[at] for at in indexed if COUNTS[at]], columns=["n"])
        paths, others = ([folder / NAMES[at] for at in files] for folder in folders)
        found.append((paths, others))
    return found


def batches_of(batches: tfr.typing.ArrayIterator) -> list[list[int]]:
    with batches:
        return [batch["x"].tolist() for batch in batches]


@settings(max_examples=rounds(400))
@given(
    form=st.integers(0, len(FORMS) - 1),
    condition=st.sampled_from(CONDITIONS),
    worker=st.sampled_from([(0, 1), (0, 1), (0, 2), (1, 2), (4, 5)]),
    batch_size=st.integers(1, 9),
    buffer=st.sampled_from([0, 1, 3, 10, 50]),
    offset=st.sampled_from([0, 0, 0, 1, 9, 12, 20, 30, 99]),
    limit=st.sampled_from([None, None, None, 0, 2, 5]),
    uneven=st.sampled_from(["keep", "keep", "pad", "drop"]),
    taken=st.integers(0, 9),
)
@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
def test_batches_and_states_are_those_without_an_index(
    used: list[int],
    forms: list[tuple[list[Path], list[Path]]],
    form: int,
    condition: pc.Expression,
    worker: tuple[int, int],
    batch_size: int,
    buffer: int,
    offset: int,
    limit: int | None,
    uneven: str,
    taken: int,
) -> None:
    rows: dict[str, Any] = {"filters": condition, "offset": offset, "limit": limit, "threads": 1}
    if not FORMS[form][2] or uneven != "keep":  # else the embedded one
        rows["schema"] = {"x": "int64", "n": "int64"}
    options = {"uneven": uneven, "batch_size": batch_size, "shuffle_buffer": buffer, "seed": 3, "epochs": 2}

    def iterator(paths: list[Path], state: Any = None) -> tfr.typing.ArrayIterator:
        return tfr.iter_arrays(tfr.dataset(paths, **rows), worker=worker, state=state, **options)

    states = []
    with chunks_of(5):
        expected = batches_of(iterator(forms[form][1]))
        for paths in forms[form]:
            with iterator(paths) as batches:
                assert [batch["x"].tolist() for batch in islice(batches, taken)] == expected[:taken]
                states.append(json.loads(json.dumps(batches.state())))
                assert [batch["x"].tolist() for batch in going_on(batches)] == expected[taken:]
        for state in states:
            for paths in forms[form]:
                assert batches_of(iterator(paths, state)) == expected[taken:]
    assert [state["buffer"] for state in states] == [states[0]["buffer"]] * 2


def test_indexes_were_used(used: list[int], forms: list[tuple[list[Path], list[Path]]]) -> None:
    for paths, _ in forms:
        del used[:]
        for worker in ((0, 1), (0, 2)):
            options: dict[str, Any] = {"worker": worker, "epochs": 3, "threads": 1, "filters": f("n") == 3}
            list(read_by(tfr.iter_arrays, paths, batch_size=4, **options))
        assert len(used) == 6
        del used[:]
        list(tfr.iter_arrays(tfr.dataset(paths, offset=3), batch_size=4, epochs=2, filters=f("n") == 3))
        assert used


@pytest.mark.usefixtures("used")
def test_a_row_that_is_no_array_is_named_by_its_record(tmp_path: Path) -> None:
    """Of two indexed files, and a compressed one between them."""
    paths = [tmp_path / name for name in ("a.tfrecord", "b.tfrecord.gz", "c.tfrecord")]
    for at, path in enumerate(paths):
        missing = {"y": [None if at == 2 and n == 7 else n for n in range(10)]}
        tfr.write_tfrecord({"x": list(range(10)), **missing}, path, embed_schema=False)
    tfr.build_index(paths[::2], columns=["x"])
    for condition in (f("x") >= 4, f("x") == 7):
        options: dict[str, Any] = {"schema": {"x": "int64", "y": "int64"}, "filters": condition}
        for buffer in (0, 100):
            with pytest.raises(tfr.errors.DecodeError) as caught:
                list(read_by(tfr.iter_arrays, paths, batch_size=2, shuffle_buffer=buffer, seed=0, **options))
            assert (caught.value.path, caught.value.record) == (str(paths[2]), 7)


@pytest.mark.usefixtures("used")
def test_a_stale_index_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": list(range(10))}, path)
    tfr.build_index(path, columns=["x"])
    kept = path.with_name("a.tfrecord.column_index").read_bytes()
    batches = tfr.iter_arrays(tfr.dataset(path, threads=1), batch_size=2, filters=f("x") == 1, epochs=3)
    assert next(batches)["x"].tolist() == [1]
    tfr.write_tfrecord({"x": list(range(11))}, path)
    path.with_name("a.tfrecord.column_index").write_bytes(kept)
    with pytest.warns(tfr.errors.StaleIndexWarning, match="column index does not match"):
        assert [batch["x"].tolist() for batch in batches] == [[1], [1]]
