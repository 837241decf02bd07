"""Episodes in HDF5 files, as of robomimic and ALOHA: h5py writes what is read, and reads what is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.apps.file_formats.array_files.hdf5_episodes import EpisodeGroups

h5py = pytest.importorskip("h5py")

LENGTHS = {"demo_0": 3, "demo_1": 5, "demo_2": 1, "demo_10": 4}  # in natural order
READ, WRITE = {"source_options": {"episodes": "data/*"}}, {"target_options": {"episodes": "data/*"}}


def fill(group: Any, length: int, seed: int) -> None:
    """The datasets of an episode of robomimic."""
    rng = np.random.default_rng(seed)
    group["actions"] = rng.standard_normal((length, 7))
    group["rewards"] = rng.standard_normal(length).astype("f4")
    group["dones"] = np.arange(length)
    group["dones"].attrs["unit"] = "steps"
    group["states"] = rng.standard_normal((length, 9)).astype(">f4")
    group["obs/agentview_image"] = rng.integers(0, 256, (length, 6, 5, 3), "uint8")
    group["obs/joint_pos"] = rng.standard_normal((length, 2)).astype("f2")


def robomimic(path: Path) -> Path:
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift"})
        data.attrs["total"] = sum(LENGTHS.values())
        for seed, (name, length) in enumerate(LENGTHS.items()):
            group = data.create_group(name)
            group.attrs["num_samples"] = length
            group.attrs["model_file"] = f"<mujoco {seed}/>" * 20_000  # longer than a message of an object's header
            group.attrs["success"] = bool(seed % 2)
            fill(group, length, seed)
        file["mask/train"] = np.array([b"demo_0", b"demo_10"])
        file["mask/valid"] = np.array(["demo_1"], h5py.string_dtype())
    return path


def content(path: Path) -> dict[str, tuple[dict[str, Any], Any]]:
    """The attributes and values of all groups and datasets."""
    found: dict[str, tuple[dict[str, Any], Any]] = {}

    def add(name: str, item: Any) -> None:
        found[name] = dict(item.attrs), None if isinstance(item, h5py.Group) else item[()]

    with h5py.File(path) as file:
        file.visititems(add)
    return found


def same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray) and first.dtype.kind in "SO":
        return [bytes(x) if isinstance(x, np.bytes_) else x for x in first] == [*second]
    return first is None if second is None else bool(np.array_equal(first, second) and first.dtype == second.dtype)


def test_a_group_is_a_record(tmp_path: Path) -> None:
    target = tmp_path / "demo.tfrecord"
    assert tfr.convert(robomimic(tmp_path / "demo.hdf5"), target, **READ).records == 4
    table = tfr.read_table(target)
    assert table["episode"].to_pylist() == [*LENGTHS]
    assert table["mask/train"].to_pylist() == [True, False, False, True]
    assert table["mask/valid"].to_pylist() == [False, True, False, False]
    assert table["success"].to_pylist() == [False, True, False, True]
    assert json.loads(table["data/env_args"][2].as_py()) == {"env_name": "Lift"}
    assert not {"num_samples", "data/total"} & {*table.column_names}  # they follow from the steps
    arrays = tfr.read_arrays(target, ragged="object")
    with h5py.File(tmp_path / "demo.hdf5") as file:
        for row, name in enumerate(LENGTHS):
            for dataset in ("actions", "rewards", "dones", "states", "obs/agentview_image", "obs/joint_pos"):
                stored = file[f"data/{name}/{dataset}"][:]
                found = arrays[f"steps/{dataset}"][row]
                np.testing.assert_array_equal(found, stored)
                assert found.dtype == stored.dtype.newbyteorder("=")


def test_steps_are_those_of_rlds(tmp_path: Path) -> None:
    """So that they explode, make windows and become LeRobot's."""
    target = tmp_path / "demo.tfrecord"
    tfr.convert(robomimic(tmp_path / "demo.hdf5"), target, **READ, columns=["episode", "steps/*"])
    steps = tfr.explode(target).read_all()
    assert steps.num_rows == sum(LENGTHS.values())
    with h5py.File(tmp_path / "demo.hdf5") as file:
        actions = np.concatenate([file[f"data/{name}/actions"][:] for name in LENGTHS])
    assert steps.schema.field("steps/actions").type.shape == [7]
    found = steps["steps/actions"].combine_chunks().to_numpy_ndarray()
    np.testing.assert_array_equal(found, actions)
    windows = tfr.windows(tfr.dataset(target), length=3)
    assert next(windows.iter_arrays(batch_size=2))["steps/obs/agentview_image"].shape == (2, 3, 6, 5, 3)


