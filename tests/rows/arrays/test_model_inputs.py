"""Images with channels first, and pairs of inputs and targets: of arrays, and through the loaders of torch."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.rows.arrays.model_inputs import ModelInputs


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tfr.Dataset:
    """40 images of 2 × 3 pixels, their labels, and text."""
    image, path = pytest.importorskip("PIL.Image"), tmp_path_factory.mktemp("pairs") / "a.tfrecord"
    pixels = np.arange(40 * 18, dtype=np.uint8).reshape(40, 2, 3, 3)
    encoded = []
    for own in pixels:
        out = io.BytesIO()
        image.fromarray(own).save(out, "PNG")
        encoded.append(out.getvalue())
    rows = {
        "image": encoded,
        "label": range(40),
        "text": [str(n) for n in range(40)],
        "tokens": [[n] for n in range(40)],
    }
    schema = {"image": tfr.image(shape=(2, 3, 3)), "label": "int64", "text": "string", "tokens": tfr.list_("int64")}
    tfr.write_tfrecord(rows, path, schema=schema, write_index=True)
    return tfr.dataset(path, schema=schema)


def test_pairs_of_dicts_and_of_values(data: tfr.Dataset) -> None:
    batch = next(data.iter_arrays(batch_size=2, pad_to=3))
    form = ModelInputs.from_schema(data.schema, targets=["label", "tokens"])
    inputs, targets = form.pair(batch)
    assert [*inputs] == ["image", "text"]
    assert [*targets] == ["label", "tokens", "tokens/length"]
    inputs, targets = ModelInputs.from_schema(data.schema, targets="label").pair(batch)
    assert [*inputs] == ["image", "text", "tokens", "tokens/length"]
    assert targets.tolist() == [0, 1]
    narrow = data.select(["image", "label"])
    inputs, targets = ModelInputs.from_schema(narrow.schema, targets="label").pair(
        next(narrow.iter_arrays(batch_size=2))
    )
    assert inputs.shape == (2, 2, 3, 3)
    assert ModelInputs.from_schema(narrow.schema).pair({"x": 1}) == {"x": 1}


@pytest.mark.parametrize(
    ("targets", "error", "message"),
    [
        ("z", tfr.errors.FeatureNotFoundError, "targets= names a column that is not read"),
        (["image", "label", "text", "tokens"], ValueError, "name some of the columns"),
        ([], ValueError, "expected one or several names"),
        (3, ValueError, "targets=3"),
    ],
)
def test_targets_that_cannot_be(data: tfr.Dataset, targets: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ModelInputs.from_schema(data.schema, targets=targets)


def test_channels_come_first() -> None:
    form = ModelInputs(frozenset({"image", "n"}), frozenset({"image"}))
    images = np.arange(36).reshape(2, 2, 3, 3)
    moved = form.arrays({"image": images, "image/shape": np.array([[2, 3, 3]]), "n": images})
    assert (moved["image"] == images.transpose(0, 3, 1, 2)).all()
    assert np.shares_memory(moved["image"], images)
    assert moved["image/shape"].tolist() == [[3, 2, 3]]
    assert moved["n"] is images
    cells = np.empty(2, object)
    cells[:] = [images[0], None]
    moved = form.arrays({"image": cells})
    assert moved["image"][0].shape == (3, 2, 3)
    assert moved["image"][1] is None
    values, offsets = form.arrays({"image": (images, np.array([0, 2]))})["image"]
    assert (values.shape, offsets.tolist()) == ((2, 3, 2, 3), [0, 2])
    flat = {"image": (images.reshape(-1), np.array([0, 18, 36])), "image/shape": np.array([[2, 3, 3]] * 2)}
    with pytest.raises(tfr.errors.SchemaError, match=r'\'image\': the values .* are flat, .*; pass ragged="pad"'):
        form.arrays(flat)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("resize", [None, (6, 5)])
def test_channels_of_raw_pixels_come_first(tmp_path: Path, resize: tuple[int, int] | None, layout: str) -> None:
    pixels = np.arange(4 * 6 * 5 * 3, dtype="uint8").reshape(4, 6, 5, 3)
    stored = pixels if layout == "HWC" else pixels.transpose(0, 3, 1, 2)
    tfr.write_tfrecord({"image": stored, "n": range(4)}, tmp_path / "a.tfrecord")
    image = tfr.image(tfr.tensor("uint8", stored.shape[1:]), layout=layout, resize=resize)
    data = tfr.dataset(tmp_path / "a.tfrecord", schema={"image": image, "n": "int64"})
    (batch,) = data.iter_arrays(batch_size=4)
    moved = ModelInputs.from_schema(data.schema, channels_first=True).arrays(batch)
    assert (moved["image"] == pixels.transpose(0, 3, 1, 2)).all()


@pytest.mark.parametrize("workers", [0, 1])
def test_torch(data: tfr.Dataset, workers: int) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader

    context: dict[str, Any] = {"num_workers": workers}
    context |= {"multiprocessing_context": "fork"} if workers else {}
    narrow = data.select(["image", "label"])
    expected = next(narrow.iter_arrays(batch_size=40))
    keywords: dict[str, Any] = {"channels_first": True, "targets": "label"}

    def check(loader: Any, size: int = 8) -> None:
        batches = list(loader)
        assert len(batches) == 40 // size
        images, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
        order = labels.argsort()
        assert labels[order].tolist() == [*range(40)]
        assert (images[order].numpy() == expected["image"].transpose(0, 3, 1, 2)).all()

    check(DataLoader(narrow.to_torch(batch_size=8, **keywords), batch_size=None, **context))
    check(DataLoader(narrow.to_torch(**keywords), batch_size=8, **context))
    rows = pickle.loads(pickle.dumps(narrow.to_torch_map(**keywords)))
    image, label = rows[3]
    assert (tuple(image.shape), int(label)) == ((3, 2, 3), 3)
    assert [int(label) for _, label in rows[2:4]] == [2, 3]
    assert [type(row) for row in rows[2:4]] == [tuple, tuple]
    check(DataLoader(rows, batch_size=8, shuffle=True, **context))
    check(DataLoader(rows, batch_size=8, shuffle=True, collate_fn=rows.collate_fn, **context))
    check(DataLoader(narrow.to_torch_map(batch_size=8, seed=1, **keywords), batch_size=None, shuffle=True, **context))
    some = torch.utils.data.Subset(rows, range(40))
    check(DataLoader(some, batch_size=8, **context))
    whole = next(iter(DataLoader(data.to_torch(batch_size=4, targets=["label", "text"]), batch_size=None, **context)))
    assert [[*part] for part in whole] == [["image", "tokens"], ["label", "text"]]


def test_torch_batches_have_another_order_in_each_epoch(data: tfr.Dataset) -> None:
    pytest.importorskip("torch")
    batches = data.select(["label"]).to_torch_map(batch_size=7, seed=3, drop_last=True)
    assert len(batches) == 5
    orders = []
    for epoch in (0, 1, 0):
        batches.set_epoch(epoch)
        orders.append([n for batch in batches[:] for n in batch["label"].tolist()])
    assert orders[0] == orders[2] != orders[1]
    for order in orders:
        assert len({*order}) == 35
    assert [batch["label"].tolist() for batch in data.to_torch_map(batch_size=30)[:]] == [
        [*range(30)],
        [*range(30, 40)],
    ]
    for rows in (data.to_torch_map(batch_size=7), data.to_torch_map(), data.to_torch_map(seed=None)):
        assert not hasattr(rows, "set_epoch")  # by which trainers ask
        with pytest.raises(AttributeError, match=r"pass batch_size= and seed="):
            rows.set_epoch(1)


def test_torch_collates_without_rows(data: tfr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from torch.utils.data import DataLoader

    from tfrecord_io.apps.adapters import torch_datasets

    made, row = [], torch_datasets._row
    monkeypatch.setattr(torch_datasets, "_row", lambda tensors, at: made.append(at) or row(tensors, at))
    batches = list(DataLoader(data.to_torch_map(), batch_size=20))
    assert [len(batch["label"]) for batch in batches] == [20, 20]
    assert batches[1]["text"][0] == "20"
    assert made == [0, 0]  # by which torch finds out what rows are
