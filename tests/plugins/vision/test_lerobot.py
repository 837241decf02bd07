"""Episodes in LeRobot's layout. Where the package lerobot is installed, it reads them."""

from __future__ import annotations

import importlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from sample_images import image_of, saved
from transfers import convert_flat

LENGTHS = [3, 0, 2, 4]
ACTIONS = [np.arange(n * 7, dtype=np.float32).reshape(n, 7) + n for n in LENGTHS]


def png(value: int) -> bytes:
    return png_of(6, 4, value)


def png_of(width: int, height: int, value: int = 0) -> bytes:
    return saved(pytest.importorskip("PIL.Image").new("RGB", (width, height), (value, 0, 0)))


def decoded(data: bytes) -> Any:
    return pytest.importorskip("PIL.Image").open(io.BytesIO(data))


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    table = pa.table(
        {
            "episode_metadata/file_path": list("abcd"),
            "steps/action": pa.array([each.tolist() for each in ACTIONS], pa.list_(pa.list_(pa.float32(), 7))),
            "steps/observation/image": [[png(10 * i + n) for i in range(n)] for n in LENGTHS],
            "steps/observation/gripper": pa.array([[[0.5]] * n for n in LENGTHS], pa.list_(pa.list_(pa.float64(), 1))),
            "steps/is_first": [[i == 0 for i in range(n)] for n in LENGTHS],
            "steps/language_instruction": [["push"] * n if n != 2 else ["pull"] * n for n in LENGTHS],
        }
    )
    path = tmp_path / "robots" / "1.0.0"
    tfr.formats.write_tfds(table, path, prefix="steps", images=["steps/observation/image"], float64="round")
    return path


def convert(source: Path, target: Path, **keywords: Any) -> Any:
    with pytest.warns(tfr.errors.SchemaWarning, match="1 episode without steps"):
        return convert_flat(
            source,
            target,
            source_options={"split": "train"},
            target_format="lerobot",
            target_options={"fps": 10},
            **keywords,
        )