def test_records_become_groups_again(tmp_path: Path) -> None:
    robomimic(tmp_path / "demo.hdf5")
    tfr.convert(tmp_path / "demo.hdf5", tmp_path / "demo.tfrecord", **READ, float64="raw")
    for compressed in (False, True):
        again = tmp_path / f"again-{compressed}.hdf5"
        options = {"target_options": {"episodes": "data/*", "compressed": compressed}}
        assert tfr.convert(tmp_path / "demo.tfrecord", again, **options).records == 4
        before, after = content(tmp_path / "demo.hdf5"), content(again)
        assert before.keys() == after.keys()
        for name, (attributes, values) in before.items():
            assert after[name][0] == attributes, name
            big = isinstance(values, np.ndarray) and values.dtype == ">f4"
            assert same(values.astype("<f4") if big else values, after[name][1]), name
        assert again.stat().st_size < 4 * (tmp_path / "demo.hdf5").stat().st_size


def test_a_part_of_the_episodes_has_its_own_total(tmp_path: Path) -> None:
    robomimic(tmp_path / "demo.hdf5")
    tfr.convert(tmp_path / "demo.hdf5", tmp_path / "demo.tfrecord", **READ, filters=[("mask/train", "==", True)])
    tfr.convert(tmp_path / "demo.tfrecord", tmp_path / "train.hdf5", **WRITE)
    found = content(tmp_path / "train.hdf5")
    assert found["data"][0]["total"] == 7
    assert [name for name in found if name.count("/") == 1 and name.startswith("data")] == [
        "data/demo_0",
        "data/demo_10",
    ]
    assert [*found["mask/train"][1]] == [b"demo_0", b"demo_10"]
    assert not len(found["mask/valid"][1])


