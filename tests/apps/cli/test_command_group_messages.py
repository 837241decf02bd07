"""Messages of the commands: each failure is one line, without a traceback, and names options that exist."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from records import blobs, example, int64s, written
from tfrecord_io.apps.cli import tfr as group

# Calls that fail, or warn, for as many reasons as possible: the fixture `run` looks at what their messages name.
_READ = "head; cat; schema; count; describe; verify; index"
_REFUSED = (
    "damaged.tfrecord; text.tfrecord; zipped.tfrecord.gz; shards@4; kinds.tfrecord; messages.tfrecord; empty.tfrecord; "
    "two; 'day=*/*.tfrecord'; a.tfrecord b.tfrecord; none.tfrecord; photo.png; names.csv; array.npy; lines.jsonl; "
    "--storage-option anon=true a.tfrecord"
)
_WRITE = (
    "merge; shuffle; sample -n 1; dedupe --by x; explode; explode --prefix x; implode; split --shards 2; split --by x; "
    "split --fractions 0.5,0.5; salvage; "
    "convert; convert --to npy; convert --to csv; convert --to npz; convert --to parquet; "
    "convert --to arrow --where x==y; convert --files images; convert --files all; convert --resume; "
    "convert --from elwc; convert --from coco; convert --from voc"
)
_COPIED = (
    "damaged.tfrecord; kinds.tfrecord; messages.tfrecord; empty.tfrecord; two; 'day=*/*.tfrecord'; folder; names.csv; "
    "ragged.tfrecord; a.tfrecord b.tfrecord; shards@4; nested.tfrecord; zipped.tfrecord.gz; "
    "--storage-option anon=true a.tfrecord"
)
_OTHERS = """
    convert big.csv out
    convert floats.csv out
    convert coco.json out
    convert --check-sizes coco.json out
    convert names.csv out.npy
    convert a.tfrecord out.xlsx
    convert a.tfrecord out@*
    convert array.npy objects.npy out
    convert --embed y=path paths.csv out
    convert --embed y=path paths.csv out.npy
    convert --embed-folder x a.tfrecord out
    convert --delimiter xx a.tfrecord out.csv
    convert --null-values NA a.tfrecord out
    convert --class-names a,b a.tfrecord out
    convert --type y=int8 a.tfrecord out
    convert --type x=nonsense a.tfrecord out
    convert --type x=int8 t.parquet out
    convert --column x names.csv out
    convert -c z t.parquet out
    convert --float64 error floats.tfrecord out
    convert --float64 error floats.csv out
    convert --shards 2 a.tfrecord x@3
    convert --shards 2 --max-shard-bytes 9 a.tfrecord out
    convert --mode error a.tfrecord b.tfrecord
    convert --sample 1 kinds.tfrecord out
    convert --sample 1 ragged.tfrecord out
    convert --sample 1 --on-new raise new.tfrecord out
    merge --mode error a.tfrecord b.tfrecord
    merge --type z=int8 a.tfrecord out
    merge --type x=string a.tfrecord out
    merge a.tfrecord out.parquet
    merge --partitions folders 'two/*' out.tfrecord
    merge --storage-option a=1 a.tfrecord s3://b/c
    compact a.tfrecord
    compact two
    delete two
    delete --where 'x == 1' two
    delete --where 'y == 1' a.tfrecord
    delete --where 'x == 1' damaged.tfrecord
    adopt a.tfrecord
    adopt two
    adopt none
    copy a.tfrecord b.tfrecord
    copy damaged.tfrecord out.tfrecord
    copy shards@4 out
    copy --where x==1 a.tfrecord out
    copy --limit-rate fast a.tfrecord out
    copy --update --mode overwrite a.tfrecord out
    copy two out
    split a.tfrecord out
    split --by x --fractions 0.5,0.5 a.tfrecord out
    split --fractions 2,3 a.tfrecord out
    split --by 'x*' a.tfrecord out
    sample a.tfrecord out
    get a.tfrecord 99
    get zipped.tfrecord.gz 0
    get damaged.tfrecord 2
    get none.tfrecord 1
    get shards@4 1
    head -c z a.tfrecord
    tail -c z a.tfrecord
    dedupe --by z a.tfrecord out.tfrecord
    diff --key z a.tfrecord a.tfrecord
    split --group z --fractions 0.5,0.5 a.tfrecord out
    split --stratify z a.tfrecord out
    head --where 'z == 1' a.tfrecord
    head --where 'x == 99999999999999999999' a.tfrecord
    head --record-type example messages.tfrecord
    describe --on-error skip damaged.tfrecord
    cat --on-error stop damaged.tfrecord
    count --index none.index a.tfrecord
    count --max-decompression-ratio 1 bomb.tfrecord.gz
    index --columns z a.tfrecord
    index --columns x zipped.tfrecord.gz
    index --check a.tfrecord
    schema --as tfx kinds.tfrecord
    schema --as python damaged.tfrecord
    diff a.tfrecord damaged.tfrecord
    diff a.tfrecord none
    diff --storage-option a=1 a.tfrecord s3://b/c
    report damaged.tfrecord out.html
    report none out.html
    report empty.tfrecord out.html
    report messages.tfrecord out.html
    browse none
    browse --key x a.tfrecord
    browse --compare a.tfrecord --key z a.tfrecord
    browse --no-open --host nowhere.invalid a.tfrecord
    sql "select * from 'none.tfrecord'"
    sql "select * from 'damaged.tfrecord'"
    sql "select y from 'a.tfrecord'"
    clean none
    salvage damaged.tfrecord b.tfrecord out.tfrecord
    salvage none out
    verify --threads 2 two a.tfrecord
