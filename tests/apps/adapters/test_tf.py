"""tf.data reads TFRecord files: `make test-adapters` runs these tests."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from pictures import assert_pictures, encoded, written_pictures
from records import example, int64s, written
from tfrecord_io.testing.adapter_suite import ZONE, AdapterSuite

tf = pytest.importorskip("tensorflow")

TYPES = {"time": pa.timestamp("us", ZONE), "day": pa.date32()}


class TestTF(AdapterSuite):
    keeps_class = False

    def open(self, path: Any, **keywords: Any) -> tfr.Dataset:
        return tfr.dataset(path, **keywords)

    def rows(self, opened: tfr.Dataset, names: list[str] | None = None) -> dict[str, list[Any]]:
        chosen = opened if names is None else opened.select(names)
        found: dict[str, list[Any]] = {name: [] for name in names or opened.schema.names}
        for batch in chosen.to_tf(batch_size=4, missing="mask"):
            for name, values in found.items():
                mask = batch.get(f"{name}/mask")
                values += self.cells(name, batch[name], None if mask is None else mask.numpy())
        return found

    def cells(self, name: str, tensor: Any, mask: np.ndarray | None) -> list[Any]:
        values = tensor.to_list() if isinstance(tensor, tf.RaggedTensor) else tensor.numpy().tolist()
        if name in TYPES:
            type_ = pa.int32() if name == "day" else pa.int64()
            values = pa.array(values, type_).cast(TYPES[name]).to_pylist()
        if name in ("text", "team"):
            values = [value.decode() for value in values]
        missing = [False] * len(values) if mask is None else mask.reshape(len(values), -1).any(1)
        return [None if is_missing else value for value, is_missing in zip(values, missing, strict=True)]

    def above(self, opened: tfr.Dataset, least: int) -> tfr.Dataset:
        return opened.filter([("ints", ">", least)])

    def first(self, opened: tfr.Dataset, n: int) -> tfr.Dataset:
        return opened.limit(n)

    def count(self, opened: tfr.Dataset) -> int:
        return sum(len(batch["ints"]) for batch in opened.select(["ints"]).to_tf(batch_size=4))

    def names(self, opened: tfr.Dataset) -> list[str]:
        return list(opened.to_tf(batch_size=2, missing="error").element_spec)

    def test_the_spec_follows_from_the_schema(self, path: Path) -> None:
        spec = self.open(path).to_tf(batch_size=2, drop_last=True).element_spec
        assert spec["ints"] == tf.TensorSpec((2,), tf.int16)
        assert spec["float"] == tf.TensorSpec((2,), tf.float32)
        assert spec["flag"] == tf.TensorSpec((2,), tf.bool)
        assert spec["text"] == spec["raw"] == spec["team"] == tf.TensorSpec((2,), tf.string)
        assert spec["list"] == tf.RaggedTensorSpec((2, None), tf.int64)
        assert spec["time"] == spec["day"] == tf.TensorSpec((2,), tf.int64)
        assert spec["images"] == tf.TensorSpec((2, 2, 2), tf.uint8)
        spec = self.open(path).to_tf(batch_size=2, missing="mask").element_spec
        assert spec["images"] == tf.TensorSpec((None, 2, 2), tf.uint8)
        assert all(spec[f"{name}/mask"].dtype == tf.bool for name in ("ints", "text", "list", "images"))

    def test_batches_have_the_spec(self, path: Path) -> None:
        dataset = self.open(path).to_tf(batch_size=4, missing="mask")
        for batch in dataset:
            for name, spec in dataset.element_spec.items():
                assert spec.is_compatible_with(batch[name]), name

    @pytest.mark.parametrize("name", ["int", "text", "list"])
    def test_a_missing_value_needs_a_mask(self, path: Path, name: str) -> None:
        with pytest.raises(Exception, match="no value, and"):
            list(self.open(path).select([name]).to_tf(batch_size=4))


@pytest.fixture
def numbers(tmp_path: Path) -> tfr.Dataset:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(40)])
    return tfr.dataset(path, schema={"x": "int64"})


def values(dataset: Any) -> list[int]:
    return [int(n) for batch in dataset for n in batch["x"]]


def test_each_iteration_is_an_epoch(numbers: tfr.Dataset) -> None:
    dataset = numbers.to_tf(batch_size=8, shuffle_buffer=20)
    first, second = values(dataset), values(dataset)
    assert sorted(first) == sorted(second) == list(range(40))
    assert first != second
    expected = numbers.to_tf(batch_size=8, shuffle_buffer=20, seed=4)
    assert values(expected) == values(numbers.to_tf(batch_size=8, shuffle_buffer=20, seed=4))
    assert values(expected.repeat(2)) != values(expected)


def test_the_order_is_that_of_the_seed_of_tensorflow(numbers: tfr.Dataset) -> None:
    def orders() -> list[list[int]]:
        tf.random.set_seed(7)
        return [values(numbers.to_tf(batch_size=8, shuffle_buffer=20)) for _ in range(2)]

    first, second = orders()
    assert orders() == [first, second]
    assert first != second

    @tf.function
    def total() -> Any:
        return numbers.to_tf(batch_size=8, shuffle_buffer=20).reduce(
            np.int64(0), lambda sum_, batch: sum_ + tf.reduce_sum(batch["x"])
        )

    assert int(total()) == sum(range(40))


def test_workers_share_the_rows(numbers: tfr.Dataset) -> None:
    parts = [values(numbers.to_tf(batch_size=8, worker=(i, 3), uneven="drop")) for i in range(3)]
    assert [len(part) for part in parts] == [13, 13, 13]


def test_workers_share_the_steps_of_one_order(numbers: tfr.Dataset) -> None:
    """With parts=, three workers take the rows that one takes in a step."""
    options: dict[str, Any] = {"shuffle_buffer": 20, "seed": 3, "parts": 6}
    whole = numbers.to_tf(batch_size=12, **options)
    workers = [numbers.to_tf(batch_size=4, worker=(i, 3), **options) for i in range(3)]
    first_step = [value for worker in workers for value in next(iter(worker))["x"].numpy().tolist()]
    assert first_step == next(iter(whole))["x"].numpy().tolist()
    assert sorted(value for worker in workers for value in values(worker)) == sorted(values(whole)) == [*range(40)]


@pytest.mark.parametrize("worker", [(0, 2), (1, 2), (0, 1), None])
def test_a_part_is_not_sharded_again(numbers: tfr.Dataset, worker: tuple[int, int] | None) -> None:
    dataset = numbers.to_tf(batch_size=5, worker=worker).map(lambda batch: batch)
    policies = tf.data.experimental.AutoShardPolicy
    is_part = worker is not None and worker[1] > 1
    expected = policies.OFF if is_part else policies.AUTO
    assert dataset.options().experimental_distribute.auto_shard_policy == expected


def test_the_number_of_batches_is_known_from_an_index(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": list(range(10))}, tmp_path / "a.tfrecord", write_index=True)
    dataset = tfr.dataset(tmp_path / "a.tfrecord").to_tf(batch_size=4)
    assert len(dataset) == len(list(dataset)) == 3
    tfr.write_tfrecord({"x": list(range(10))}, tmp_path / "b.tfrecord")
    dataset = tfr.dataset(tmp_path / "b.tfrecord").to_tf(batch_size=4)
    assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize("dtype", ["bool", "uint16", "int8", "uint64", "float16", "float64", "complex64", "S3", "U2"])
def test_dtypes_of_tensors(tmp_path: Path, dtype: str) -> None:
    array = np.arange(12).reshape(3, 2, 2).astype(dtype)
    tfr.write_tfrecord({"x": array}, tmp_path / "a.tfrecord")
    (batch,) = tfr.dataset(tmp_path / "a.tfrecord").to_tf(batch_size=3)
    got = batch["x"].numpy()
    assert got.shape == array.shape
    assert (got.astype(dtype) == array).all()


def test_lists_of_each_form(tmp_path: Path) -> None:
    lists = {"x": [[1, 2], [], [3]], "y": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}
    tfr.write_tfrecord(lists, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    (batch,) = dataset.to_tf(batch_size=3)
    assert batch["x"].to_list() == lists["x"]
    assert batch["y"].to_list() == lists["y"]  # ragged as well: the embedded schema states no length
    fixed = tfr.dataset(tmp_path / "a.tfrecord", schema_overrides={"y": tfr.list_("float64", length=2)})
    assert fixed.to_tf(batch_size=3).element_spec["y"] == tf.TensorSpec((None, 2), tf.float64)
    (batch,) = fixed.to_tf(batch_size=3)
    assert batch["y"].numpy().tolist() == lists["y"]
    (batch,) = dataset.to_tf(batch_size=3, ragged="offsets")
    assert batch["x"].to_list() == lists["x"]
    padded = dataset.to_tf(batch_size=3, ragged="pad", pad_value=-1)
    assert padded.element_spec["x"] == tf.TensorSpec((None, None), tf.int64)
    (batch,) = padded
    assert batch["x"].numpy().tolist() == [[1, 2], [-1, -1], [3, -1]]
    assert batch["x/length"].numpy().tolist() == [2, 0, 1]


TEXT_FORMS: list[tuple[dict[str, Any], Any]] = [
    ({"ragged": "offsets"}, [[b"a", b"b"], [b"c"]]),
    ({"ragged": "pad"}, [[b"a", b"b"], [b"c", b""]]),
    ({"ragged": "pad", "missing": "mask"}, [[b"a", b"b"], [b"c", b""]]),
]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.binary(), pa.dictionary(pa.int8(), pa.string())], ids=["text", "bytes", "categories"]
)
def test_lists_of_text(tmp_path: Path, kind: pa.DataType) -> None:
    empty, a, b, c = (b"", b"a", b"b", b"c") if kind == pa.binary() else ("", "a", "b", "c")
    columns = {"x": [[a, b], [c]], "even": [[a, b], [b, c]]}
    table = pa.table({name: pa.array(lists, pa.list_(kind)) for name, lists in columns.items()})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    for options, expected in TEXT_FORMS:
        padding = {"pad_value": empty} if options.get("ragged") == "pad" else {}
        (batch,) = dataset.select(["x"]).to_tf(batch_size=2, **padding, **options)
        values = batch["x"].to_list() if "offsets" in options.values() else batch["x"].numpy().tolist()
        assert values == expected
    with pytest.raises(tfr.errors.SchemaError, match=r"'even'.*no tensor for rows of list"):  # of any length
        dataset.select(["even"]).to_tf(batch_size=2, missing="mask")
    fixed = tfr.dataset(tmp_path / "a.tfrecord", schema_overrides={"even": pa.list_(kind, 2)})
    (batch,) = fixed.select(["even"]).to_tf(batch_size=2, missing="mask")
    assert batch["even"].numpy().tolist() == [[b"a", b"b"], [b"b", b"c"]]
    assert batch["even/mask"].numpy().tolist() == [[False, False], [False, False]]


@pytest.mark.parametrize("values", [[["a", None], ["c"]], [[b"a", None], [b"c"]]], ids=["text", "bytes"])
def test_a_list_of_text_that_lacks_a_value(tmp_path: Path, values: Any) -> None:
    tfr.write_tfrecord(pa.table({"x": values}), tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    (batch,) = dataset.to_tf(batch_size=2, ragged="pad", missing="mask")
    assert batch["x"].numpy().tolist() == [[b"a", b""], [b"c", b""]]
    assert batch["x/mask"].numpy().tolist() == [[False, True], [False, False]]
    for ragged, advice in (("pad", "pass missing="), ("offsets", 'pass ragged="pad" and missing=')):
        with pytest.raises(Exception, match=f"'x': a record has no value, .* cannot mark missing values; {advice}"):
            list(dataset.to_tf(batch_size=2, ragged=ragged))


def test_advice_about_lists_is_one_that_helps(tmp_path: Path) -> None:
    columns = {"text": [["a"], []], "cost": [[Decimal("1.5")], []], "deep": [[["a"], ["b", "c"]], [["d"]]]}
    tfr.write_tfrecord(columns, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    for name, advice in {
        "text": 'exclude it, or pass ragged="pad"',
        "cost": "exclude it",
        "deep": 'exclude it, or pass ragged="pad"',
    }.items():
        with pytest.raises(tfr.errors.SchemaError, match=f"TensorFlow has no tensor for .*; {advice}$"):
            dataset.select([name]).to_tf(batch_size=2)


def test_lists_of_lists_are_ragged_or_padded(tmp_path: Path) -> None:
    columns = {"n": [[[1], [2, 3]], []], "text": [[["a"], ["b", "c"]], []], "bytes": [[[b"a"], [b"b", b"c"]], []]}
    pairs = {"pair": [[[1.0, 2.0]], []]}
    schema = {"pair": pa.list_(pa.list_(pa.float32(), 2))}
    tfr.write_tfrecord(columns | pairs, tmp_path / "a.tfrecord", record_type="sequence_example")
    dataset = tfr.dataset(tmp_path / "a.tfrecord", schema_overrides=schema)
    (batch,) = dataset.select(["n", "pair"]).to_tf(batch_size=2)
    assert batch["n"].to_list() == columns["n"]
    assert batch["n"].shape.as_list() == [2, None, None]
    assert batch["pair"].to_list() == pairs["pair"]
    assert batch["pair"].shape.as_list() == [2, None, 2]
    padded = {"n": [[[1, 0], [2, 3]], [[0, 0], [0, 0]]], "text": [[[b"a", b""], [b"b", b"c"]], [[b"", b""]] * 2]}
    (batch,) = dataset.to_tf(batch_size=2, ragged="pad")
    for name, own in {**padded, "bytes": padded["text"]}.items():
        assert batch[name].numpy().tolist() == own
        assert batch[f"{name}/shape"].numpy().tolist() == [[[1], [2]], [[0], [0]]]
    (batch,) = dataset.to_tf(batch_size=2, ragged="offsets")
    for name, flat in {"n": [1, 2, 3], "text": [b"a", b"b", b"c"], "bytes": [b"a", b"b", b"c"]}.items():
        assert batch[name].to_list() == [flat, []]


def test_lists_of_a_declared_shape_have_it(tmp_path: Path) -> None:
    lists = {"x": [[1.0, 2.0, 3.0, 4.0], [], [1.0, 2.0]]}
    tfr.write_tfrecord(lists, tmp_path / "a.tfrecord", embed_schema=False)
    declared = tfr.tensor("float32", (None, 2), encoding="list")
    dataset = tfr.dataset(tmp_path / "a.tfrecord", schema={"x": declared}).to_tf(batch_size=3)
    assert dataset.element_spec["x"] == tf.RaggedTensorSpec((None, None, 2), tf.float32, ragged_rank=1)
    (batch,) = dataset
    assert batch["x"].to_list() == [[[1.0, 2.0], [3.0, 4.0]], [], [[1.0, 2.0]]]


def test_tensors_of_different_shapes_are_ragged_or_padded(tmp_path: Path) -> None:
    tensors = [np.ones((1, 2), "uint8"), np.ones((2, 1), "uint8")]
    tfr.write_tfrecord({"x": tensors}, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    (batch,) = dataset.to_tf(batch_size=2)
    assert batch["x"].to_list() == [[[1, 1]], [[1], [1]]]
    (batch,) = dataset.to_tf(batch_size=2, ragged="pad")
    assert batch["x"].numpy().tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]
    assert batch["x/shape"].numpy().tolist() == [[1, 2], [2, 1]]


def test_known_shapes_reach_the_spec(tmp_path: Path) -> None:
    lists = [[1, 2, 3], [4], [], [5, 6]]
    boxes = [np.full((len(own), 4), own[0] if own else 0, np.float32) for own in lists]
    words = [["a"] * len(own) for own in lists]
    columns = {"x": lists, "steps": [list(own) for own in boxes], "boxes": boxes, "words": words}
    schema = {
        "x": tfr.list_("int64"),
        "steps": tfr.sequence(tfr.tensor("float32", (4,))),
        "boxes": tfr.tensor("float32", (None, 4)),
        "words": tfr.list_("string"),
    }
    tfr.write_tfrecord(columns, tmp_path / "a.tfrecord", schema=schema)
    opened = tfr.dataset(tmp_path / "a.tfrecord")
    own: dict[str, Any] = {"x": (None,), "steps": (None, 4), "boxes": (None, 4), "words": (None,)}
    static = {"x": (8,), "steps": (3, 4), "boxes": (5, 4), "words": (3,)}
    cases = [
        ({"ragged": "pad"}, own),
        ({"pad_to": {"x": 8, "steps": 3, "boxes": 5, "words": 3}}, static),
        ({"ragged": "pad", "bucket_by": "x", "bucket_sizes": [1, 3], "drop_last": False}, own),
    ]
    for options, shapes in cases:
        dataset = opened.to_tf(batch_size=2, missing="mask", **options)
        for name, shape in shapes.items():
            assert dataset.element_spec[name].shape.as_list() == [None, *shape]
        for batch in dataset:
            for name, spec in dataset.element_spec.items():
                assert spec.is_compatible_with(batch[name]), name
    names = ["x", "steps", "words"]
    packed = opened.select(names).to_tf(batch_size=2, drop_last=True, pack={"x": 4, "steps": 6, "words": 4})
    shapes = {name: spec.shape.as_list() for name, spec in packed.element_spec.items()}
    assert shapes["x"] == shapes["x/segment_ids"] == shapes["words"] == [2, 4]
    assert (shapes["steps"], shapes["steps/positions"]) == ([2, 6, 4], [2, 6])
    (batch,) = packed
    assert batch["x"].numpy().tolist() == [[1, 2, 3, 4], [5, 6, 0, 0]]
    assert batch["words/segment_ids"].numpy().tolist() == [[1, 1, 1, 2], [1, 1, 0, 0]]


def test_a_batch_whose_tensors_are_all_missing_has_the_spec(tmp_path: Path) -> None:
    schema = {"x": tfr.tensor("float32", (None, 4))}
    tfr.write_tfrecord({"x": [None, None, np.ones((2, 4), np.float32)]}, tmp_path / "a.tfrecord", schema=schema)
    for options in ({"pad_to": 3}, {"ragged": "pad"}):
        dataset = tfr.dataset(tmp_path / "a.tfrecord").to_tf(batch_size=2, missing="mask", **options)
        first, last = dataset
        assert first["x"].shape[2] == last["x"].shape[2] == 4
        assert first["x/mask"].numpy().all()
        assert not last["x/mask"].numpy()[:, :2].any()


def test_images(tmp_path: Path) -> None:
    schema, expected = written_pictures(tmp_path / "a.tfrecord")
    data = tfr.dataset(tmp_path / "a.tfrecord", schema=schema)
    dataset = data.to_tf(batch_size=3, shuffle_buffer=4, missing="mask")
    assert dataset.element_spec["image"] == tf.TensorSpec((None, 4, 5, 3), tf.uint8)
    assert dataset.element_spec["image/mask"] == tf.TensorSpec((None,), tf.bool)
    assert dataset.element_spec["frames"] == tf.TensorSpec((None, 2, 3, 3, 3), tf.uint8)
    assert_pictures(list(dataset.unbatch().as_numpy_iterator()), expected)
    with pytest.raises(Exception, match=r"a\.tfrecord: record 0: .*expected an image of shape \(9, 5, 3\)"):
        list(tfr.dataset(tmp_path / "a.tfrecord", schema={"image": tfr.image((9, 5, 3))}).to_tf(batch_size=3))


def test_images_whose_size_varies(tmp_path: Path) -> None:
    pixels = [np.full((n, 2, 3), n, np.uint8) for n in (1, 2, 3)]
    files = [*map(encoded, pixels)]
    tfr.write_tfrecord({"x": files, "frames": [files, files[:1], []]}, tmp_path / "a.tfrecord")
    some = tfr.dataset(tmp_path / "a.tfrecord", schema={"x": tfr.image()})
    ragged = some.to_tf(batch_size=3)
    assert ragged.element_spec["x"] == tf.RaggedTensorSpec((None, None, None, 3), tf.uint8, ragged_rank=2)
    (batch,) = ragged
    assert [image.to_tensor().numpy().tolist() for image in batch["x"]] == [image.tolist() for image in pixels]
    views = tfr.dataset(tmp_path / "a.tfrecord", schema={"frames": tfr.list_(tfr.image())})
    (batch,) = views.to_tf(batch_size=3)
    assert batch["frames"].to_list() == [[image.tolist() for image in row] for row in (pixels, pixels[:1], [])]
    for options in ({"ragged": "pad"}, {"ragged": "offsets"}, {"bucket_by": "frames", "bucket_sizes": [1, 4]}):
        dataset = views.to_tf(batch_size=2, **options)
        for batch in dataset:
            for name, spec in dataset.element_spec.items():
                assert spec.is_compatible_with(batch[name]), name
    unchanged = tfr.dataset(tmp_path / "a.tfrecord", schema={"x": tfr.image(mode="unchanged")})
    with pytest.raises(
        tfr.errors.SchemaError, match=r"'x': images of mode \"unchanged\" .*; declare tfr\.image\(mode="
    ):
        unchanged.to_tf(batch_size=3)
    padded = some.to_tf(batch_size=3, ragged="pad", missing="mask")
    assert padded.element_spec["x"] == tf.TensorSpec((None, None, None, 3), tf.uint8)
    (batch,) = padded
    assert batch["x"].shape == (3, 3, 2, 3)
    assert batch["x/shape"].numpy().tolist() == [[1, 2, 3], [2, 2, 3], [3, 2, 3]]
    lists = tfr.dataset(tmp_path / "a.tfrecord", schema={"frames": tfr.list_(tfr.image(resize=(2, 2)))})
    dataset = lists.to_tf(batch_size=3)
    assert dataset.element_spec["frames"] == tf.RaggedTensorSpec((None, None, 2, 2, 3), tf.uint8, ragged_rank=1)
    (batch,) = dataset
    assert batch["frames"].row_lengths().numpy().tolist() == [3, 1, 0]
    bucketed = lists.to_tf(batch_size=2, bucket_by="frames", bucket_sizes=[1, 4])
    assert [batch["frames"].shape.as_list() for batch in bucketed] == [[2, 1, 2, 2, 3], [1, 4, 2, 2, 3]]
    (batch,) = lists.to_tf(batch_size=3, ragged="pad", pad_to=4)
    assert batch["frames"].shape == (3, 4, 2, 2, 3)


@pytest.mark.parametrize("keywords", [{"shape": (4, 5, 1)}, {"resize": (2, 3)}, {"resize": (8, 10), "fit": "pad"}])
def test_numbers_of_palettes(tmp_path: Path, keywords: dict[str, Any]) -> None:
    """TensorFlow's own decoder returns the colours of a palette; masks of classes are their numbers."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 21, (6, 4, 5), "uint8")
    files = []
    for mask in numbers:
        picture, file = image.fromarray(mask).convert("L"), io.BytesIO()
        picture = image.frombytes("P", picture.size, picture.tobytes())
        picture.putpalette(rng.integers(0, 256, 768, "uint8").tobytes())
        picture.save(file, "PNG")
        files.append(file.getvalue())
    tfr.write_tfrecord({"mask": files, "masks": [files[:1]] * 6, "n": range(6)}, tmp_path / "a.tfrecord")
    form = tfr.image(mode="index", **keywords)
    data = tfr.dataset(tmp_path / "a.tfrecord", schema={"mask": form, "masks": tfr.list_(form), "n": "int64"})
    expected = tfr.read_arrays(data.select(["mask"]))["mask"]
    if "shape" in keywords:
        assert (expected[..., 0] == numbers).all()
    found = list(data.to_tf(batch_size=4, shuffle_buffer=6, seed=1).map(lambda batch: batch))
    for batch in found:
        for mask, masks, n in zip(batch["mask"].numpy(), batch["masks"], batch["n"].numpy(), strict=True):
            np.testing.assert_array_equal(mask, expected[n])
            np.testing.assert_array_equal(masks.numpy()[0], expected[0])
    assert sum(len(batch["n"]) for batch in found) == 6


def test_a_model_trains(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    rng = np.random.default_rng(0)
    table = {"x": rng.random((64, 3), "float32"), "y": rng.integers(0, 2, 64)}
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord").to_tf(batch_size=16, shuffle_buffer=32)
    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(dataset.map(lambda batch: (batch["x"], batch["y"])), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


def test_invalid_keywords(numbers: tfr.Dataset) -> None:
    with pytest.raises(TypeError, match=r"to_tf\(\) got an unexpected keyword argument 'shuffle'"):
        numbers.to_tf(batch_size=2, shuffle=100)
