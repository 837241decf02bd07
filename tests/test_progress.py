"""``progress=True`` shows a bar on a terminal and changes nothing else."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import tqdm.auto

import tfrecord_io as tfr


@pytest.mark.parametrize("threads", [1, 2])
def test_the_bar_reaches_all_bytes_and_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    bars: list[Any] = []
    plain = tqdm.auto.tqdm

    def shown(**options: Any) -> Any:
        bars.append(plain(**{**options, "disable": False, "file": io.StringIO()}))
        return bars[-1]

    monkeypatch.setattr(tqdm.auto, "tqdm", shown)
    tfr.write_tfrecord({"x": list(range(1000))}, tmp_path / "a", progress=True, threads=threads)
    assert (bars[0].n, bars[0].total, bars[0].unit) == (1000, 1000, "row")
    table = tfr.read_table(tmp_path / "a", progress=True, threads=threads)
    assert table.num_rows == 1000
    assert (bars[-1].n, bars[-1].total, bars[-1].unit) == (*[(tmp_path / "a").stat().st_size] * 2, "B")


def test_without_a_terminal_nothing_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a", progress=True)
    tfr.read_table(tmp_path / "a", progress=True)
    assert capsys.readouterr().err == ""
