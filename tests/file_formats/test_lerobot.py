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

LENGTHS = [3, 0, 2, 4]
ACTIONS = [np.arange(n * 7, dtype=np.float32).reshape(n, 7) + n for n in LENGTHS]


def png(value: int) -> bytes:
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.new("RGB", (6, 4), (value, 0, 0)).save(file, "PNG")
    return file.getvalue()


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
    tfr.write_tfds(table, path, prefix="steps", images=["steps/observation/image"], float64="round")
    return path


def convert(source: Path, target: Path, **keywords: Any) -> Any:
    with pytest.warns(tfr.SchemaWarning, match="1 episode without steps"):
        return tfr.convert(source, target, split="train", dst_format="lerobot", fps=10, **keywords)


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


def test_files_end_with_episodes(episodes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("tfrecord_io.file_formats.lerobot")
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


def test_refusals(episodes: Path, tmp_path: Path) -> None:
    target = tmp_path / "lerobot"
    with pytest.raises(TypeError, match="needs fps="):
        tfr.convert(episodes, target, split="train", dst_format="lerobot")
    with pytest.raises(tfr.FeatureNotFoundError, match="no column of text has the tasks"):
        tfr.convert(episodes, target, split="train", dst_format="lerobot", fps=10, task="goal")
    with pytest.raises(tfr.EncodeError, match="no episode with steps"):
        tfr.convert(episodes, target, split="train[1:2]", dst_format="lerobot", fps=10)
    assert not target.exists()
    ragged = tmp_path / "ragged" / "1.0.0"
    tfr.write_tfds({"steps/x": [[[1], [2, 3]]]}, ragged, prefix="steps")
    with pytest.raises(tfr.SchemaError, match="a list of numbers of one length"):
        tfr.convert(ragged, target, split="train", dst_format="lerobot", fps=10)
    target.mkdir()
    (target / "a").write_text("")
    with pytest.raises(FileExistsError):
        tfr.convert(episodes, target, split="train", dst_format="lerobot", fps=10)


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
