"""What calls cost on a dataset of many shards more than on one of few: ``make bench BENCH_ARGS=--scale``.

The datasets are synthetic: shards of one row, links to a few files, in folders ``day=N`` of ten each, under a manifest
as docs/format.md describes it. Each call is made by a fresh process, after the imports, and its CPU time counts; the
best of some is taken. The exit code is 1 if the text of a pickled dataset has more than 10 kB.

``SCALE_SHARDS`` is the largest number of shards, 100,000 by default. With ``SCALE_APPENDS=100000``, so many shards of
one row are added to random folders, by the functions that publish an append, before the calls; with ``SCALE_COMPACT=1``
the dataset is compacted then, which joins the shards of each folder.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import report
from tfrecord_io.store.paths.manifest_files import SIZES

PACKAGES = ("tfrecord_io", "numpy", "pyarrow")
SHARDS = (100, 10_000, 100_000, 1_000_000)
PER_FOLDER, MOST_LINKS = 10, 30_000
MOST_PICKLED = 10_000  # bytes
MOST_RUNS = 5  # each of which replaces, and removes, a folder of ten
CALLS = {
    "dataset(path)": "tfr.dataset(path)",
    "count(path)": "tfr.count(path)",
    'read_table(path, filters="day = 7")': 'tfr.read_table(path, filters="day = 7")',
    "first batch of a worker of ten files": "next(iter(tfr.iter_arrays(path, batch_size=4, worker=(7, shards // 10))))",
    "pickle.dumps(dataset)": "size.append(len(pickle.dumps(opened)))",
    "dataset.pieces(1000)": "opened.pieces(1000)",
    "append of one row": 'tfr.write_tfrecord(row(3), path, partition_by="day", mode="append")',
    "overwrite_partitions of one": 'tfr.write_tfrecord(row(n), path, partition_by="day", mode="overwrite_partitions")',
    "delete of one folder": 'tfr.delete(path, filters=f"day = {n + 5}")',
}
PROGRAM = """
import json, pickle, resource, sys, time
import numpy, pyarrow.compute, pyarrow.dataset
import tfrecord_io as tfr
path, call, begun, size = sys.argv[1], sys.argv[2], sys.argv[3] == "opened", []
shards, n = map(int, sys.argv[4:])
row = lambda day: {"x": [1], "day": [day]}
opened = tfr.dataset(path) if begun else None
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
peak = lambda: next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
memory, begin = peak(), time.process_time()
exec(call)
print(json.dumps([time.process_time() - begin, (peak() - memory) / 1024, *size]))
"""


def make(path: Path, shards: int) -> None:
    """Make a dataset of so many shards of one row."""
    import tfrecord_io as tfr

    folders, seed = shards // PER_FOLDER, path.with_name(f"{path.name}-seed")
    tfr.write_tfrecord({"x": [0], "day": [0]}, f"{seed}/", partition_by="day")
    head = json.loads((seed / "_MANIFEST.json").read_text())
    (entry,) = head.pop("files")
    content, linked, links, lines = (seed / entry["path"]).read_bytes(), "", MOST_LINKS, []
    for day in range(folders):
        (path / f"day={day}").mkdir(parents=True)
        for number in range(PER_FOLDER):
            name = f"day={day}/part-{number:05d}-{head['id']}.tfrecord"
            if links == MOST_LINKS:
                linked, links = f"{path}/{name}", 0
                Path(linked).write_bytes(content)
            else:
                os.link(linked, f"{path}/{name}")
            links += 1
            lines.append(f"  {json.dumps({**entry, 'path': name})}")
    head |= {"records": shards, "bytes": shards * len(content)}
    text = f'{json.dumps(head)[:-1]}, "files": [\n' + ",\n".join(lines) + "\n]}\n"
    (path / "_MANIFEST.json").write_text(text)
    last = {"x": [0], "day": [folders - 1]}
    tfr.write_tfrecord(last, f"{path}/", partition_by="day", mode="append")  # from now on, the manifest has parts


def scatter(path: Path, appends: int) -> None:
    """Append shards to random folders: 65 are published at a time, and each is a commit of the history."""
    from tfrecord_io.base import StorageOptions
    from tfrecord_io.store.filesystem.locate import Location
    from tfrecord_io.store.paths.file_names import FileName
    from tfrecord_io.store.paths.history import History
    from tfrecord_io.store.paths.manifest_files import all_files
    from tfrecord_io.store.write.publication import place_of

    place = place_of(*Location.of(f"{path}/", StorageOptions.DEFAULT), FileName.DIRECTORY_STEM)
    rng = random.Random(0)
    with place.alone():
        manifest = place.read()
        assert manifest is not None
        model, folders, added, linked = manifest.files[0], manifest.records // PER_FOLDER, [], ""
        for number in range(appends):
            shard = f"part-{10**6 + number:05d}-{rng.getrandbits(64):016x}.tfrecord"
            added.append(model._replace(path=f"day={rng.randrange(folders)}/{shard}"))
            name = f"{path}/{added[-1].path}"
            if number % MOST_LINKS:
                os.link(linked, name)
            else:
                Path(linked := name).write_bytes((path / model.path).read_bytes())
            if len(added) <= SIZES.tail and number < appends - 1:
                continue
            history = manifest.history or History()
            for _ in added:
                history = history.append(manifest.records, model.records, manifest.line)
            grown = manifest._replace(files=all_files(manifest.files).then(tuple(added)), history=history)
            _, manifest = place.update(partial(_return, grown), lambda _: True)
            added = []


def _return(value: Any, _: Any) -> Any:
    return value


def cost(path: Path, call: str, shards: int, repeat: int) -> list[float]:
    """CPU seconds and MB of memory of a call, and the bytes of what it pickles: the best of several processes.

    Each has a number of its own, as a folder is removed once.
    """
    command = [sys.executable, "-c", PROGRAM, str(path), call, "opened" if "opened" in call else "", str(shards)]
    commands = ([*command, str(number)] for number in range(repeat))
    runs = (subprocess.run(each, capture_output=True, text=True, check=True).stdout for each in commands)
    found: list[list[float]] = list(map(json.loads, runs))
    return min(found)


def measure(repeat: int) -> tuple[str, bool]:
    """The table, and whether a pickled dataset is small at all sizes."""
    import tfrecord_io as tfr

    most = int(os.environ.get("SCALE_SHARDS", SHARDS[-2]))
    sizes = [shards for shards in SHARDS if shards <= most]
    costs: dict[int, dict[str, Any]] = {}
    for shards in sizes:
        with TemporaryDirectory() as folder:
            make(Path(folder) / "data", shards)
            scatter(Path(folder) / "data", int(os.environ.get("SCALE_APPENDS", "0")))
            if os.environ.get("SCALE_COMPACT") == "1":
                tfr.compact(f"{folder}/data/")
            costs[shards] = {
                title: cost(Path(folder) / "data", call, shards, min(repeat, MOST_RUNS))
                for title, call in CALLS.items()
            }
    rows = [
        [title, *(f"{costs[n][title][0] - (costs[sizes[0]][title][0] if n > sizes[0] else 0):.2f} s" for n in sizes)]
        for title in CALLS
    ]
    pickled = [costs[n]["pickle.dumps(dataset)"][2] for n in sizes]
    rows.append(["bytes of the pickled dataset", *(f"{size:,.0f}" for size in pickled)])
    rows.append(["memory of dataset(path)", *(f"{costs[n]['dataset(path)'][1]:.0f} MB" for n in sizes)])
    header = ["CPU time", f"{sizes[0]} shards", *(f"{n:,}: more" for n in sizes[1:])]
    return report.table(header, rows), max(pickled) <= MOST_PICKLED