def test_frames_and_descriptions(episodes: Path, tmp_path: Path) -> None:
    target = tmp_path / "lerobot"
    report = convert(episodes, target)
    assert report.records == 9
    frames = pq.read_table(target / "data")
    assert frames["action"].to_pylist() == np.concatenate(ACTIONS).tolist()
    assert frames["observation.gripper"].type == pa.float64()  # a list of one value is a value
    assert frames["episode_index"].to_pylist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert frames["frame_index"].to_pylist() == [0, 1, 2, 0, 1, 0, 1, 2, 3]
    assert frames["index"].to_pylist() == list(range(9))
    assert frames["task_index"].to_pylist() == [0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert frames["timestamp"].to_pylist()[:2] == [0.0, np.float32(0.1)]
    assert frames["observation.images.image"][4].as_py() == {"bytes": png(12), "path": None}
    info = json.loads((target / "meta" / "info.json").read_text())
    assert info["features"]["observation.images.image"]["shape"] == [4, 6, 3]
    assert info["features"]["action"] == {"dtype": "float32", "shape": [7], "names": None}
    assert info["features"]["is_first"] == {"dtype": "bool", "shape": [1], "names": None}
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"], info["fps"]) == (3, 9, 2, 10)
    of_episodes = pq.read_table(target / "meta" / "episodes").to_pylist()
    assert [each["dataset_from_index"] for each in of_episodes] == [0, 3, 5]
    assert [each["episode_metadata/file_path"] for each in of_episodes] == ["a", "c", "d"]
    assert [each["tasks"] for each in of_episodes] == [["push"], ["pull"], ["push"]]
    assert pd.read_parquet(target / "meta" / "tasks.parquet").loc["pull", "task_index"] == 1
    statistics = json.loads((target / "meta" / "stats.json").read_text())
    everything = np.concatenate(ACTIONS)
    np.testing.assert_allclose(statistics["action"]["mean"], everything.mean(0), rtol=1e-5)
    np.testing.assert_allclose(statistics["action"]["std"], everything.std(0), rtol=1e-4)
    assert np.shape(statistics["observation.images.image"]["mean"]) == (3, 1, 1)
    assert statistics["observation.images.image"]["count"] == [3]  # one of each episode
    np.testing.assert_allclose(statistics["observation.images.image"]["max"][0], 24 / 255)
    assert statistics["action"]["max"] == everything.max(0).tolist()


def test_each_episode_has_its_statistics(episodes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LeRobot makes those of a dataset of them when episodes are deleted, divided, or recorded in addition."""
    monkeypatch.setattr(importlib.import_module("tfrecord_io.plugins.vision.lerobot"), "_EPISODES", 2)
    convert(episodes, tmp_path / "lerobot", batch_size=1)
    meta = tmp_path / "lerobot" / "meta"
    info, of_all = (json.loads((meta / name).read_text()) for name in ("info.json", "stats.json"))
    table = pq.read_table(meta / "episodes")
    for name, element in {"is_first": pa.bool_(), "index": pa.int64(), "action": pa.float64()}.items():
        assert [table.schema.field(f"stats/{name}/{key}").type.value_type for key in ("min", "max")] == [element] * 2
    of_episodes = table.to_pylist()
    actions = [each for each in ACTIONS if len(each)]
    for name in info["features"]:
        for key in ("min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"):
            assert np.shape(of_episodes[0][f"stats/{name}/{key}"]) == np.shape(of_all[name][key])
    for found, action in zip(of_episodes, actions, strict=True):
        assert found["stats/action/max"] == action.max(0).tolist()
        np.testing.assert_allclose(found["stats/action/std"], action.std(0), rtol=1e-6)
        np.testing.assert_allclose(found["stats/action/q10"], np.quantile(action, 0.1, axis=0), rtol=1e-6)
        assert (found["stats/action/count"], found["stats/observation.images.image/count"]) == ([len(action)], [1])
    weights = [len(action) for action in actions]
    expected = np.average([found["stats/action/q10"] for found in of_episodes], axis=0, weights=weights)
    np.testing.assert_allclose(of_all["action"]["q10"], expected)
    assert of_all["index"]["max"] == [8]


def test_deviations_far_from_zero_are_those_of_numpy(tmp_path: Path) -> None:
    ticks = [[10**9, 10**9 + 1, 10**9 + 2], [10**9 - 5], [10**9 + 3]]
    source, target = tmp_path / "far.tfrecord", tmp_path / "lerobot"
    tfr.write_tfrecord({"steps/ticks": ticks, "task": ["a", "b", "b"]}, source)
    options = {"fps": 10, "task": "task"}
    tfr.convert(source, target, target_format="lerobot", source_options={"batch_size": 1}, target_options=options)
    found = json.loads((target / "meta" / "stats.json").read_text())["ticks"]
    np.testing.assert_allclose(found["mean"], [10**9 + 0.2])
    np.testing.assert_allclose(found["std"], [np.std([0, 1, 2, -5, 3])])


def test_files_end_with_episodes(episodes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("tfrecord_io.plugins.vision.lerobot")
    monkeypatch.setattr(module, "_FILE_MB", 0)
    monkeypatch.setattr(module, "_FILES_IN_CHUNK", 2)
    convert(episodes, tmp_path / "lerobot", batch_size=1)
    files = sorted(path.relative_to(tmp_path).as_posix() for path in (tmp_path / "lerobot" / "data").rglob("*.parquet"))
    assert [file.removeprefix("lerobot/data/") for file in files] == [
        "chunk-000/file-000.parquet",
        "chunk-000/file-001.parquet",
        "chunk-001/file-000.parquet",
    ]
    of_episodes = pq.read_table(tmp_path / "lerobot" / "meta" / "episodes").to_pylist()
    assert [(each["data/chunk_index"], each["data/file_index"]) for each in of_episodes] == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
def test_refusals(episodes: Path, tmp_path: Path) -> None:
    target = tmp_path / "lerobot"
    with pytest.raises(TypeError, match=r"needs .*fps"):
        tfr.convert(episodes, target, source_options={"split": "train"}, target_format="lerobot")
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="no column of text has the tasks"):
        tfr.convert(
            episodes,
            target,
            source_options={"split": "train"},
            target_format="lerobot",
            target_options={"fps": 10, "task": "goal"},
        )
    with pytest.raises(tfr.errors.EncodeError, match="no episode has steps"):
        tfr.convert(
            episodes,
            target,
            source_options={"split": "train[1:2]"},
            target_format="lerobot",
            target_options={"fps": 10},
        )
    assert not target.exists()
    ragged = tmp_path / "ragged" / "1.0.0"
    tfr.formats.write_tfds({"steps/x": [[[1], [2, 3]]]}, ragged, prefix="steps")
    with pytest.raises(tfr.errors.SchemaError, match="an array of numbers of one shape"):
        tfr.convert(
            ragged, target, source_options={"split": "train"}, target_format="lerobot", target_options={"fps": 10}
        )
    target.mkdir()
    (target / "a").write_text("")
    with pytest.raises(FileExistsError):
        tfr.convert(
            episodes, target, source_options={"split": "train"}, target_format="lerobot", target_options={"fps": 10}
        )


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
def test_arrays_of_episodes_of_one_length(tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    info, statistics = lerobot(pa.table({"steps/x": pa.FixedShapeTensorArray.from_numpy_ndarray(values)}), tmp_path)
    assert info["features"]["x"] == {"dtype": "float32", "shape": [3], "names": None}
    assert statistics["x"]["mean"] == values.reshape(8, 3).mean(0).tolist()
    frames = pq.read_table(tmp_path / "lerobot" / "data")["x"]
    assert (frames.type, frames.to_pylist()) == (pa.list_(pa.float32(), 3), values.reshape(8, 3).tolist())


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 1, 2, 3), (2, 1, 2, 1, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_arrays_of_up_to_five_axes(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    episodes = [rng.integers(0, 100, (length, *shape)).astype(dtype) for length in (3, 1)]
    tfr.write_tfrecord({"steps/x": episodes}, tmp_path / "a.tfrecord")
    declared = {"steps/x": tfr.tensor(dtype, (None, *shape))}
    target = tmp_path / "lerobot"
    tfr.convert(tmp_path / "a.tfrecord", target, schema=declared, target_format="lerobot", target_options={"fps": 1})
    info, statistics = (json.loads((target / "meta" / name).read_text()) for name in ("info.json", "stats.json"))
    assert info["features"]["x"] == {"dtype": dtype, "shape": [*shape], "names": None}
    assert np.allclose(statistics["x"]["mean"], np.concatenate(episodes).mean(0))
    of_episodes = pq.read_table(target / "meta" / "episodes").to_pylist()
    for found, episode in zip(of_episodes, episodes, strict=True):
        assert np.array_equal(found["stats/x/max"], episode.max(0))
        assert np.allclose(found["stats/x/q50"], np.quantile(episode, 0.5, axis=0))
    frames = pq.read_table(target / "data")
    assert np.array_equal(frames["x"].to_pylist(), np.concatenate(episodes))
    stated = json.loads(frames.schema.metadata[b"huggingface"])["info"]["features"]["x"]
    assert stated == {"shape": [*shape], "dtype": dtype, "_type": f"Array{len(shape)}D"}
    again = tfr.convert(target, tmp_path / "b.tfrecord", columns=["x"])
    assert again.records == 4
    tfr.convert(target, tmp_path / "c.tfrecord", source_format="lerobot", columns=["x"])
    array = tfr.read_arrays(tmp_path / "c.tfrecord")["x"]
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, np.concatenate(episodes))
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({name: datasets.Value("int64") for name in ("index", "task_index")})
    features["x"] = getattr(datasets, f"Array{len(shape)}D")(shape=shape, dtype=dtype)
    path = str(target / "data" / "chunk-000" / "file-000.parquet")
    read = datasets.Dataset.from_parquet(path, features=features, columns=[*features], cache_dir=str(tmp_path / "c"))
    assert np.array_equal(read.with_format("numpy")[:]["x"], np.concatenate(episodes))


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_of_pixels_are_images(tmp_path: Path, channels: int) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (2, 3, 6, 5, channels), "uint8")
    names = {"steps/observation/cam": frames}
    info, _ = lerobot(pa.table({k: pa.FixedShapeTensorArray.from_numpy_ndarray(v) for k, v in names.items()}), tmp_path)
    assert info["features"]["observation.images.cam"]["dtype"] == "image"
    assert info["features"]["observation.images.cam"]["shape"] == [6, 5, channels]
    stored = pq.read_table(tmp_path / "lerobot" / "data")["observation.images.cam"].to_pylist()
    pixels = [np.asarray(decoded(each["bytes"])).reshape(6, 5, channels) for each in stored]
    assert np.array_equal(pixels, frames.reshape(6, 6, 5, channels))
    tfr.convert(tmp_path / "lerobot", tmp_path / "b.tfrecord", source_format="lerobot")
    images = tfr.read_table(tmp_path / "b.tfrecord")["observation.images.cam"]
    assert images.to_pylist() == [each["bytes"] for each in stored]


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
@pytest.mark.parametrize("values", [[[[1, 2]]], [[[1], [2, 3]]], [[[1, None], [2, 3]]], [None]])
def test_frames_without_the_stated_shape_are_named(tmp_path: Path, values: list[Any]) -> None:
    array = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((1, 1, 2, 2)))
    lerobot(pa.table({"steps/x": array}), tmp_path)
    path = tmp_path / "lerobot" / "data" / "chunk-000" / "file-000.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "x", pa.array(values, pa.list_(pa.list_(pa.float64())))), path)
    with pytest.raises(tfr.errors.DecodeError, match="an array has") as caught:
        tfr.convert(tmp_path / "lerobot", tmp_path / "b.tfrecord", source_format="lerobot")
    assert (caught.value.feature, caught.value.path) == ("x", str(path))


def steps_of(images: list[bytes], **more: Any) -> pa.Table:
    """An episode for each image."""
    return pa.table({"steps/x": pa.array([[each] for each in images], pa.list_(pa.binary())), **more})


def lerobot(table: pa.Table, folder: Path, **keywords: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Features and their statistics, as meta/ states them."""
    tfr.write_tfrecord(table, folder / "a.tfrecord")
    convert_flat(
        folder / "a.tfrecord", folder / "lerobot", target_format="lerobot", target_options={"fps": 1}, **keywords
    )
    meta = folder / "lerobot" / "meta"
    return json.loads((meta / "info.json").read_text()), json.loads((meta / "stats.json").read_text())


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("1", 1), ("RGB", 3), ("RGBA", 4), ("LA", 2)])
def test_images_have_their_own_channels(tmp_path: Path, mode: str, channels: int) -> None:
    images = [image_of(mode) for _ in range(3)]
    info, statistics = lerobot(steps_of(images), tmp_path)
    assert info["features"]["x"]["shape"] == [4, 6, channels]
    arrays = [np.asarray(decoded(data).convert("L" if mode == "1" else mode), np.float64) for data in images]
    mean = np.mean([each.reshape(24, -1) for each in arrays], (0, 1)) / 255
    np.testing.assert_allclose(statistics["x"]["mean"], mean.reshape(channels, 1, 1), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
@pytest.mark.parametrize(
    ("images", "reason"),
    [
        (["L16"], "the image has I;16 of 16 bits; LeRobot has grey or RGB of 8 bits"),
        (["RGB16"], "RGB of 16 bits"),
        (["P"], "a palette"),
        (["CMYK.JPEG"], "CMYK of 8 bits"),
        (["RGB", "L"], "the image is of 4×6 with 1, the first of 4×6 with 3 channels"),
    ],
)
def test_images_that_lerobot_does_not_hold(tmp_path: Path, images: list[str], reason: str) -> None:
    with pytest.raises(tfr.errors.EncodeError, match=reason) as caught:
        lerobot(steps_of([image_of(*name.split(".")) for name in images]), tmp_path)
    assert (caught.value.feature, caught.value.record) == ("steps/x", len(images) - 1)
    assert not (tmp_path / "lerobot").exists()


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
def test_images_of_two_sizes_are_an_error_in_any_frame(tmp_path: Path) -> None:
    episodes = [[png(1)] * 5, [png_of(8, 6), png(1), png(1)]]  # statistics are of the frame in the middle
    with pytest.raises(
        tfr.errors.EncodeError, match="the image is of 6×8 with 3, the first of 4×6 with 3 channels"
    ) as caught:
        lerobot(pa.table({"steps/x": pa.array(episodes, pa.list_(pa.binary()))}), tmp_path)
    assert caught.value.record == 1


@pytest.mark.parametrize(
    "column", ["steps/observation/natural_language_instruction", "steps/language_instruction", "language_instruction"]
)
@pytest.mark.parametrize("type_", [pa.string(), pa.binary()])
def test_tasks_are_found(tmp_path: Path, column: str, type_: pa.DataType) -> None:
    texts = ["pick", "größer"]
    steps = column.startswith("steps")
    values = pa.array([[text] for text in texts] if steps else texts, pa.list_(type_) if steps else type_)
    info, _ = lerobot(steps_of([png(1)] * 2, **{column: values}), tmp_path)
    assert info["total_tasks"] == 2
    assert list(pd.read_parquet(tmp_path / "lerobot" / "meta" / "tasks.parquet").index) == texts
    assert set(info["features"]) == {"x", "timestamp", "frame_index", "episode_index", "index", "task_index"}


def test_tasks_that_are_none(tmp_path: Path) -> None:
    with pytest.warns(tfr.errors.SchemaWarning, match="the tasks of LeRobot are empty"):
        lerobot(steps_of([png(1)]), tmp_path)
    (tmp_path / "b").mkdir()
    bad = {"steps/goal": pa.array([[b"\xff"]], pa.list_(pa.binary()))}
    with pytest.raises(tfr.errors.EncodeError, match="a task is not text"):
        lerobot(steps_of([png(1)], **bad), tmp_path / "b", task="goal")


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
@pytest.mark.parametrize("column", ["length", "tasks", "episode_index", "data/file_index", "steps/index"])
def test_a_column_with_a_name_of_lerobot_s_own(tmp_path: Path, column: str) -> None:
    value = pa.array([[7]] if column.startswith("steps/") else [7])
    with pytest.raises(tfr.errors.SchemaError, match="two columns have this name in LeRobot") as caught:
        lerobot(steps_of([png(1)], **{column: value}), tmp_path)
    assert caught.value.feature == column.removeprefix("steps/")
    assert not (tmp_path / "lerobot").exists()


def test_lerobot_reads_it(episodes: Path, tmp_path: Path) -> None:
    module = pytest.importorskip("lerobot.datasets.lerobot_dataset", exc_type=ImportError)
    convert(episodes, tmp_path / "lerobot")
    dataset = module.LeRobotDataset("me/robots", root=tmp_path / "lerobot", delta_timestamps={"action": [0, 0.1]})
    assert (dataset.num_episodes, len(dataset)) == (3, 9)
    frame = dataset[4]
    assert frame["task"] == "pull"
    assert frame["action"].tolist() == [ACTIONS[2][1].tolist(), ACTIONS[2][1].tolist()]
    assert frame["action_is_pad"].tolist() == [False, True]
    assert frame["observation.images.image"].shape == (3, 4, 6)
    assert round(float(frame["observation.images.image"][0].max()) * 255) == 12
    assert set(dataset.meta.stats["action"]) >= {"min", "max", "mean", "std", "count"}


def test_lerobot_edits_it(episodes: Path, tmp_path: Path) -> None:
    module = pytest.importorskip("lerobot.datasets.lerobot_dataset", exc_type=ImportError)
    tools = pytest.importorskip("lerobot.datasets.dataset_tools", exc_type=ImportError)
    convert(episodes, tmp_path / "lerobot", columns=["!episode_metadata/file_path"])
    dataset = module.LeRobotDataset("me/robots", root=tmp_path / "lerobot")
    fewer = tools.delete_episodes(dataset, [0], output_dir=tmp_path / "fewer", repo_id="me/fewer")
    remaining = np.concatenate(ACTIONS[2:])
    np.testing.assert_allclose(fewer.meta.stats["action"]["mean"], remaining.mean(0), rtol=1e-6)
    values = {"observation.gripper": np.ones(1), "is_first": np.ones(1, bool), "action": np.ones(7, np.float32)}
    dataset.add_frame({**values, "observation.images.image": np.zeros((4, 6, 3), np.uint8), "task": "new"})
    dataset.save_episode()
    dataset.finalize()
    recorded = module.LeRobotDataset("me/robots", root=tmp_path / "lerobot")
    assert (recorded.num_episodes, len(recorded), recorded[9]["task"]) == (4, 10, "new")
    assert set(recorded.meta.stats["action"]) >= {"q01", "q99"}


def test_what_lerobot_writes_is_read_as_parquet(tmp_path: Path) -> None:
    """Frames of LeRobot are rows of Parquet files; the folder is not a format of a source."""
    module = pytest.importorskip("lerobot.datasets.lerobot_dataset", exc_type=ImportError)
    image = {"dtype": "image", "shape": (4, 6, 3), "names": ["height", "width", "channels"]}
    features = {"action": {"dtype": "float32", "shape": (2,), "names": ["a", "b"]}, "observation.images.c": image}
    dataset = module.LeRobotDataset.create("me/x", fps=10, features=features, root=tmp_path / "own", use_videos=False)
    for episode, length in enumerate((3, 2)):
        for at in range(length):
            pixels = np.full((4, 6, 3), 10 * episode + at, np.uint8)
            action = np.array([episode, at], np.float32)
            dataset.add_frame({"action": action, "observation.images.c": pixels, "task": "push"})
        dataset.save_episode()
    dataset.finalize()
    tfr.convert(f"{tmp_path}/own/data/*/*.parquet", tmp_path / "a.tfrecord")
    table = tfr.read_table(tmp_path / "a.tfrecord")
    assert table["episode_index"].to_pylist() == [0, 0, 0, 1, 1]
    assert table["action"].to_pylist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]]
    assert decoded(table["observation.images.c"][4].as_py()["bytes"]).getpixel((0, 0)) == (11, 11, 11)


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
def test_lists_of_plain_names_are_steps(tmp_path: Path) -> None:
    states = [np.full((n, 2, 3), n, np.float32) for n in (4, 2)]
    schema = {"observation/state": tfr.sequence(tfr.tensor("float32", (2, 3))), "name": "string"}
    path = tmp_path / "a.tfrecord"
    data = {"observation/state": states, "name": ["a", "b"]}
    tfr.write_tfrecord(data, path, schema=schema, record_type="sequence_example")
    convert_flat(path, tmp_path / "robots", target_format="lerobot", target_options={"fps": 10})
    convert_flat(tmp_path / "robots", tmp_path / "frames.tfrecord", source_format="lerobot")
    frames = tfr.read_arrays(tmp_path / "frames.tfrecord")
    np.testing.assert_array_equal(frames["observation.state"], np.concatenate(states))
    assert frames["episode_index"].tolist() == [0] * 4 + [1] * 2


