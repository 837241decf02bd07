"""``tfr convert`` has the library's keywords as options, and uses their names in messages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import tfrecord_io as tfr


@pytest.fixture
def doubles(tmp_path: Path) -> Path:
    np.savez(tmp_path / "d.npz", x=np.array([0.1, 0.2, 0.3]), n=np.arange(3))
    return tmp_path / "d.npz"


def test_the_warning_names_the_option(run, doubles: Path, tmp_path: Path) -> None:
    shown = run("convert", doubles, tmp_path / "d.tfrecord")
    assert shown.exit_code == 0
    assert "--float64 raw keeps the bits" in shown.stderr
    assert 'float64="raw"' not in shown.stderr
    shown = run("convert", "--float64", "raw", doubles, tmp_path / "d.tfrecord")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert tfr.read_arrays(tmp_path / "d.tfrecord")["x"].tolist() == [0.1, 0.2, 0.3]
    shown = run("convert", "--float64", "error", doubles, tmp_path / "d.tfrecord")
    assert shown.exit_code == 1
    assert "--float64 raw keeps its bits" in shown.stderr


def test_the_error_about_arrays_of_other_lengths_names_the_option(run, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.arange(2))
    shown = run("convert", tmp_path / "a.npz", tmp_path / "a.tfrecord")
    assert shown.exit_code == 1
    assert shown.stderr.rstrip().endswith("must have the same length; exclude it with --columns")


def test_a_file_is_replaced_by_default_and_a_dataset_of_shards_is_not(run, doubles: Path, tmp_path: Path) -> None:
    for target, exit_code in (("d.tfrecord", 0), ("d@2", 3)):
        command = ["convert", "--columns", "n", doubles, tmp_path / target]
        assert [run(*command).exit_code, run(*command).exit_code] == [0, exit_code]
        assert run(*command, "--overwrite").exit_code == 0
        assert run(*command, "--mode", "error").exit_code == 3
    shown = " ".join(run("convert", "--help").stdout.split())
    assert "by default, a file is replaced, and a dataset is an error" in shown


def test_columns_and_encodings(run, doubles: Path, tmp_path: Path) -> None:
    assert run("convert", "--column-encoding", "x=raw", doubles, tmp_path / "d.tfrecord").stderr == ""
    assert tfr.read_arrays(tmp_path / "d.tfrecord")["x"].tolist() == [0.1, 0.2, 0.3]
    assert run("convert", tmp_path / "d.tfrecord", tmp_path / "both.npy").exit_code == 0
    assert np.load(tmp_path / "both.npy").dtype.names == ("x", "n")
    assert run("convert", "--column", "x", tmp_path / "d.tfrecord", tmp_path / "x.npy").exit_code == 0
    assert np.load(tmp_path / "x.npy").tolist() == [0.1, 0.2, 0.3]
    for target in ("n.npy", "n.npz", "n.parquet", "n.tfrecord"):
        assert run("convert", "--columns", "n", tmp_path / "d.tfrecord", tmp_path / target).exit_code == 0
    assert tfr.read_table(tmp_path / "n.tfrecord").column_names == ["n"]
    assert run("convert", "--column-encoding", "x", doubles, tmp_path / "d.tfrecord").exit_code == 2


def test_shards_and_compression(run, doubles: Path, tmp_path: Path) -> None:
    assert run("convert", "--float64", "raw", "--shards", "2", doubles, tmp_path / "s.tfrecord").exit_code == 0
    assert sorted(file.name for file in tmp_path.glob("s*")) == [
        "s.tfrecord-00000-of-00002",
        "s.tfrecord-00001-of-00002",
    ]
    assert run("convert", "--compression", "gzip", tmp_path / "s.tfrecord@2", tmp_path / "z.tfrecord").exit_code == 0
    assert (tmp_path / "z.tfrecord").read_bytes().startswith(b"\x1f\x8b")
    assert run("convert", "--compression", "none", tmp_path / "z.tfrecord", tmp_path / "p.tfrecord.gz").exit_code == 0
    assert not (tmp_path / "p.tfrecord.gz").read_bytes().startswith(b"\x1f\x8b")
    assert run("convert", "--max-shard-bytes", "100", tmp_path / "z.tfrecord", tmp_path / "m").exit_code == 0
    assert len(list(tmp_path.glob("m-*"))) > 1


@pytest.mark.parametrize(
    ("option", "source", "target"),
    [
        ("--float64=raw", "d.tfrecord", "x.npz"),
        ("--shards=2", "d.tfrecord", "x.npz"),
        ("--column=x", "d.npz", "x.tfrecord"),
        ("--on-error=stop", "d.npz", "x.tfrecord"),
    ],
)
def test_options_for_the_other_direction_are_refused(
    run, doubles: Path, tmp_path: Path, option: str, source: str, target: str
) -> None:
    run("convert", "--float64", "raw", doubles, tmp_path / "d.tfrecord")
    shown = run("convert", option, tmp_path / source, tmp_path / target)
    assert shown.exit_code == 2
    assert shown.stderr.startswith(f"tfr: {option.partition('=')[0]} ")
    assert not (tmp_path / target).exists()


def test_an_unknown_format_is_answered_by_those_that_the_option_takes(run, doubles: Path, tmp_path: Path) -> None:
    shown = run("convert", doubles, tmp_path / "b", "--from", "nope")
    assert "--from nope: expected one of 'tfrecord', 'csv'," in shown.stderr


def test_missing_values_name_the_option(run, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, None], "b": [b"\xff\x00", b"a"]}, tmp_path / "x.tfrecord")
    shown = run("convert", tmp_path / "x.tfrecord", tmp_path / "x.npz")
    assert shown.exit_code == 1
    assert "exclude the column with --columns" in shown.stderr


@pytest.mark.plugins("tensorflow")
def test_missing_shards_are_allowed_by_the_option_that_the_error_advises(run, tmp_path: Path) -> None:
    folder, target = tmp_path / "shards", tmp_path / "x.npy"
    folder.mkdir()
    for index in (0, 2):
        tfr.write_tfrecord({"x": [index]}, folder / f"t-0000{index}-of-00003")
    assert "--allow-missing-shards reads the others" in run("convert", folder, target).output
    assert run("convert", "--allow-missing-shards", folder, target).exit_code == 0
    assert np.load(target).tolist() == [0, 2]
    refused = run("convert", "--allow-missing-shards", target, tmp_path / "x.tfrecord")
    assert "allow-missing-shards is only for TFRecord, ArrayRecord and TFDS sources" in refused.output


def test_damage_is_left_out(run, doubles: Path, tmp_path: Path) -> None:
    run("convert", doubles, tmp_path / "d.tfrecord")
    content = bytearray((tmp_path / "d.tfrecord").read_bytes())
    content[-1] ^= 1
    (tmp_path / "d.tfrecord").write_bytes(content)
    shown = run("convert", "--on-error", "skip", tmp_path / "d.tfrecord", tmp_path / "e.tfrecord")
    assert shown.exit_code == 0
    assert "1 damaged region" in shown.stderr
    assert tfr.count(tmp_path / "e.tfrecord") == 2


def test_types_delimiter_and_missing_values_of_csv(run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("zip;n\n001;NA\n002;1\n")
    options = ["--type", "zip=string", "--delimiter", ";", "--null-values", "NA", "--null-values", ""]
    assert run("convert", *options, tmp_path / "a.csv", tmp_path / "a.tfrecord").exit_code == 0
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"zip": ["001", "002"], "n": [None, 1]}
    assert run("convert", tmp_path / "a.tfrecord", tmp_path / "a.jsonl").exit_code == 0
    assert (tmp_path / "a.jsonl").read_text() == run("cat", tmp_path / "a.tfrecord").stdout
    for refused in (["--type", "zip"], ["--type", "zip=nothing"], ["--delimiter", "ab"], ["--type", "none=string"]):
        assert run("convert", *refused, tmp_path / "a.csv", tmp_path / "b.tfrecord").exit_code == 2
    (tmp_path / "a.csv").write_text("x,text\n" + f"1,{'a' * 1000}\n" * 9_000 + "a,\n")
    shown = run("convert", tmp_path / "a.csv", tmp_path / "b.tfrecord")
    assert shown.exit_code == 1
    assert "record 9000: feature 'x'" in shown.stderr
    assert "with --type" in shown.stderr
    tfr.write_tfrecord({"b": [b"\xff"]}, tmp_path / "c.tfrecord")
    shown = run("convert", tmp_path / "c.tfrecord", tmp_path / "c.csv")
    assert shown.exit_code == 1
    assert "exclude the column with --columns, or write JSON lines" in shown.stderr


@pytest.mark.plugins("vision")
def test_a_folder_of_images_and_back(run, tmp_path: Path) -> None:
    for name in ("cat/1.png", "dog/1.png"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True)
        Image.new("RGB", (4, 3)).save(tmp_path / "photos" / name)
    assert run("convert", tmp_path / "photos", tmp_path / "a.tfrecord").exit_code == 0
    assert run("convert", "--files", "images", tmp_path / "a.tfrecord", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out/cat/1.png").read_bytes() == (tmp_path / "photos/cat/1.png").read_bytes()
    options = ["--class-names", "dog,cat", "--shuffle-seed", "1"]
    assert run("convert", *options, tmp_path / "photos", tmp_path / "a.tfrecord").exit_code == 0
    labels = tfr.read_table(tmp_path / "a.tfrecord", columns=["label/text", "label"]).to_pylist()
    assert sorted(label["label/text"] for label in labels if label["label"] == 1) == ["cat"]
    (tmp_path / "photos/cat/2.png").write_bytes(b"x")
    assert run("convert", tmp_path / "photos", tmp_path / "b.tfrecord").exit_code == 1
    shown = run("convert", "--on-error", "skip", tmp_path / "photos", tmp_path / "b.tfrecord")
    assert (shown.exit_code, tfr.count(tmp_path / "b.tfrecord")) == (0, 2)
    assert "1 of 3 files left out" in shown.stderr


@pytest.mark.plugins("vision")
def test_any_files_and_back(run, tmp_path: Path) -> None:
    (tmp_path / "sounds").mkdir()
    (tmp_path / "sounds/a.wav").write_bytes(b"RIFF")
    shown = run("convert", tmp_path / "sounds", tmp_path / "a.tfrecord")
    assert shown.exit_code == 2
    assert "--files all embeds files of any kind" in shown.stderr
    assert run("convert", "--files", "all", tmp_path / "sounds", tmp_path / "a.tfrecord").exit_code == 0
    assert run("convert", "--files", "all", tmp_path / "a.tfrecord", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out/a.wav").read_bytes() == b"RIFF"
    for options in (["--files", "all", "--shards", "2"], ["--class-names", "a"], ["--shuffle-seed", "1"]):
        refused = run("convert", *options, tmp_path / "a.tfrecord", tmp_path / "new")
        assert refused.exit_code == 2
        assert not (tmp_path / "new").exists()
    assert run("convert", "--files", "all", tmp_path / "a.tfrecord", tmp_path / "a.parquet").exit_code == 2


def test_a_conversion_of_several_files_goes_on_after_a_stop(run, tmp_path: Path) -> None:
    for day in range(3):
        (tmp_path / f"{day}.csv").write_text(f"day\n{day}\n" if day < 2 else "day\nlast\n")
    stopped = run("convert", "--resume", tmp_path / "*.csv", f"{tmp_path}/days/")
    assert stopped.exit_code == 1
    assert "2.csv" in stopped.stderr
    (tmp_path / "2.csv").write_text("day\n2\n")
    shown = run("convert", "--resume", "--float64", "raw", tmp_path / "*.csv", f"{tmp_path}/days/")
    assert shown.exit_code == 2
    assert "float64 is 'raw', but it was not given" in shown.stderr
    shown = run("convert", "--resume", tmp_path / "*.csv", f"{tmp_path}/days/")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert tfr.read_table(tmp_path / "days")["day"].to_pylist() == [0, 1, 2]
    (tmp_path / "3.csv").write_text("day\n3\n")
    shown = run("convert", "--resume", tmp_path / "*.csv", f"{tmp_path}/days/")
    assert "3.csv' is not among the sources that it was made of; --mode overwrite converts" in shown.stderr
    shown = run("convert", "--resume", "--shards", "3", tmp_path / "*.csv", f"{tmp_path}/days/")
    assert "--shards cannot be used with --resume" in shown.stderr
    assert run("convert", "--resume", tmp_path / "*.csv", "-").exit_code == 2


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    table = pa.table({"id": ["a", "b"], "steps/n": [[1, 2], [3]], "frames/x": [[5], [6, 7]]})
    tfr.write_tfrecord(table, tmp_path / "runs.tfrecord")
    return tmp_path / "runs.tfrecord"


def test_explode_writes_a_record_for_each_step(run, runs: Path, tmp_path: Path) -> None:
    shown = run("explode", runs, tmp_path / "steps.tfrecord", "--columns", "!frames/x", "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["records"]) == (0, 3)
    expected = tfr.explode(tfr.dataset(runs, columns="!frames/x")).read_all()
    assert tfr.read_table(tmp_path / "steps.tfrecord").equals(expected)
    shown = run("explode", "--prefix", "frames", "--where", "id=b", runs, tmp_path / "frames@2")
    assert shown.exit_code == 0
    assert "frames@2: 2 steps, " in shown.stdout
    assert tfr.read_table(tmp_path / "frames@2")["frames/x"].to_pylist() == [6, 7]


def test_explode_fails_like_the_call(run, runs: Path, tmp_path: Path) -> None:
    shown = run("explode", "--prefix", "events", runs, tmp_path / "steps.tfrecord")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert "no column has this prefix; the columns are id, steps/n, frames/x; pass --prefix" in shown.stderr
    assert not (tmp_path / "steps.tfrecord").exists()
    assert run("explode", runs, tmp_path / "steps.tfrecord").exit_code == 0
    shown = run("explode", runs, tmp_path / "steps.tfrecord", "--mode", "error")
    assert shown.exit_code == 3
    assert run("explode", "--shards", "2", runs, "-").exit_code == 2
    assert run("explode", tmp_path / "absent.tfrecord", tmp_path / "o.tfrecord").exit_code == 2


@pytest.fixture
def boxes(tmp_path: Path) -> Path:
    data = {"file": ["a.jpg", "b.jpg"], "box/xmin": [[0.25, 0.5], []], "box/xmax": [[0.5, 1.0], []], "tags": [[1], [2]]}
    tfr.write_tfrecord(data, tmp_path / "boxes.tfrecord")
    return tmp_path / "boxes.tfrecord"


def test_explode_writes_a_csv_of_boxes(run, boxes: Path, tmp_path: Path) -> None:
    shown = run("explode", boxes, tmp_path / "boxes.csv", "--lists", "box/xmin,box/xmax", "--columns", "!tags")
    assert shown.exit_code == 0, shown.output
    assert "boxes.csv: 2 rows, " in shown.stdout
    assert (tmp_path / "boxes.csv").read_text().splitlines() == [
        '"record","step","file","box/xmin","box/xmax"',
        '0,0,"a.jpg",0.25,0.5',
        '0,1,"a.jpg",0.5,1',
    ]
    shown = run("explode", boxes, tmp_path / "boxes.csv", "--lists", "box/*", "--mode", "error", "--columns", "!tags")
    assert shown.exit_code == 3
    shown = run("explode", boxes, tmp_path / "all.csv", "--lists", "box/*")
    assert (shown.exit_code, "'tags': a column of list<int64> cannot be stored" in shown.stderr) == (1, True)
    assert not (tmp_path / "all.csv").exists()
    for target, option in (("boxes.csv", ["--shards", "2"]), ("boxes.npz", [])):
        shown = run("explode", boxes, tmp_path / target, "--lists", "box/*", *option)
        assert (shown.exit_code, "write TFRecord first" in shown.stderr) == (2, True)


@pytest.mark.parametrize("target", ["back.tfrecord", "back.parquet", "back.jsonl.gz"])
def test_implode_is_the_way_back(run, boxes: Path, tmp_path: Path, target: str) -> None:
    lists = ("--lists", "box/xmin", "--lists", "box/xmax")
    assert run("explode", boxes, tmp_path / "rows.tfrecord", *lists, "--keep-empty").exit_code == 0
    shown = run("implode", tmp_path / "rows.tfrecord", tmp_path / target, *lists, "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["records"]) == (0, 2)
    if target.endswith("tfrecord"):
        assert tfr.read_table(tmp_path / target).equals(tfr.read_table(boxes))
    shown = run("implode", tmp_path / "rows.tfrecord", tmp_path / "o.tfrecord", *lists, "--columns", "!record,!step")
    assert shown.exit_code == 1
    assert "a null inside a list cannot be stored" in shown.stderr
    shown = run("implode", tmp_path / "rows.tfrecord", tmp_path / "o.tfrecord", "--lists", "box/xmin")
    assert shown.exit_code == 1
    assert "'box/xmax': row 1 has another value than the row before it, of the same record 0" in shown.stderr
    assert "name the column in --lists, or exclude it" in shown.stderr


def test_a_daily_job(run, tmp_path: Path) -> None:
    """Append, folders, new columns, and a folder that is replaced; by ``convert`` and by ``sql``."""
    pytest.importorskip("duckdb")
    days, target = tmp_path / "days.csv", tmp_path / "visits"
    days.write_text("user,day\n1,05-01\n2,05-02\n")
    assert run("convert", days, f"{target}/", "--partition-by", "week").exit_code == 2
    assert run("convert", days, f"{target}/", "--partition-by", "day").exit_code == 0
    assert run("convert", days, f"{target}/", "--partition-by", "day").exit_code == 3
    days.write_text("user,day\n9,05-01\n")
    appended = run("convert", days, target, "--append", "--partition-by", "day")
    assert (appended.exit_code, ": 1 record appended, " in appended.output) == (0, True)
    assert tfr.read_table(target)["user"].to_pylist() == [1, 9, 2]
    days.write_text("user,day,km\n5,05-02,7\n")
    refused = run("convert", days, target, "--append", "--partition-by", "day")
    assert (refused.exit_code, "--evolve" in refused.stderr) == (1, True)
    assert run("convert", days, target, "--append", "--evolve", "--partition-by", "day").exit_code == 0
    query = f"SELECT user + 10 AS user, day FROM '{target}' WHERE day = '05-01'"
    shown = run("sql", query, "-o", f"{target}/", "--mode", "overwrite_partitions", "--partition-by", "day")
    assert shown.exit_code == 0, shown.output
    assert tfr.read_table(target)["user"].to_pylist() == [11, 19, 2, 5]
    query = "SELECT 7 AS user, '05-03' AS day"
    appended = run("sql", query, "-o", target, "--append", "--partition-by", "day")
    assert (appended.exit_code, appended.output) == (0, f"{target}/: 1 record appended\n")
    assert tfr.count(target) == 5


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--append", "--mode", "overwrite"], "--append is --mode append"),
        (["--append", "--overwrite"], "--append is --mode append"),
        (["--overwrite", "--mode", "error"], "--overwrite is --mode overwrite"),
        (["--append", "--resume"], "resume"),
        (["--evolve"], "--evolve is for --mode append"),
        (["--mode", "overwrite_partitions"], "--partition-by"),
        (["--append", "--shards", "2", "--partition-by", "n"], "--shards"),
    ],
)
def test_options_that_contradict_each_other(run, doubles: Path, tmp_path: Path, options: list[str], text: str) -> None:
    shown = run("convert", "--columns", "n", doubles, f"{tmp_path}/out/", *options)
    assert shown.exit_code == 2, shown.output
    assert text in shown.stderr
    assert not (tmp_path / "out").exists()


def test_modes_are_for_tfrecord(run, doubles: Path, tmp_path: Path) -> None:
    tfr.convert(doubles, tmp_path / "a.tfrecord")
    for name, text in (("a.npz", "is only for TFRecord"), ("a.parquet", "adds to a folder")):
        shown = run("convert", tmp_path / "a.tfrecord", tmp_path / name, "--append")
        assert (shown.exit_code, text in shown.stderr) == (2, True)
    assert run("convert", tmp_path / "a.tfrecord", "-", "--append").exit_code == 2
    for more in (["-o", tmp_path / "a.parquet"], []):
        shown = run("sql", "SELECT 1 AS x", "--append", *more)
        assert (shown.exit_code, "--metadata and --txn are" in shown.stderr) == (2, True)


def test_a_target_with_a_slash_is_a_folder_of_tables(run, tmp_path: Path) -> None:
    rows = {"n": range(6), "day": ["a", "b", "c"] * 2}
    source = tfr.write_tfrecord(rows, tmp_path / "a.tfrecord").path
    target = f"{tmp_path}/days/"
    by_day = ["--to", "parquet", "--partition-by", "day"]
    assert run("convert", source, target, *by_day).exit_code == 0
    assert sorted(folder.name for folder in Path(target).iterdir()) == ["day=a", "day=b", "day=c"]
    shown = run("convert", source, target, *by_day)
    assert (shown.exit_code, "not empty" in shown.stderr) == (3, True)
    for mode, records in ((["--append"], 12), (["--mode", "overwrite_partitions", "--where", "day == 'a'"], 10)):
        assert run("convert", source, target, *by_day, *mode).exit_code == 0
        assert tfr.convert(target, tmp_path / "back.tfrecord", mode="overwrite").records == records
    assert run("convert", source, f"{tmp_path}/parts/", "--to", "csv", "--shards", "3").exit_code == 0
    assert len([*(tmp_path / "parts").iterdir()]) == 3
    assert run("convert", source, f"{tmp_path}/sized/", "--to", "jsonl", "--max-file-bytes", "20").exit_code == 0
    assert len([*(tmp_path / "sized").iterdir()]) > 1


def test_metadata_of_a_manifest(run, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x\n1\n")
    arguments = ["convert", f"{tmp_path}/x.csv", f"{tmp_path}/d/", "--metadata", "source=https://example.com/?a=b"]
    assert run(*arguments, "--metadata", "empty=").exit_code == 0
    assert tfr.read_metadata(f"{tmp_path}/d/").metadata == {"source": "https://example.com/?a=b", "empty": ""}
    for bad in ("source", "=x"):
        refused = run(*arguments, "--metadata", bad)
        assert (refused.exit_code, "expected NAME=TEXT" in refused.stderr) == (2, True)
    refused = run("convert", f"{tmp_path}/x.csv", f"{tmp_path}/x.tfrecord", "--metadata", "a=b")
    assert (refused.exit_code, "or leave out --metadata" in refused.stderr) == (2, True)
    refused = run("convert", f"{tmp_path}/d/", f"{tmp_path}/y.csv", "--metadata", "a=b")
    assert (refused.exit_code, "--metadata is only for TFRecord targets" in refused.stderr) == (2, True)


def test_a_column_in_the_path_of_the_source_is_named(run, tmp_path: Path) -> None:
    for day in ("2026-11-24", "2026-11-25"):
        (tmp_path / f"in/day={day}").mkdir(parents=True)
        (tmp_path / f"in/day={day}/a.csv").write_text("user\n1\n")
    refused = run("convert", tmp_path / "in/day=2026-11-25", tmp_path / "out/", "--partition-by", "day")
    assert refused.exit_code == 2
    assert f"convert {tmp_path}/in/ with --where" in refused.stderr
    advised = ["--where", "day == '2026-11-25'"]
    assert run("convert", tmp_path / "in/", tmp_path / "out/", "--partition-by", "day", *advised).exit_code == 0
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_dir()] == ["day=2026-11-25"]
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"with filters=\[\('day', '==', '2026-11-25'\)\]"):
        tfr.convert(tmp_path / "in/day=2026-11-25", tmp_path / "b/", target_options={"partition_by": "day"})
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="it has: user"):
        tfr.convert(tmp_path / "in/day=2026-11-25", tmp_path / "b/", target_options={"partition_by": "hour"})


def test_another_type_is_not_appended(run, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x\n1\n")
    (tmp_path / "y.csv").write_text("x\na\n")
    assert run("convert", tmp_path / "x.csv", f"{tmp_path}/d/").exit_code == 0
    refused = run("convert", tmp_path / "y.csv", f"{tmp_path}/d/", "--append")
    assert "no type holds both; cast the column (tfr convert: --type x=int64)\n" in refused.stderr


def test_a_transaction_is_appended_once(run, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x\n1\n")
    arguments = ["convert", f"{tmp_path}/x.csv", f"{tmp_path}/d/", "--append", "--txn"]
    assert run(*arguments, "a=b=7").exit_code == 0
    again = run(*arguments, "a=b=6")
    assert (again.exit_code, tfr.count(f"{tmp_path}/d/")) == (0, 1)
    assert "nothing written, as the transaction is in the dataset" in again.stdout
    for bad in ("x", "x=", "=1", "x=1.5", "x=-1"):
        refused = run(*arguments, bad)
        assert (refused.exit_code, "expected JOB=NUMBER, such as daily=17" in refused.stderr) == (2, True)
    refused = run("convert", f"{tmp_path}/x.csv", f"{tmp_path}/d/", "--txn", "a=8")
    assert (refused.exit_code, "--txn a=8 is for --mode append" in refused.stderr) == (2, True)
    asked = run("sql", f"SELECT * FROM '{tmp_path}/d/'", "-o", f"{tmp_path}/d/", "--append", "--txn", "a=b=7")
    assert (asked.exit_code, tfr.count(f"{tmp_path}/d/")) == (0, 1)


def test_rename(run, tmp_path: Path) -> None:
    source, target = tmp_path / "a.tfrecord", tmp_path / "a.jsonl"
    tfr.write_tfrecord({"image/encoded": [b"x"] * 3, "image/label": [1, 2, 3], "word": ["x", "y", "x"]}, source)
    names = ("--rename", "image/label=cls", "--rename", "word=w")
    shown = run("convert", source, target, "-c", "image/label,word", "--where", "image/label > 1", *names)
    assert shown.exit_code == 0, shown.stderr
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert rows == [{"cls": 2, "w": "y"}, {"cls": 3, "w": "x"}]
    shown = run("convert", source, target, "--rename", "label")
    assert "expected NAME=NEW, such as image/encoded=jpg" in shown.stderr
    shown = run("convert", source, tmp_path / "a.tar", "-c", "image/encoded")
    assert "--rename image/encoded=jpg gives it another name" in shown.stderr
