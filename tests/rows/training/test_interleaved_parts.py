"""Parts that are read together give the rows, the errors and the states that each part gives by itself."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from folder_trees import FoldersByKind
from records import example, flip, framed, int64s, written
from rounds import rounds
from strategies import blobs
from tfrecord_io.errors import CorruptRecordError, TFRecordError
from tfrecord_io.read import byte_ranges
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.read.scan_rows import ScanRows
from training_batches import chunks_of

COUNTS = [37, 1, 0, 60, 22]
SCHEMA = {"x": "int64", "t": "list<int64>", "b": "bytes"}


def payload(x: int, size: int) -> bytes:
    return example(x=int64s(x), t=int64s(*range(x % 5)), b=blobs(bytes([x % 251]) * size))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> FoldersByKind:
    """Files as they should be, and such that their parts have to be read one by one from some record on."""
    found = FoldersByKind()
    kinds = "plain indexed one large gzip one-gzip damaged truncated bad-value index-lies".split()
    for kind in kinds:
        folder, begin, paths = tmp_path_factory.mktemp(kind), 0, []
        for number, count in enumerate([sum(COUNTS)] if kind == "one" else COUNTS):
            sizes = [700_000 if kind == "large" and x % 50 == 7 else x % 40 for x in range(begin, begin + count)]
            payloads = [payload(x, size) for x, size in enumerate(sizes, begin)]
            if kind == "bad-value" and number == 3:
                payloads[20] = example(x=blobs(b"text"), b=blobs(b""))
            path = written(folder / f"{number}.tfrecord", payloads)
            if kind == "gzip" or (kind == "one-gzip" and number == 3):
                path.write_bytes(gzip.compress(path.read_bytes()))
            if kind == "damaged" and number == 3:
                flip(path, len(framed(*payloads[:41])) + 14)
            if kind == "truncated" and number == 3:
                path.write_bytes(path.read_bytes()[:-3])
            paths.append(path)
            begin += count
        if kind in ("indexed", "one", "large", "damaged", "bad-value", "index-lies"):
            write_indexes([path for path in paths if path.stat().st_size])
        if kind == "index-lies":  # about where a record in the middle begins
            index = paths[3].with_name(paths[3].name + ".index")
            lines = index.read_text().splitlines()
            lines[30:32] = [lines[30]]
            index.write_text("\n".join(lines) + "\n")
        found[kind] = paths
    return found


def read(data: tfr.Dataset, options: dict[str, Any], taken: int) -> list[Any]:
    """Batches, states and the error of a read, which goes on once from a state."""
    seen, state = list[Any](), None
    for steps in (taken, 10**6):
        batches = data.iter_arrays(**options, state=state)
        try:
            for _, batch in zip(range(steps), batches, strict=False):
                seen.append({name: [repr(v) for v in values] for name, values in batch.items()})
            state = json.loads(json.dumps(batches.state()))
            # Marks only save reading rows again: they may be of earlier rows of parts that have ended.
            seen.append({name: state[name] for name in ("epoch", "taken", "turn", "rows")})
        except TFRecordError as error:
            # Records are counted from where a part of a file begins to be read.
            seen.append((type(error), getattr(error, "path", None), getattr(error, "offset", None)))
            break
        finally:
            batches.close()
    return seen


@settings(max_examples=rounds(400, 60))
@given(
    kind=st.sampled_from(
        "plain indexed one large gzip one-gzip damaged truncated bad-value index-lies".split()
    ),
    parts=st.sampled_from([(2, 1), (3, 1), (8, 1), (2, 3), (16, 1)]),
    buffer=st.sampled_from([0, 1, 7, 50]),
    unit=st.integers(3, 40),
    seed=st.integers(0, 10**6),
    on_error=st.sampled_from(["raise", "skip"]),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_rows_errors_and_states_are_those_of_each_part(
    folders: FoldersByKind, kind: str, parts: tuple[int, int], buffer: int, unit: int, seed: int, on_error: str
) -> None:
    rng = random.Random(seed)
    data = tfr.dataset(folders[kind], schema=SCHEMA, threads=1, on_error=on_error)
    shuffles = {"shuffle_buffer": buffer, "seed": seed % 5} if buffer else {}
    ranks = rng.choice([1, 1, 2, 4])
    options = {"batch_size": 8 // ranks, "parts": parts, "worker": (rng.randrange(ranks), ranks), **shuffles}
    taken = rng.randrange(12)
    with chunks_of(unit):
        together = read(data, options, taken)
        with mock.patch.object(ScanRows, "may_be_interleaved", return_value=False):
            assert together == read(data, options, taken)


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.StaleIndexWarning")
def test_a_file_with_more_records_than_were_counted(tmp_path: Path) -> None:
    """Found in the part that has it, as by a reader of its own."""
    paths = [written(tmp_path / f"{n}.tfrecord", [payload(x, 3) for x in range(20)]) for n in range(4)]
    write_indexes(paths)
    data = tfr.dataset(paths, schema=SCHEMA, threads=1)
    batches = data.iter_arrays(batch_size=4, parts=4)
    written(paths[2], [payload(x, 3) for x in range(22)])
    with pytest.raises(TFRecordError):
        list(batches)


def test_boundaries_of_lanes_are_searched_once(tmp_path: Path) -> None:
    """In the first epoch, and again where a file was replaced."""
    path, orders = tmp_path / "a.tfrecord", [[*range(400)], [*range(399, -1, -1)]]
    searched: list[Any] = []
    contents = [framed(*(payload(x, x * 37 % 900) for x in order)) for order in orders]
    path.write_bytes(contents[0])
    original = byte_ranges.find_boundaries

    def noted(file: Any, engine: Any, positions: Any, *limits: Any, **keywords: Any) -> Any:
        searched.extend(positions)
        return original(file, engine, positions, *limits, **keywords)

    with mock.patch.object(byte_ranges, "find_boundaries", noted):
        data = tfr.dataset(path, schema=SCHEMA, threads=1)
        batches, counts = data.iter_arrays(batch_size=16, parts=4, epochs=3), list[int]()
        for epoch in range(3):
            seen = [x for _, batch in zip(range(25), batches, strict=False) for x in batch["x"].tolist()]
            assert sorted(seen) == [*range(400)]
            counts.append(len(searched))
            if epoch == 1:
                (tmp_path / "new").write_bytes(contents[1])
                (tmp_path / "new").replace(path)
    assert counts[0] == counts[1] > 0
    assert counts[2] == 2 * counts[0]


def test_parts_are_read_by_one_reader(folders: FoldersByKind) -> None:
    """16 parts of plain files take one decoder."""
    opened: list[Any] = []
    original = ScanRows.open_files
    with mock.patch.object(ScanRows, "open_files", lambda self, warn=None: opened.append(self) or original(self, warn)):
        data = tfr.dataset(folders["indexed"], schema=SCHEMA, threads=1)
        assert sum(len(batch["x"]) for batch in data.iter_arrays(batch_size=8, parts=8)) == sum(COUNTS)
    assert not opened


@pytest.mark.parametrize("bad", [10, 20, 21, 22])
@pytest.mark.parametrize("buffer", [{}, {"shuffle_buffer": 4, "seed": 1}])
def test_damage_in_the_last_rows_of_counted_parts(tmp_path: Path, bad: int, buffer: dict[str, int]) -> None:
    """The last step, which is not full, has the rows that are there; then the error follows."""
    payloads = [example(x=int64s(x)) for x in range(23)]
    path = written(tmp_path / "x.tfrecord", payloads)
    write_indexes([path])
    time = path.stat().st_mtime_ns
    flip(path, len(framed(*payloads[:bad])) + 14)
    os.utime(path, ns=(time, time))
    batches, delivered = tfr.dataset(path, threads=1).iter_arrays(batch_size=5, parts=2, **buffer), list[int]()
    with pytest.raises(CorruptRecordError, match="payload CRC mismatch"):
        delivered.extend(x for batch in batches for x in batch["x"].tolist())
    assert len(delivered) == len({*delivered}) >= 19
    assert bad not in delivered
