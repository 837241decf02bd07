"""Batches by number are those of the rows as a person would write them down: of files, filters, mixtures and windows.

Images with channels first, pairs of inputs and targets, and rows that a cache keeps change nothing else.
"""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from folder_trees import FoldersByKind
from pictures import encoded
from rounds import rounds

torch = pytest.importorskip("torch")
pytest.importorskip("PIL")

LAYOUTS = [[29], [5, 0, 9, 1, 14], [1] * 29]
TOTAL, LENGTH, SIZE = 29, 4, (2, 3)


def pixels_of(n: int) -> Any:
    return np.arange(18, dtype=np.uint8).reshape(*SIZE, 3) + 3 * n


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> FoldersByKind:
    """The same rows in files of several sizes: a number, a list, an image, and the steps of an episode."""
    folders = FoldersByKind()
    for layout, counts in enumerate(LAYOUTS):
        folders[layout] = folder = tmp_path_factory.mktemp(f"layout-{layout}")
        first = 0
        for file, count in enumerate(counts):
            path, numbers = folder / f"{file}.tfrecord", range(first, first + count)
            if not count:
                path.touch()
                continue
            rows = {
                "n": np.array(numbers, np.int64),
                "t": [[n] * (n % (LENGTH + 1)) for n in numbers],
                "image": [encoded(pixels_of(n)) for n in numbers],
                "steps": [[100 * n + step for step in range(n % 4)] for n in numbers],
            }
            schema = {"n": "int64", "t": tfr.list_("int64"), "image": tfr.image(shape=(*SIZE, 3))}
            tfr.write_tfrecord(rows, path, schema={**schema, "steps": tfr.list_("int64")}, write_index=True)
            first += count
    return folders


def opened(folder: Path, kind: str) -> tuple[Any, list[Any]]:
    """A source, and the keys of its rows in their order: numbers, or steps of windows."""
    data: Any = tfr.dataset(sorted(folder.glob("*.tfrecord"), key=lambda path: int(path.stem)), threads=1)
    rows = data.select(["n", "t", "image"])
    if kind == "filtered":
        return rows.filter([("n", "not in", [3, 4, 20])]), [n for n in range(TOTAL) if n not in (3, 4, 20)]
    if kind == "mixture":
        mixture = tfr.mix([rows.filter([("n", "<", 9)]), rows], [2, 1], seed=4, stop="all")
        with mixture.iter_arrays(batch_size=1, pad_to=LENGTH) as batches:
            return mixture, [int(batch["n"][0]) for batch in batches]
    if kind == "windows":
        steps = [[100 * n + step for step in range(n % 4)] for n in range(TOTAL)]
        keys = [[episode[max(at - 1, 0)], episode[at]] for episode in steps for at in range(len(episode))]
        return tfr.windows(data.select(["steps"]), {"steps": range(-1, 1)}), keys
    return rows, [*range(TOTAL)]


def expected(keys: list[Any], kind: str, channels_first: bool) -> dict[str, Any]:
    """The arrays of a batch."""
    if kind == "windows":
        steps = np.array(keys).reshape(-1, 2)  # those before the first one repeat it
        return {"steps": steps, "steps/mask": np.stack([steps[:, 0] != steps[:, 1], steps[:, 1] >= 0], axis=1)}
    lists = [[n] * (n % (LENGTH + 1)) for n in keys]
    images = np.array([pixels_of(n) for n in keys]).reshape(-1, *SIZE, 3)
    return {
        "n": np.array(keys),
        "t": np.array([cell + [0] * (LENGTH - len(cell)) for cell in lists]).reshape(-1, LENGTH),
        "t/length": np.array([*map(len, lists)]),
        "image": images.transpose(0, 3, 1, 2) if channels_first else images,
    }


@settings(max_examples=rounds(300, 30))
@given(
    layout=st.integers(0, len(LAYOUTS) - 1), kind=st.sampled_from(["files", "filtered", "mixture", "windows"]),
    batch_size=st.integers(1, 40), seed=st.sampled_from([None, 0, 7]), epoch=st.integers(0, 3),
    drop_last=st.booleans(), channels_first=st.booleans(), targets=st.sampled_from([None, "n", ["t", "image"]]),
    cache=st.sampled_from([None, None, 1, 200, 10**6]), data=st.data(),
)  # fmt: skip
def test_batches_are_those_of_the_rows(
    folders: FoldersByKind, tmp_path_factory: pytest.TempPathFactory, layout: int, kind: str, batch_size: int,
    seed: int | None, epoch: int, drop_last: bool, channels_first: bool, targets: Any, cache: int | None, data: Any,
) -> None:  # fmt: skip
    source, keys = opened(folders[layout], kind)
    targets = None if kind == "windows" else targets
    options = {"batch_size": batch_size, "seed": seed, "drop_last": drop_last, "channels_first": channels_first}
    kept = {} if cache is None else {"cache": (tmp_path_factory.mktemp("kept"), cache)}
    padded = {} if kind == "windows" else {"pad_to": LENGTH}
    batches = source.to_torch_map(**options, **kept, **padded, targets=targets)
    if seed is not None:
        batches.set_epoch(epoch)
    batches = pickle.loads(pickle.dumps(batches))
    count = len(keys) // batch_size if drop_last else -(-len(keys) // batch_size)
    assert len(batches) == count

    order = list[Any]()
    numbers = data.draw(st.permutations(range(count)))
    for number in [*numbers, *(n - count for n in numbers[:3])]:  # and once more, from the end and from the cache
        batch = batches[number]
        arrays = dict[str, Any]()
        for part in batch if targets is not None else (batch,):
            arrays |= part if isinstance(part, dict) else {"n": part}  # alone among the inputs or targets
        first = arrays["steps"].tolist() if kind == "windows" else arrays["n"].tolist()
        assert len(first) == min(batch_size, len(keys) - number % count * batch_size)
        model = expected(first, kind, channels_first)
        assert arrays.keys() == model.keys()
        for name, values in model.items():
            np.testing.assert_array_equal(arrays[name].numpy(), values)
        if targets is not None:
            inputs, of_targets = batch
            others = {*model} - {"n"}
            assert (inputs if targets == "n" else of_targets).keys() == others
            assert isinstance(of_targets if targets == "n" else inputs, torch.Tensor)
        order.append((number % count, first))
    epoch_keys = list(itertools.chain(*(rows for _, rows in sorted(order[:count], key=lambda item: item[0]))))
    for number, rows in order[count:]:
        assert rows == epoch_keys[number * batch_size : (number + 1) * batch_size]
    if seed is None:
        assert epoch_keys == keys[: len(epoch_keys)]
    elif not drop_last:
        assert sorted(epoch_keys) == sorted(keys)
    else:
        assert len(epoch_keys) == count * batch_size
        assert all(epoch_keys.count(key) <= keys.count(key) for key in epoch_keys)
