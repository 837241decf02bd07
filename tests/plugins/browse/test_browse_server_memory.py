"""The memory of the server: what one without rows takes, and a stated room, for files of any size.

It is the resident set of the process (VmHWM), with the libraries that it has mapped: of a server of two rows 100 MB.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from rounds import COMPLETE
from waiting import wait_for

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

MANY = 10_000_000 if COMPLETE else 1_000_000  # rows
COLUMNS = 100_000
CELL = 100_000_000 if COMPLETE else 50_000_000  # bytes
ROOM = 60  # MB, which the buffers of a block and of decoded rows take
SERVE = """
import sys, tfrecord_io as tfr
path, other, key = [*sys.argv[1:], None, None][:3]
with tfr.browse(path, compare=other, key=key, open_page=False) as server:
    print(server.url, flush=True)
    sys.stdin.readline()
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")


class Served:
    """A process that serves a file."""

    def __init__(self, path: Path, *compared: str | Path) -> None:
        import httpx

        command = [sys.executable, "-c", SERVE, str(path), *map(str, compared)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self._client = httpx.Client(timeout=120)

    def ask(self, name: str, **query: Any) -> Any:
        return self._client.get(self.url + name, params=query).json()

    def get(self, name: str, status: int = 200, **query: Any) -> Any:
        answer = self._client.get(self.url + name, params=query)
        assert answer.status_code == status, answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer.content

    def wait(self, name: str, **query: Any) -> Any:
        """The answer once it is complete."""

        def complete_answer() -> Any:
            answer = self.get(name, **query)
            return answer if answer["complete"] else None

        return wait_for(complete_answer, seconds=600)

    def look(self, label: str) -> None:
        """Look at the first rows, filter them, look at a record and at the values of the columns."""
        self.get("")
        columns = range(len(self.get("info")["plain"]))
        self.get("rows", first=0, count=25, columns=",".join(map(str, columns)))
        self.wait("search", where="n >= 1")
        self.get("rows", first=0, count=25, columns="0", where="n >= 1")
        self.get("record", at=f"{label}:1")
        for column in columns:
            self.wait("summary", column=column, all=1)

    @property
    def peak(self) -> int:
        """Its largest memory so far in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) // 1024

    def close(self) -> None:
        self._process.communicate("\n", timeout=20)


@pytest.fixture
def serve() -> Iterator[Any]:
    made: list[Served] = []

    def start(path: Path, *compared: str | Path) -> Served:
        made.append(Served(path, *compared))
        return made[-1]

    yield start
    for served in made:
        served.close()


@pytest.fixture
def empty(serve: Any, tmp_path: Path) -> int:
    """The memory that a server of two rows takes, in MB."""
    tfr.write_tfrecord({"n": [0, 1]}, tmp_path / "two.tfrecord")
    served = serve(tmp_path / "two.tfrecord")
    served.look("two")
    return int(served.peak)


def test_many_rows_take_little_memory(serve: Any, empty: int, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": np.arange(10)}, tmp_path / "ten", embed_schema=False)
    (tmp_path / "many.tfrecord").write_bytes((tmp_path / "ten").read_bytes() * (MANY // 10))
    served = serve(tmp_path / "many.tfrecord")
    served.look("many")
    assert served.wait("search", where="n >= 1")["count"] == MANY * 9 // 10
    assert served.peak < empty + ROOM


def test_large_cells_take_little_memory(serve: Any, empty: int, tmp_path: Path) -> None:
    with tfr.open_writer(tmp_path / "large.tfrecord") as writer:
        for n in range(4):
            writer.write(pa.table({"n": [n], "big": pa.array([bytes([65 + n]) * CELL], pa.large_binary())}))
    served = serve(tmp_path / "large.tfrecord")
    served.look("large")
    assert served.wait("search", where="big startswith B")["count"] == 1
    assert served.wait("search", where="big is not null")["count"] == 4
    assert "BBBB" in served.get("record", at="large:1")["html"]
    assert len(served.get("value", address=1, column="big")) == CELL
    assert served.peak < empty + ROOM


def test_a_large_first_record_is_not_read_whole_for_its_schema(serve: Any, empty: int, tmp_path: Path) -> None:
    data = {"big": pa.array([b"x" * CELL, b"y"], pa.large_binary()), "n": [1, 2], "list": [[0.5] * (CELL // 10), [1.5]]}
    tfr.write_tfrecord(data, tmp_path / "first.tfrecord", embed_schema=False, float64="round")
    served = serve(tmp_path / "first.tfrecord")
    served.look("first")
    assert served.peak < empty + ROOM


def column_values(kind: str, at: int) -> Any:
    """Two rows of a column of numbers, of lists, or of which every other one, or one alone, is a list."""
    is_list = at != 7 and {"numbers": False, "lists": True, "mixed": at % 2 == 1, "one list": at == 50}[kind]
    return [[at, at + 1], [3]] if is_list else [at, at + 1]


@pytest.mark.parametrize("kind", ["numbers", "lists", "mixed", "one list"])
@pytest.mark.parametrize("embed_schema", [True, False])
def test_many_columns_take_200_megabytes(serve: Any, tmp_path: Path, embed_schema: bool, kind: str) -> None:
    data = {f"column_number_{at}": column_values(kind, at) for at in range(COLUMNS)}
    tfr.write_tfrecord(data, tmp_path / "wide.tfrecord", embed_schema=embed_schema)
    served = serve(tmp_path / "wide.tfrecord")
    assert len(served.get("info")["plain"]) == COLUMNS
    for first in (0, COLUMNS // 2, COLUMNS - 24):  # as a page that is scrolled
        served.get("rows", first=0, count=25, columns=",".join(map(str, range(first, first + 24))))
    assert served.wait("search", where="column_number_7 >= 8")["count"] == 1
    served.get("rows", first=0, count=25, columns="7", where="column_number_7 >= 8")
    served.wait("summary", column=COLUMNS - 1, all=1)
    served.get("record", at="wide:1")
    assert served.peak <= 200


def test_a_million_keys_take_little_memory(serve: Any, empty: int, tmp_path: Path) -> None:
    names = np.char.mod("image-%012d", np.arange(1_000_000)).tolist()
    tfr.write_tfrecord({"name": names[-50:], "n": range(50)}, tmp_path / "some.tfrecord")
    tfr.write_tfrecord({"name": names, "n": np.arange(1_000_000)}, tmp_path / "all.tfrecord")
    served = serve(tmp_path / "some.tfrecord", tmp_path / "all.tfrecord", "name")

    def rows_with_keys() -> Any:
        answer = served.ask("rows", first=0, count=1, columns="0,1")
        return None if "being read" in answer.get("error", "") else answer["rows"]

    assert "999950" in wait_for(rows_with_keys, seconds=600)[0]["cells"][1]
    assert served.peak < empty + ROOM + 35


def test_a_query_takes_memory_in_a_process_of_its_own(serve: Any, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    tfr.write_tfrecord({"n": np.arange(1000)}, tmp_path / "a.tfrecord")
    served = serve(tmp_path / "a.tfrecord")
    served.get("rows", first=0, count=25, columns="0")
    before = served.peak
    assert "<td>499,500</td>" in served.get("sql", query="SELECT sum(n) FROM data")["html"]
    assert "300 MB" in served.get("sql", 400, query="SELECT octet_length(encode(repeat('x', 900000000)))")["error"]
    assert served.peak < before + 15