@pytest.mark.filterwarnings("ignore:no column is named language_instruction")
def test_frames_are_gathered_before_they_are_written_again(tmp_path: Path) -> None:
    """As the error says that frames without episodes cause."""
    path, frames = tmp_path / "a.tfrecord", tmp_path / "frames.tfrecord"
    tfr.write_tfrecord({"steps/x": [[1, 2, 3], [4]]}, path)
    convert_flat(path, tmp_path / "robots", target_format="lerobot", target_options={"fps": 10})
    convert_flat(tmp_path / "robots", frames, source_format="lerobot")
    again, how = tmp_path / "again", {"target_format": "lerobot", "target_options": {"fps": 10}}
    with pytest.raises(
        tfr.errors.FeatureNotFoundError, match=r"gather the frames of each episode by .*implode"
    ) as caught:
        convert_flat(frames, again, **how)
    assert "without timestamp, frame_index, index, task_index; then leave out episode_index" in str(caught.value.hint)
    kept = ["!timestamp", "!frame_index", "!index", "!task_index"]
    episodes = tfr.formats.implode(tfr.dataset(frames, columns=kept), lists="!episode_index")
    tfr.write_tfrecord(episodes, tmp_path / "episodes.tfrecord")
    convert_flat(tmp_path / "episodes.tfrecord", again, columns=["!episode_index"], **how)
    convert_flat(again, tmp_path / "frames-again.tfrecord", source_format="lerobot")
    assert tfr.read_table(tmp_path / "frames-again.tfrecord").equals(tfr.read_table(frames))
