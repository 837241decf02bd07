"""The files of the workloads, written by TensorFlow, plain and compressed with gzip: once, to ``bench-data/``."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.workloads import DATA, PLAIN, VERSION, WORKLOADS, Variant, Workload, kind_of, rows_of

RECORDS_OF_A_FILE = 10


def write(workload: Workload, path: Path) -> None:
    """Write a workload with TensorFlow: one tf.train.Example per row, through TFRecordWriter."""
    import tensorflow as tf

    table = workload.table(workload.rows)
    kinds = {field.name: f"{kind_of(field.type)}_list" for field in table.schema}
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows_of(table):
            example = tf.train.Example()
            feature = example.features.feature
            for name, values in row.items():
                getattr(feature[name], kinds[name]).value.extend(values)
            writer.write(example.SerializeToString(deterministic=not workload.own_order))


def compress(workload: Workload, path: Path) -> None:
    """Write the records of the workload's plain file again, compressed by TFRecordWriter."""
    import tensorflow as tf

    plain = WORKLOADS[workload.name.removesuffix(".gz")]
    ensure([plain.name])
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(workload.compression)) as writer:
        for record in tf.data.TFRecordDataset(str(plain.path)).as_numpy_iterator():
            writer.write(record)


def ensure(names: list[str]) -> None:
    """Write the files that do not exist yet."""
    for name in names:
        workload = WORKLOADS[name]
        make(workload.path, lambda path, w=workload: (compress if w.compression else write)(w, path))


def make(path: Path, write_to: Callable[[Path], None]) -> None:
    """Write a file or folder that does not exist yet, under another name until it is complete."""
    if path.exists():
        return
    path.parent.mkdir(exist_ok=True, parents=True)
    begin = time.perf_counter()
    partial = path.with_name(f"{path.name}.partial")
    write_to(partial)
    os.replace(partial, path)
    print(f"wrote {path.name} in {time.perf_counter() - begin:.0f} s", file=sys.stderr)


def records(path: Path, count: int) -> list[bytes]:
    """The first records of a file, with their frames."""
    data, at, found = path.read_bytes(), 0, []
    while len(found) < count and at < len(data):
        end = at + 16 + int.from_bytes(data[at : at + 8], "little")
        found.append(data[at:end])
        at = end
    return found


def repeated(rows: int) -> Path:
    """A file of the tutorial's records, repeated until there are `rows`."""
    path = DATA / f"repeated{Variant.current().suffix}-v{VERSION}" / f"{rows}.tfrecord"
    tutorial = WORKLOADS["tutorial"]
    if path.exists():
        return path
    ensure([tutorial.name])

    def write_to(partial: Path) -> None:
        data, whole = tutorial.path.read_bytes(), rows // tutorial.rows
        with partial.open("wb") as file:
            for _ in range(whole):
                file.write(data)
            file.writelines(records(tutorial.path, rows - whole * tutorial.rows))

    make(path, write_to)
    return path


def small_files(count: int) -> Path:
    """A folder of `count` files with ten of the tutorial's records each."""
    folder = DATA / f"files{Variant.current().suffix}-v{VERSION}-{count}"
    tutorial = WORKLOADS["tutorial"]
    if folder.exists():
        return folder
    ensure([tutorial.name])

    def write_to(partial: Path) -> None:
        partial.mkdir(exist_ok=True)
        frames = records(tutorial.path, count * RECORDS_OF_A_FILE)
        for i in range(count):
            frame = b"".join(frames[(i * RECORDS_OF_A_FILE + j) % len(frames)] for j in range(RECORDS_OF_A_FILE))
            (partial / f"part-{i:05}.tfrecord").write_bytes(frame)

    make(folder, write_to)
    return folder


def remove_files() -> None:
    """Remove the files of the current variant."""
    for path in DATA.glob(f"*{Variant.current().suffix}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    ensure(sys.argv[1:] or list(PLAIN))
