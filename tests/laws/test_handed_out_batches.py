"""What was handed out belongs to the caller: written over with noise, it changes nothing that follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds

ROWS, FILES = 130, 3  # more rows than a mixture puts in order at first
TAKEN = 5 * ROWS  # rows, of sources that have no end


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with a column of each kind of memory, that of a folder's constant included."""
    folder = tmp_path_factory.mktemp("handed_out")
    rng = np.random.default_rng(0)
    for part in range(FILES):
        numbers = np.arange(ROWS) + part * 100
        columns = {
            "number": numbers,
            "flag": numbers % 2 == 0,
            "time": numbers.astype("datetime64[s]"),
            "fixed": rng.random((ROWS, 4), np.float32),
            "tensor": rng.random((ROWS, 2, 3)),
            "tokens": [list(range(n % 5)) for n in numbers.tolist()],
            "text": [f"row {n}" for n in numbers],
            "bytes": [b"%d" % n for n in numbers],
            "steps/x": [list(range(n % 4 + 2)) for n in numbers.tolist()],
        }
        (folder / f"part={part}").mkdir()
        tfr.write_tfrecord(columns, folder / f"part={part}" / "a.tfrecord", write_index=True)
    return folder


def copied(value: Any) -> Any:
    """A copy as lists and bytes, of arrays and tensors, or of what holds them."""
    if isinstance(value, Mapping):
        return {name: copied(item) for name, item in value.items()}
    if isinstance(value, np.ma.MaskedArray):
        return [copied(np.asarray(value.data)), copied(np.ma.getmaskarray(value))]
    if isinstance(value, np.ndarray):
        return [copied(item) for item in value] if value.dtype == object else value.tolist()
    if isinstance(value, list | tuple):
        return [copied(item) for item in value]
    return value.tolist() if hasattr(value, "numpy") else value


def overwrite(value: Any) -> None:
    """Write noise over all memory that can be written."""
    if isinstance(value, Mapping):
        for item in value.values():
            overwrite(item)
    elif isinstance(value, np.ma.MaskedArray):
        overwrite(value.data)
        if value.mask is not np.ma.nomask:
            value.mask[...] = ~value.mask
    elif isinstance(value, np.ndarray):
        if value.dtype == object:
            for item in value.reshape(-1):
                overwrite(item)
        if value.flags.writeable and value.size:
            value[...] = noise(value)
    elif isinstance(value, list | tuple):
        for item in value:
            overwrite(item)
        if isinstance(value, list):
            value.clear()
    elif hasattr(value, "numpy") and hasattr(value, "data_ptr"):
        overwrite(value.numpy())


def noise(array: Any) -> Any:
    if array.dtype.kind in "OT":
        return np.full(array.shape, "noise", array.dtype)
    size = array.size * array.dtype.itemsize
    return np.random.default_rng(1).integers(2, 255, size, np.uint8).view(array.dtype).reshape(array.shape)


def holds(make: Callable[[], Iterator[Any]], batch_size: int) -> None:
    """Batches of an iterator, of which each is written over, are those of another one."""
    expected = [copied(batch) for batch, _ in zip(make(), range(-(-TAKEN // batch_size)), strict=False)]
    for batch, before in zip(make(), expected, strict=False):
        assert copied(batch) == before
        overwrite(batch)


ARRAYS = st.fixed_dictionaries(
    {"batch_size": st.sampled_from([8, 50, 200]), "epochs": st.just(2)},
    optional={
        "shuffle_buffer": st.sampled_from([3, 1000]),
        "ragged": st.sampled_from(["object", "offsets", "pad"]),
        "missing": st.just("mask"),
        "drop_last": st.booleans(),
        "worker": st.just((1, 2)),
    },
)


def source_of(folder: Path, kind: str, stop: str, threads: int) -> Any:
    """What batches are made of."""
    data = tfr.dataset(folder, threads=threads)
    parts = [tfr.dataset(folder / f"part={part}", threads=threads) for part in range(FILES)]
    if kind == "filter":
        return data.filter([("number", ">", 7)]).limit(140)
    if kind == "windows":
        return tfr.windows(data, length=2)
    if kind == "balanced":
        return tfr.mix([data], balance="flag", stop=stop)
    parts = [part.limit(limit) for part, limit in zip(parts, (ROWS, 2, 90), strict=True)]
    mixtures = {"mix": (parts, None), "skewed mix": (parts, [1000, 1, 1]), "mix of one": (parts[:1], None)}
    return tfr.mix(*mixtures[kind], stop=stop, source_column="source") if kind in mixtures else data


STOPS = st.sampled_from(["first", "all", "never"])


@pytest.mark.parametrize("kind", ["dataset", "filter", "windows", "balanced", "mix", "skewed mix", "mix of one"])
@settings(max_examples=rounds(100, 5))
@given(options=ARRAYS, stop=STOPS, threads=st.sampled_from([1, 2]))
@example(options={"batch_size": 8, "epochs": 1}, stop="never", threads=1)
def test_arrays(folder: Path, kind: str, options: dict[str, Any], stop: str, threads: int) -> None:
    data = source_of(folder, kind, stop, threads)
    seed = {"seed": 1} if "shuffle_buffer" in options else {}
    holds(lambda: data.iter_arrays(**options, **seed), options["batch_size"])


@pytest.mark.parametrize("kind", ["dataset", "filter", "windows", "balanced", "mix"])
def test_rows_by_number(folder: Path, kind: str) -> None:
    source = source_of(folder, kind, "first" if kind == "mix" else "all", 1).to_grain()
    numbers = [*range(0, len(source), 7)] * 2
    holds(lambda: map(source.__getitem__, numbers), 1)
    if kind == "dataset":
        with tfr.open_random(folder) as records:
            holds(lambda: map(records.__getitem__, numbers), 1)


@pytest.mark.parametrize("kind", ["dataset", "windows", "balanced", "mix of one"])
@pytest.mark.parametrize("batch_size", [None, 8])
def test_torch(folder: Path, kind: str, batch_size: int | None) -> None:
    pytest.importorskip("torch")
    source = source_of(folder, kind, "never", 1)
    stream = source.to_torch(batch_size=batch_size)

    def batches() -> Iterator[Any]:
        stream.set_epoch(0)
        return iter(stream)

    holds(batches, batch_size or 1)
    if kind in ("dataset", "windows"):
        rows = source.to_torch_map()
        numbers = [*range(0, len(rows), 5)] * 2
        holds(lambda: map(rows.__getitem__, numbers), 1)
        holds(lambda: map(list, map(rows.__getitems__, [numbers, numbers[::-1]])), len(numbers))