def aloha(folder: Path, lengths: Sequence[int] = (4, 2)) -> Path:
    """A folder with a file for each episode."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number, length in enumerate(lengths):
        with h5py.File(folder / f"episode_{number}.hdf5", "w") as file:
            file.attrs["sim"] = True
            file["action"] = rng.standard_normal((length, 14)).astype("f4")
            file["observations/qpos"] = rng.standard_normal((length, 14)).astype("f4")
            images = rng.integers(0, 256, (length, 8, 6, 3), "uint8")
            file.create_dataset("observations/images/cam_high", data=images, chunks=(1, 8, 6, 3))
    return folder


@pytest.mark.parametrize("form", ["folder", "glob", "list"])
def test_a_file_is_a_record(tmp_path: Path, form: str) -> None:
    folder = aloha(tmp_path / "aloha")
    files = [folder / "episode_0.hdf5", folder / "episode_1.hdf5"]
    source: Any = {"folder": folder, "glob": folder / "*.hdf5", "list": files}[form]
    tfr.convert(source, tmp_path / "a.tfrecord", source_options={"episodes": "/"})
    table = tfr.read_table(tmp_path / "a.tfrecord")
    assert table.select(["episode", "sim"]).to_pylist() == [
        {"episode": "episode_0", "sim": True},
        {"episode": "episode_1", "sim": True},
    ]
    arrays = tfr.read_arrays(tmp_path / "a.tfrecord", ragged="object")
    for row, path in enumerate(files):
        with h5py.File(path) as file:
            name = "observations/images/cam_high"
            np.testing.assert_array_equal(arrays[f"steps/{name}"][row], file[name][:])


@pytest.mark.plugins("vision")
def test_episodes_become_lerobot(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    tfr.convert(aloha(tmp_path / "aloha"), tmp_path / "a.tfrecord", source_options={"episodes": "/"})
    with pytest.warns(tfr.errors.SchemaWarning, match="tasks of LeRobot are empty"):
        tfr.convert(
            tmp_path / "a.tfrecord",
            tmp_path / "lerobot",
            columns=["steps/action", "steps/observations/qpos"],
            target_format="lerobot",
            target_options={"fps": 50},
        )
    frames = pq.read_table(tmp_path / "lerobot" / "data")
    assert frames["episode_index"].to_pylist() == [0, 0, 0, 0, 1, 1]
    assert frames["action"].type == pa.list_(pa.float32(), 14)


def test_several_files_are_refused_without_episodes(tmp_path: Path) -> None:
    folder = aloha(tmp_path / "aloha")
    for source in (folder, folder / "*.hdf5", [folder / "episode_0.hdf5", folder / "episode_1.hdf5"]):
        with pytest.raises(ValueError, match=r"(2 files|a folder), .*'episodes': '/'") as caught:
            tfr.convert(source, tmp_path / "a.tfrecord")
        assert "--episodes /" in caught.value.message_cli  # type: ignore[attr-defined]


def test_the_error_for_lengths_that_differ_names_the_episodes(tmp_path: Path) -> None:
    with pytest.raises(tfr.errors.EncodeError, match=r"rows, but .*\{'episodes': 'data/\*'\} makes a record of each"):
        tfr.convert(robomimic(tmp_path / "demo.hdf5"), tmp_path / "a.tfrecord")


def test_lists_text_and_bytes(tmp_path: Path) -> None:
    table = pa.table(
        {
            "episode": ["a", "b"],
            "steps/word": [["x", "ü"], ["y"]],
            "steps/jpeg": [[b"\0a\0", b""], [b"\xff"]],
            "steps/box": pa.array([[[1, 2], []], [[3]]], pa.list_(pa.list_(pa.int64()))),
            "blob": [b"\0\0", b"z\0"],
            "note": ["ä", None],
            "count": [3, None],
            "sizes": [[1, 2, 3], [4]],
        }
    )
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.hdf5", target_options={"episodes": "*"})
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert file["a/word"].asstr()[:].tolist() == ["x", "ü"]
        assert dict(file["a"].attrs) == {"note": "ä", "count": 3, "num_samples": 2}
        assert bytes(file["a/blob"][()]) == b"\0\0"
        assert file.attrs["total"] == 3
    tfr.convert(tmp_path / "a.hdf5", tmp_path / "b.tfrecord", source_options={"episodes": "*"})
    again = tfr.read_table(tmp_path / "b.tfrecord")
    assert again.select(table.column_names).to_pylist() == table.to_pylist()


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.sampled_from(["?", "i1", ">i2", "i8", "u1", "f2", "<f4", ">f8", "c8"]),
    st.sampled_from([(), (2,), (2, 3), (1, 2, 2)]),
)
@settings(max_examples=25)
def test_numbers_of_steps_round_trip(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], dtype: str, shape: tuple[int, ...]
) -> None:
    folder = tmp_path_factory.mktemp("h5")
    values = [(np.arange(n * int(np.prod(shape))) % 5).reshape(n, *shape).astype(dtype) for n in lengths]
    with h5py.File(folder / "a.h5", "w") as file:
        for number, array in enumerate(values):
            file[f"data/demo_{number}/x"] = array
            file[f"data/demo_{number}/time"] = np.arange(len(array))
    tfr.convert(folder / "a.h5", folder / "a.tfrecord", **READ, float64="raw")
    tfr.convert(folder / "a.tfrecord", folder / "b.h5", **WRITE)
    with h5py.File(folder / "b.h5") as file:
        assert len(file["data"]) == len(lengths)
        for number, array in enumerate(values):
            expected = array.astype(array.dtype.newbyteorder("<"))
            found = file[f"data/demo_{number}/x"]
            assert found.shape == expected.shape
            np.testing.assert_array_equal(found[:], expected)


def test_columns_are_those_of_all_episodes(tmp_path: Path) -> None:
    """A dataset whose length equals the number of steps in one episode only is not one of steps."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number, length in enumerate((3, 2)):
            group = file.create_group(f"demo_{number}")
            group["x"], group["y"], group["goal"] = np.arange(length), np.arange(length), np.zeros(3)
            group["name"] = f"é{number}"
        file["demo_1"].attrs["only"] = 1
        file["other"] = np.arange(9)
    with pytest.warns(tfr.errors.SchemaWarning, match="left out columns other"):
        tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", source_options={"episodes": "demo_*"})
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == [
        {
            "episode": "demo_0",
            "only": None,
            "goal": [0, 0, 0],
            "name": "é0",
            "steps/x": [0, 1, 2],
            "steps/y": [0, 1, 2],
        },
        {"episode": "demo_1", "only": 1, "goal": [0, 0, 0], "name": "é1", "steps/x": [0, 1], "steps/y": [0, 1]},
    ]


