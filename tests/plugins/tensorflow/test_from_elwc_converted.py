"""`convert` and ``tfr convert`` from lists of TensorFlow Ranking: what `open_elwc` reads."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tfrecord_io as tfr
from records import blobs, example, field, framed, int64s, written
from tfrecord_io.apps.cli import tfr as command

LISTS = [
    field(1, example(doc=blobs(b"d0"), clicks=int64s(0))) + field(2, example(query=blobs(b"first"))),
    b"",
    b"".join(field(1, example(doc=blobs(b"d%d" % n), clicks=int64s(n))) for n in (1, 2, 3)),
]


def convert(*arguments: Any) -> Result:
    return CliRunner().invoke(command, ["convert", "--from", "elwc", *map(str, arguments)])


def test_conversion_to_other_formats(tmp_path: Path) -> None:
    path = written(tmp_path / "a", LISTS)
    names = ["clicks", "doc", "position", "query", "record"]
    for target in ("rows.parquet", "rows.csv", "rows.jsonl", "rows.tfrecord", "rows@2.tfrecord"):
        assert tfr.convert(path, tmp_path / target, source_format="elwc").columns == tuple(names)
        again = tmp_path / target
        if "tfrecord" not in target:
            again = tmp_path / "again"
            tfr.convert(tmp_path / target, again)
        assert tfr.read_table(again).select(names).to_pylist() == tfr.formats.open_elwc(path).read_all().to_pylist(), (
            target
        )
    shown = convert(path, tmp_path / "b.npz", "--columns", "record", "--columns", "position")
    assert shown.exit_code == 0
    assert np.load(tmp_path / "b.npz")["record"].tolist() == [0, 2, 2, 2]
    shown = convert(path, tmp_path / "c.tfrecord", "--where", "clicks > 1", "--compression", "gzip")
    assert shown.exit_code == 0
    assert tfr.read_table(tmp_path / "c.tfrecord")["doc"].to_pylist() == ["d2", "d3"]
    assert (tmp_path / "c.tfrecord").read_bytes().startswith(b"\x1f\x8b")
    (tmp_path / "gz").write_bytes(gzip.compress(framed(*LISTS)))
    assert convert(tmp_path / "gz", tmp_path / "d.parquet", "--compression", "gzip").exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--record-type", "bytes"], "--record-type is not possible for ExampleListWithContext"),
        (["--on-error", "skip"], "--on-error skip: expected one of 'raise', 'stop'; to leave out damaged lists, "),
        (["--files", "images"], "it is not clear which column has the files"),
        (["--delimiter", ";"], "--delimiter is only for CSV and TSV files"),
        (["--resume"], "--resume converts"),
    ],
)
def test_wrong_combinations(tmp_path: Path, options: list[str], message: str) -> None:
    shown = convert(written(tmp_path / "a", LISTS), tmp_path / "out", *options)
    assert shown.exit_code == 2
    assert message in shown.stderr
    assert not (tmp_path / "out").exists()


def test_files_of_a_column(tmp_path: Path) -> None:
    own = [
        example(**{"image/encoded": blobs(b"\xff\xd8%d" % n), "image/filename": blobs(b"%d.gif" % n)}) for n in (1, 2)
    ]
    path = written(tmp_path / "a", [b"".join(field(1, image) for image in own)])
    shown = convert(path, tmp_path / "out", "--files", "images")
    assert shown.exit_code == 0, shown.stderr
    assert (tmp_path / "out/2.gif").read_bytes() == b"\xff\xd82"