"""
FAILURES = [
    *(f"{command} {path}" for command in _READ.split("; ") for path in _REFUSED.split("; ")),
    *(f"{command} {path} out" for command in _WRITE.split("; ") for path in _COPIED.split("; ")),
    *(line.strip() for line in _OTHERS.strip().splitlines()),
]


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory, with files that commands refuse."""
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord({"x": [1, 2, 3]}, "damaged.tfrecord")
    Path("damaged.tfrecord").write_bytes(Path("damaged.tfrecord").read_bytes()[:-2])
    Path("text.tfrecord").write_text("hello, this is not a TFRecord file\n" * 10)
    tfr.write_tfrecord({"x": [1, 2]}, "zipped.tfrecord.gz")
    Path("zipped.tfrecord.gz").write_bytes(Path("zipped.tfrecord.gz").read_bytes()[:-5])
    tfr.write_tfrecord({"x": ["a" * 3_000_000]}, "bomb.tfrecord.gz")
    tfr.write_tfrecord({"x": [1, 2]}, "shards@4")
    Path("shards-00002-of-00004").unlink()
    tfr.write_tfrecord({"x": [1]}, "a.tfrecord")
    tfr.write_tfrecord({"x": ["text"]}, "b.tfrecord")
    written(Path("kinds.tfrecord"), [example(x=int64s(1)), example(x=blobs(b"a"))])
    written(Path("messages.tfrecord"), [b"\x08\x05"] * 3)
    written(Path("ragged.tfrecord"), [example(x=int64s(1)), example(x=int64s(1, 2)), example()])
    written(Path("new.tfrecord"), [example(x=int64s(1)), example(x=int64s(1), y=int64s(2))])
    written(Path("empty.tfrecord"), [])
    for name in ("day=1", "two/train", "two/test", "folder/cat"):
        Path(name).mkdir(parents=True)
    written(Path("day=1/a.tfrecord"), [example(day=int64s(1))])
    for name in ("train", "test"):
        tfr.write_tfrecord({"x": [1]}, f"two/{name}/a.tfrecord")
    for name in ("folder/cat/a.png", "folder/b.png", "photo.png"):
        Path(name).write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    Path("names.csv").write_text("a,b,a\n1,2,3\n")
    Path("big.csv").write_text("id\n9223372036854775808\n")
    Path("paths.csv").write_text("path\nnone.bin\n")
    Path("floats.csv").write_text("x\n0.1\n")
    Path("lines.jsonl").write_text('{"a": 1}\n')
    Path("coco.json").write_text('{"images": [], "annotations": [], "categories": []}')
    np.save("array.npy", np.arange(3))
    np.save("objects.npy", np.array([None]), allow_pickle=True)
    tfr.write_tfrecord({"x": np.array([0.1, 0.2])}, "floats.tfrecord", float64="raw")
    tfr.write_tfrecord({"x": [{"y": 1, "z": [1, 2]}], "b": [b"\xff"]}, "nested.tfrecord")
    tfr.convert("a.tfrecord", "t.parquet")


@pytest.mark.plugins("browse")  # whose command is among them
def test_each_failure_is_a_message(run: Any, broken: None) -> None:
    reported = 0
    for line in FAILURES:
        result = run(*shlex.split(line))
        assert "Traceback" not in result.output, f"{line}: {result.output}"
        assert result.exception is None or isinstance(result.exception, SystemExit), f"{line}: {result.exception!r}"
        reported += bool(result.stderr)
        for made in Path().glob("out*"):
            shutil.rmtree(made) if made.is_dir() else made.unlink()
    assert reported > len(FAILURES) * 3 / 4
    assert {shlex.split(line)[0] for line in FAILURES} == set(group.commands), "FAILURES has failures of each command"


def test_a_path_like_advice_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = "runs/lr=0.1; seed=3; batch_size=32"
    Path(folder).mkdir(parents=True)
    tfr.write_tfrecord({"x": [1, 2]}, f"{folder}/a.tfrecord")
    Path(f"{folder}/a.tfrecord").write_bytes(Path(f"{folder}/a.tfrecord").read_bytes()[:-1])
    commands = [("verify",), ("count",), ("salvage", "out.tfrecord"), ("describe",), ("head",)]
    for command, *others in commands:
        result = CliRunner().invoke(group, [command, f"{folder}/a.tfrecord", *others])
        assert f"{folder}/a.tfrecord" in result.output + result.stderr, (command, result.output, result.stderr)
    with pytest.raises(tfr.errors.TruncatedRecordError, match=f"^{folder}/a.tfrecord: "):
        tfr.read_table(f"{folder}/a.tfrecord")
    for name in (f"{folder}/none.tfrecord", "seed=3; limit=, or schema=None"):
        assert name in CliRunner().invoke(group, ["head", name]).stderr
        with pytest.raises(FileNotFoundError, match=f"'{name}'$"):
            tfr.merge(name, "out")