def test_conflicts_are_errors_unless_the_column_is_excluded(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["data/a/x"], file["data/b/x"] = np.arange(2), np.arange(2)
        file["data/a/dtype"], file["data/b/dtype"] = np.arange(2), np.arange(2.0)
        file["data/a/axes"], file["data/b/axes"] = np.arange(2), np.zeros((2, 2))
        file["data/a/absent"] = np.arange(2)
        file["data/a/fields"] = np.zeros(2, [("p", "i4")])
        file["data/b/fields"] = np.zeros(2, [("p", "i4")])
        file["data/a/link"] = h5py.ExternalLink("other.h5", "x")
        file["data/b/link"] = h5py.ExternalLink("other.h5", "x")
    cases = {
        "dtype": "it is double of 1 dimension in this episode, and int64 of 1 dimension",
        "axes": "of 2 dimensions in this episode",
        "absent": "1 of 2 episodes lack it",
        "fields": "compound type",
        "link": "a link to the file 'other.h5'",
    }
    for name, message in cases.items():
        with pytest.raises(tfr.errors.TFRecordError, match=message):
            tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", **READ, columns=["episode", f"steps/{name}"])
    tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", **READ, columns=["steps/x"])
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"steps/x": [[0, 1], [0, 1]]}


def test_refusals(tmp_path: Path) -> None:
    robomimic(tmp_path / "demo.hdf5")
    with pytest.raises(tfr.errors.DecodeError, match=r"no group 'episodes/\*' has datasets"):
        tfr.convert(tmp_path / "demo.hdf5", tmp_path / "a.tfrecord", source_options={"episodes": "episodes/*"})
    for text in ("", "data//x", "../*"):
        with pytest.raises(ValueError, match="expected the path of groups"):
            tfr.convert(tmp_path / "demo.hdf5", tmp_path / "a.tfrecord", source_options={"episodes": text})
    options = {"episodes": "data/*", "record_dim": "x"}
    with pytest.raises(TypeError, match="cannot be used together"):
        tfr.convert(tmp_path / "demo.hdf5", tmp_path / "a.tfrecord", source_options=options)
    assert not (tmp_path / "a.tfrecord").exists()

    def write(data: dict[str, Any], episodes: str = "data/*") -> None:
        tfr.write_tfrecord(data, tmp_path / "a.tfrecord", mode="overwrite")
        options = {"target_options": {"episodes": episodes}, "mode": "overwrite"}
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.hdf5", **options)

    for text in ("/", "data", "data/*/obs"):
        with pytest.raises(ValueError, match="the episodes of a file need names"):
            write({"steps/x": [[1]]}, text)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"episode": ["a", "a"], "steps/x": [[1], [2]]}, "two episodes have it"),
        ({"episode": ["a/b"], "steps/x": [[1]]}, "no group 'data/\\*' has it"),
        ({"episode": [".."], "steps/x": [[1]]}, "no group 'data/\\*' has it"),
        ({"steps/x": [1]}, "a single value, and the columns of steps"),
        ({"steps/x": [[1, 2]], "steps/y": [[1]]}, "it has 1 steps here, and 'steps/x' has 2"),
        ({"steps/x": [[1], [2]], "data/env": ["a", "b"]}, "of which this record has another value"),
        ({"steps/x": [[1]], "x": [[2, 3]]}, "two columns would become this dataset"),
        ({"steps/x": [[1]], "note": ["a\0b"]}, "cannot have this value"),
    ]
    for data, message in cases:
        with pytest.raises(tfr.errors.EncodeError, match=message):
            write(data)
    assert not (tmp_path / "a.hdf5").exists()
    write({"steps/x": [[1], [2]]})
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert [*file["data"]] == ["demo_0", "demo_1"]


def test_names_of_two_files_must_differ(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        robomimic(tmp_path / folder / "demo.hdf5")
    sources = [tmp_path / "a" / "demo.hdf5", tmp_path / "b" / "demo.hdf5"]
    with pytest.raises(tfr.errors.EncodeError, match="two episodes have the name 'demo_0'"):
        tfr.convert(sources, tmp_path / "a.tfrecord", **READ)


def test_damaged_files(tmp_path: Path) -> None:
    path = robomimic(tmp_path / "demo.hdf5")
    data = path.read_bytes()
    for broken in (b"", data[: len(data) // 2], b"x" * 5000):
        path.write_bytes(broken)
        with pytest.raises(tfr.errors.DecodeError):
            tfr.convert(path, tmp_path / "a.tfrecord", **READ)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("data/*", "data/demo_0/obs/x", ("data/demo_0", "obs/x")),
        ("data/*", "data/x", None),
        ("/", "obs/x", ("", "obs/x")),
        ("*", "mask/train", ("mask", "train")),
        ("a/*/run_*", "a/b/run_1/x", ("a/b/run_1", "x")),
        ("a/*/run_*", "a/b/walk/x", None),
    ],
)
def test_groups_of_datasets(pattern: str, name: str, expected: tuple[str, str] | None) -> None:
    assert EpisodeGroups.parse(pattern).split(name) == expected
