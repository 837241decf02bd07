"""Videos of LeRobot datasets, written and read; PyAV and the layout's own tables are the oracle."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from tfrecord_io.columns.arrow.raw_images import RawImages
from tfrecord_io.plugins.vision import lerobot

av = pytest.importorskip("av")
image = pytest.importorskip("PIL.Image")

LENGTHS = [7, 4, 5]
FPS = 10
CAMERA = "observation.images.cam"

pytestmark = pytest.mark.filterwarnings("ignore:no column is named language_instruction")


def pictures(length: int, episode: int) -> np.ndarray:
    """Frames that differ, and are smooth, so that a codec keeps them nearly."""
    rows, columns = np.mgrid[:48, :64]
    return np.stack(
        [
            np.stack([rows * 4, columns * 3, np.full_like(rows, 60 * episode + 8 * step)], axis=2).astype("uint8")
            for step in range(length)
        ]
    )


FRAMES = [pictures(length, episode) for episode, length in enumerate(LENGTHS)]


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    table = pa.table(
        {
            "steps/observation/cam": [[png(frame) for frame in frames] for frames in FRAMES],
            "steps/action": pa.array(
                [[[float(i)] * 2 for i in range(n)] for n in LENGTHS], pa.list_(pa.list_(pa.float32(), 2))
            ),
        }
    )
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    options = {"fps": FPS, "use_videos": True}
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "lerobot", target_format="lerobot", target_options=options)
    return tmp_path / "lerobot"


def decoded(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def test_images_become_videos(dataset: Path) -> None:
    video = dataset / "videos" / CAMERA / "chunk-000" / "file-000.mp4"
    found = decoded(video)
    assert len(found) == sum(LENGTHS)
    assert np.abs(np.stack(found).astype(int) - np.concatenate(FRAMES)).mean() < 6
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        assert (stream.average_rate, stream.codec_context.pix_fmt) == (FPS, "yuv420p")
        assert stream.codec_context.codec.canonical_name == "av1"
    assert CAMERA not in pq.read_table(dataset / "data").column_names
    info = json.loads((dataset / "meta" / "info.json").read_text())
    feature = info["features"][CAMERA]
    assert (feature["dtype"], feature["shape"]) == ("video", [48, 64, 3])
    assert feature["info"]["video.codec"] == "av1"
    assert info["video_path"].format(video_key=CAMERA, chunk_index=0, file_index=0) == str(video.relative_to(dataset))
    episodes = pq.read_table(dataset / "meta" / "episodes").to_pylist()
    prefix = f"videos/{CAMERA}/"
    spans = [(row[f"{prefix}from_timestamp"], row[f"{prefix}to_timestamp"]) for row in episodes]
    np.testing.assert_allclose(spans, [(0, 0.7), (0.7, 1.1), (1.1, 1.6)])
    assert {row[f"{prefix}file_index"] for row in episodes} == {0}
    assert np.shape(episodes[0][f"stats/{CAMERA}/mean"]) == (3, 1, 1)


@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_become_frames_of_videos_without_files_of_images(
    channels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(RawImages, "png")
    frames = np.concatenate(FRAMES)[..., :channels].reshape(2, -1, 48, 64, channels)
    cells = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(frames))
    tfr.write_tfrecord(pa.table({"steps/observation/cam": cells}), tmp_path / "a.tfrecord")
    options = {"fps": FPS, "use_videos": True}
    with pytest.warns(tfr.errors.SchemaWarning, match="tasks of LeRobot are empty"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "made", target_format="lerobot", target_options=options)
    found = np.stack(decoded(tmp_path / "made" / "videos" / CAMERA / "chunk-000" / "file-000.mp4")).astype(int)
    expected = np.broadcast_to(frames.reshape(-1, 48, 64, channels), (sum(LENGTHS), 48, 64, 3))
    assert np.abs(found - expected).mean() < 6
    info = json.loads((tmp_path / "made" / "meta" / "info.json").read_text())
    assert info["features"][CAMERA]["shape"] == [48, 64, 3]


def test_a_large_video_ends_with_an_episode(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lerobot, "_VIDEO_MB", -1)  # any size is too large
    options = {"fps": FPS, "use_videos": True}
    target = tmp_path / "many"
    tfr.convert(tmp_path / "a.tfrecord", target, target_format="lerobot", target_options=options)
    files = sorted((target / "videos" / CAMERA / "chunk-000").iterdir())
    assert [len(decoded(file)) for file in files] == LENGTHS
    read = tfr.convert(target, tmp_path / "b.tfrecord", source_format="lerobot")
    assert read.records == sum(LENGTHS)
    assert frames_of(tmp_path / "b.tfrecord") == [frame.tobytes() for file in files for frame in decoded(file)]


def frames_of(path: Path) -> list[bytes]:
    """The pixels of the images of each record."""
    images = tfr.read_table(path)[CAMERA].to_pylist()
    return [np.asarray(image.open(io.BytesIO(content))).tobytes() for content in images]


def test_frames_are_read_with_those_of_videos(dataset: Path, tmp_path: Path) -> None:
    assert tfr.convert(dataset, tmp_path / "b.tfrecord", source_format="lerobot").records == sum(LENGTHS)
    expected = decoded(dataset / "videos" / CAMERA / "chunk-000" / "file-000.mp4")
    assert frames_of(tmp_path / "b.tfrecord") == [frame.tobytes() for frame in expected]
    table = tfr.read_table(tmp_path / "b.tfrecord")
    assert table["episode_index"].to_pylist() == [0] * 7 + [1] * 4 + [2] * 5
    options: dict[str, Any] = {"source_format": "lerobot", "filters": [("episode_index", "==", 1)]}
    tfr.convert(dataset, tmp_path / "c.tfrecord", **options, source_options={"video_frames": "jpeg"})
    assert tfr.read_table(tmp_path / "c.tfrecord")[CAMERA][0].as_py()[:3] == b"\xff\xd8\xff"
    assert len(frames_of(tmp_path / "c.tfrecord")) == 4


def test_videos_that_are_not_needed_are_not_opened(dataset: Path, tmp_path: Path) -> None:
    shutil.rmtree(dataset / "videos")
    columns = ["action", "frame_index"]
    tfr.convert(dataset, tmp_path / "b.tfrecord", source_format="lerobot", columns=columns)
    assert tfr.read_table(tmp_path / "b.tfrecord").column_names == columns
    with pytest.raises(FileNotFoundError):
        tfr.convert(dataset, tmp_path / "c.tfrecord", source_format="lerobot")


def test_without_the_format_a_warning_names_it(dataset: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="left out: 'videos'; source_format='lerobot' reads them"):
        tfr.convert(dataset, tmp_path / "b.tfrecord")


def test_datasets_of_version_2(dataset: Path, tmp_path: Path) -> None:
    """A video for each episode, which all begin at 0, and no meta/episodes."""
    old = tmp_path / "old"
    (old / "meta").mkdir(parents=True)
    (old / "data" / "chunk-000").mkdir(parents=True)
    info = json.loads((dataset / "meta" / "info.json").read_text())
    info |= {
        "codebase_version": "v2.1",
        "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    }
    (old / "meta" / "info.json").write_text(json.dumps(info))
    frames = pq.read_table(dataset / "data")
    expected = []
    for episode, pixels in enumerate(FRAMES):
        part = frames.filter(pa.compute.equal(frames["episode_index"], episode))
        pq.write_table(part, old / "data" / "chunk-000" / f"episode_{episode:06d}.parquet")
        path = old / "videos" / "chunk-000" / CAMERA / f"episode_{episode:06d}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(path), "w") as container:  # by another codec, with frames that depend on others
            stream = container.add_stream("mpeg4", rate=FPS)
            stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
            for picture in pixels:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
        expected += decoded(path)
    tfr.convert(old, tmp_path / "b.tfrecord", source_format="lerobot")
    assert frames_of(tmp_path / "b.tfrecord") == [frame.tobytes() for frame in expected]


def test_damage(dataset: Path, tmp_path: Path) -> None:
    video = dataset / "videos" / CAMERA / "chunk-000" / "file-000.mp4"
    whole = video.read_bytes()

    def fails(reason: str) -> None:
        with pytest.raises(tfr.errors.DecodeError, match=reason):
            tfr.convert(dataset, tmp_path / "b.tfrecord", source_format="lerobot")
        assert not (tmp_path / "b.tfrecord").exists()

    for content in (b"", b"x" * 1000, whole[: len(whole) // 3]):
        video.write_bytes(content)
        fails("video")
    with av.open(str(video), "w") as container:
        stream = container.add_stream("mpeg4", rate=FPS)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        for picture in FRAMES[0]:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    fails(r"it has no frame at 0.7000 s: the closest one is at 0.6000 s")
    video.write_bytes(whole)
    path = dataset / "meta" / "info.json"
    info = json.loads(path.read_text())
    for video_path in ("../{video_key}.mp4", "/etc/{video_key}", "{video_key.__class__}/../x", "videos/{other}.mp4"):
        path.write_text(json.dumps(info | {"video_path": video_path}))
        fails("of a video cannot be used|other fields")
    for content in ("[]", "{}", "x"):
        path.write_text(content)
        fails("not the description of a LeRobot dataset")


def test_frames_that_are_no_video(tmp_path: Path) -> None:
    def convert(pixels: np.ndarray) -> None:
        tfr.write_tfrecord({"steps/cam": [[png(pixels)]]}, tmp_path / "a.tfrecord", mode="overwrite")
        options = {"fps": FPS, "use_videos": True}
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "lerobot", target_format="lerobot", target_options=options)

    with pytest.raises(tfr.errors.EncodeError, match="even height and width, and the frames are 47×64"):
        convert(np.zeros((47, 64, 3), "uint8"))
    with pytest.raises(tfr.errors.EncodeError, match="4 channels; a video has grey or RGB"):
        convert(np.zeros((64, 64, 4), "uint8"))
    assert not (tmp_path / "lerobot").exists()
    convert(np.full((64, 64), 77, "uint8"))
    video = tmp_path / "lerobot" / "videos" / "cam" / "chunk-000" / "file-000.mp4"
    assert np.abs(decoded(video)[0].astype(int) - 77).max() < 4
