"""Memory at the peak of a read: of a whole one in relation to its table, of a stream whatever the file's size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from faulty_calls import FaultyProcess

MIB = 2**20
BLOCKS = 4 * 4 * MIB
KEPT = 8 * MIB  # dev/decisions/kept-memory.md
pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs the peak memory that Linux reports"),
    pytest.mark.usefixtures("native_engine"),
]

Peak = Callable[[str, Path, int], tuple[int, int]]


@pytest.fixture(scope="module")
def peak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peak]:
    """Bytes at the peak beyond those before the call, and those of the table, in a process that has read before."""
    with FaultyProcess(tmp_path_factory.mktemp("memory"), None, TFRECORD_IO_ENGINE="native") as process:

        def measure(work: str, path: Path, threads: int) -> tuple[int, int]:
            small = str(path.with_name(f"small{path.suffix}"))
            answer = process("peak", work=work, path=str(path), small=small, threads=threads)
            return answer["used"], answer["size"]

        yield measure


def written(folder: Path, table: pa.Table) -> Path:
    tfr.write_tfrecord(table.slice(0, 3), folder / "small")
    tfr.write_tfrecord(table, folder / "large", embed_schema=False)
    return folder / "large"


def ragged(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    offsets = np.append(0, np.cumsum(rng.integers(64, 961, rows))).astype(np.int32)
    return pa.table({"tokens": pa.ListArray.from_arrays(offsets, rng.integers(0, 50_000, offsets[-1]))})


def many_columns(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({f"column {i}": rng.integers(0, 2**40, rows) for i in range(1000)})


@pytest.mark.matrix
@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize(("table_of", "rows"), [(ragged, 15_000), (many_columns, 6_000)])
def test_a_whole_read_takes_a_quarter_more_than_its_table(
    peak: Peak, table_of: Callable[[int], pa.Table], rows: int, threads: int, tmp_path: Path
) -> None:
    """And the blocks that are read: two for each thread, and the state of a decoder with many columns."""
    path = written(tmp_path, table_of(rows))
    used, size = peak("read_table", path, threads)
    assert size > 40 * MIB
    assert used <= 1.25 * size + BLOCKS + 8 * MIB


@pytest.mark.matrix
@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.parametrize("work", ["stream", "arrays"])
def test_a_stream_that_is_decoded_on_all_threads_takes_no_more(
    peak: Peak, work: str, threads: int, tmp_path: Path
) -> None:
    """Batches have up to 64 MiB of records, and as much decoded."""
    offsets = np.arange(0, 12_000 * 1000 + 1, 1000, dtype=np.int32)
    values = pa.array(np.random.default_rng(0).integers(2**55, 2**60, int(offsets[-1])))
    table = pa.table({"x": pa.ListArray.from_arrays(offsets, values)})
    used, _ = peak(work, written(tmp_path, table), threads)
    assert used <= 1.25 * (64 * MIB + BLOCKS)


@pytest.mark.parametrize("threads", [1, 2])
def test_small_batches_take_as_much_as_their_rows(peak: Peak, threads: int, tmp_path: Path) -> None:
    """Those of the sample and those that the caller keeps."""
    offsets = np.arange(0, 2000 * 1000 + 1, 1000, dtype=np.int32)
    values = pa.array(np.random.default_rng(0).integers(2**55, 2**60, int(offsets[-1])))
    table = pa.table({"x": pa.ListArray.from_arrays(offsets, values)})
    used, _ = peak("kept", written(tmp_path, table), threads)
    assert used <= 1.25 * table.nbytes + BLOCKS + 8 * MIB


@pytest.mark.matrix
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", ["stream", "arrays"])
def test_a_stream_takes_as_much_as_a_batch_and_some_blocks(peak: Peak, work: str, threads: int, tmp_path: Path) -> None:
    """With a schema from a sample: 64 MiB, four blocks, three times the largest record, a margin of a quarter, and
    pages of released buffers that are used again.
    """
    rows, record = 400, 512 * 1024
    values = pa.array(np.random.default_rng(0).random(rows * record // 4, np.float32))
    table = pa.table({"x": pa.ListArray.from_arrays(np.arange(rows + 1, dtype=np.int32) * (record // 4), values)})
    used, _ = peak(work, written(tmp_path, table), threads)
    assert used <= 1.25 * (64 * MIB + BLOCKS + 3 * record) + KEPT


@pytest.mark.parametrize("lanes", [16, 64])
@pytest.mark.parametrize("threads", [1, 2])
def test_many_lanes_take_little_more_than_one(peak: Peak, lanes: int, threads: int, tmp_path: Path) -> None:
    """They are read by one reader, in chunks that have rows of all."""
    rows = pa.array(np.random.default_rng(0).random(150_000 * 64, np.float32))
    path = written(tmp_path, pa.table({"x": pa.FixedSizeListArray.from_arrays(rows, 64)}))
    used, _ = peak(f"{lanes} lanes", path, threads)
    of_one, _ = peak("1 lanes", path, threads)
    assert used <= of_one + 128 * MIB


@pytest.mark.parametrize(("work", "times"), [("record", 2), ("shuffle", 5)])
def test_a_large_record_takes_a_few_times_its_size(peak: Peak, work: str, times: int, tmp_path: Path) -> None:
    """Read by its number, or shuffled among small ones with little memory for records."""
    tfr.write_tfrecord({"x": [b"small"]}, tmp_path / "small")
    tfr.write_tfrecord({"x": [bytes(64 * MIB), b"small"]}, tmp_path / "large")
    used, _ = peak(work, tmp_path / "large", 1)
    assert used <= times * 64 * MIB + KEPT


@pytest.mark.parametrize("rows", [16, 256])
def test_a_parquet_file_is_converted_in_parts(peak: Peak, rows: int, tmp_path: Path) -> None:
    """With small row groups, and with a large one."""
    table = pa.table({"x": pa.array([np.random.default_rng(0).bytes(MIB)] * 256, pa.binary())})
    pq.write_table(table.slice(0, 3), tmp_path / "small.parquet")
    layout = {"use_dictionary": False, "compression": "none", "write_batch_size": 4}  # rows of a page
    pq.write_table(table, tmp_path / "large.parquet", row_group_size=rows, **layout)
    used, _ = peak("convert", tmp_path / "large.parquet", 1)
    assert used <= 160 * MIB
