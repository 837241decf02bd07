"""Episodes of an RLDS dataset that TFDS wrote: all steps, by tfrecord_io as a stream and by TFDS in Python.

``python -m benchmarks.special.episodes``, in an environment with tensorflow-cpu and tensorflow-datasets (that of
``make conformance``). TFDS writes 1,000 episodes with images, states, actions and instructions. Each way counts the
steps, adds up the rewards and the bytes of the encoded images. The exit code is 1 if TFDS is less than `LEAST` times as
slow, or the stream takes more than `MOST_MB`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.compute as pc

import tfrecord_io as tfr
from benchmarks.memory import peak

EPISODES, STEPS, SIDE = 1000, 100, 64
LEAST, MOST_MB = 5.0, 256
Totals = tuple[int, float, int]
IMAGE = "steps/observation/image"


def _write(folder: str) -> Any:
    """The builder of the dataset, written by TFDS."""
    import tensorflow_datasets as tfds
    from etils import epath

    f = tfds.features
    observation = {"image": f.Image(shape=(SIDE, SIDE, 3)), "state": f.Tensor(shape=(7,), dtype=np.float32)}
    step = {
        "action": f.Tensor(shape=(7,), dtype=np.float32),
        "is_first": np.bool_,
        "language_instruction": f.Text(),
        "observation": observation,
        "reward": np.float32,
    }
    features = f.FeaturesDict({"steps": f.Dataset(step), "episode_metadata": {"file_path": f.Text()}})

    class Robots(tfds.core.GeneratorBasedBuilder):  # type: ignore[misc]  # an optional library
        name = "robots"
        VERSION = tfds.core.Version("1.0.0")
        pkg_dir_path = epath.Path(folder)

        def _info(self) -> Any:
            return self.dataset_info_from_configs(features=features)

        def _split_generators(self, dl_manager: Any) -> Any:
            return {"train": self._generate_examples()}

        def _generate_examples(self) -> Iterator[Any]:
            rng = np.random.default_rng(0)
            frames = rng.integers(0, 256, (STEPS, SIDE, SIDE, 3), dtype=np.uint8)
            for i in range(EPISODES):
                steps = [
                    {
                        "action": rng.standard_normal(7, np.float32),
                        "is_first": k == 0,
                        "language_instruction": "pick up the cube",
                        "observation": {"image": frames[k], "state": rng.standard_normal(7, np.float32)},
                        "reward": np.float32(k == STEPS - 1),
                    }
                    for k in range(STEPS)
                ]
                yield str(i), {"steps": steps, "episode_metadata": {"file_path": f"{i}.hdf5"}}

    builder = Robots(data_dir=folder)
    builder.download_and_prepare()
    return builder


def _by_tfds(builder: Any) -> Totals:
    import tensorflow_datasets as tfds

    skipped = {"steps": {"observation": {"image": tfds.decode.SkipDecoding()}}}
    config = tfds.ReadConfig(interleave_cycle_length=1)
    count, reward, size = 0, 0.0, 0
    for episode in tfds.as_numpy(builder.as_dataset(split="train", decoders=skipped, read_config=config)):
        for step in episode["steps"]:
            count, reward = count + 1, reward + float(step["reward"])
            size += len(step["observation"]["image"])
    return count, reward, size


def _by_stream(path: Path, most: int | None = None) -> Totals:
    count, reward, size = 0, 0.0, 0
    with tfr.open_reader(tfr.dataset(path, split="train"), limit=most, batch_bytes=16 << 20) as episodes:
        for batch in tfr.explode(episodes):
            count, reward = count + len(batch), reward + pc.sum(batch["steps/reward"]).as_py()
            size += pc.sum(pc.binary_length(batch[IMAGE])).as_py()
    return count, reward, size


def _read(path: str) -> None:
    """Print how long the stream takes, what it found, and by how many MB this process grew for it."""
    _by_stream(Path(path), most=1)  # what is imported when it is first used
    grown, totals = peak(lambda: _by_stream(Path(path)))
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        _by_stream(Path(path))
        best = min(best, time.perf_counter() - start)
    print(json.dumps([best, totals, grown / 1e6]))


def main(arguments: Sequence[str]) -> int:
    """Print the results; 1 if a limit is exceeded."""
    if arguments:
        _read(arguments[0])
        return 0
    with TemporaryDirectory() as folder:
        builder = _write(folder)
        path = Path(str(builder.data_dir))
        program = [sys.executable, "-m", "benchmarks.special.episodes", str(path)]
        done = subprocess.run(program, check=True, capture_output=True, text=True)
        ours, found, grown = json.loads(done.stdout)
        start = time.perf_counter()
        expected = _by_tfds(builder)
        theirs = time.perf_counter() - start
        size = sum(file.stat().st_size for file in path.iterdir()) / 1e6
    assert tuple(found) == expected, (found, expected)
    print(f"{EPISODES:,} episodes, {found[0]:,} steps, {size:,.0f} MB")
    print(f"tfrecord_io {ours:.2f} s, tfds {theirs:.2f} s: {theirs / ours:.1f} times")
    print(f"the stream took {grown:.0f} MB")
    return int(theirs < LEAST * ours or grown > MOST_MB)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
