"""Calls that take a source, with the kinds of sources that each call takes or refuses."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tfrecord_io as tfr
from tfrecord_io.read.file_indexes import check_indexes, write_indexes
from tfrecord_io.read.scan import Scan

f = pc.field


ROWS = pa.table(
    {
        "n": pa.array(range(24), pa.int32()),
        "key": [f"k{i % 5}" for i in range(24)],
        "steps/x": pa.array([[i, i + 1, i + 2] for i in range(24)], pa.list_(pa.int64(), 3)),
    }
)


Run = Callable[[Any, Path], Any]


Refuses = Callable[["Kind"], bool]


@dataclass(frozen=True)
class Kind:
    """How a source is made of two datasets, `a` with the rows 0 to 15 and `b` with the others.

    Attributes
    ----------
    make : callable
    same : callable or pyarrow.Table
        Makes the same of paths; or the rows that it has.
    rows, columns, piece : bool
        Some rows or columns are selected, or it is a piece.
    """

    make: Callable[[str, str], Any]
    same: Any
    rows: bool = False
    columns: bool = False
    piece: bool = False

    @property
    def is_part(self) -> bool:
        return self.rows or self.columns or self.piece


def of(*ranges: tuple[int, int]) -> pa.Table:
    return pa.concat_tables([ROWS[begin:end] for begin, end in ranges])


def filtered(a: str, b: str) -> Any:
    return tfr.dataset(a).filter(f("n") > 4).filter((f("key") != "k2") & (f("n") != 9))


KINDS = {
    "dataset": Kind(lambda a, b: tfr.dataset(a), lambda a, b: a),
    "datasets": Kind(lambda a, b: [tfr.dataset(a), tfr.dataset(b)], lambda a, b: [a, b]),
    "dataset and path": Kind(lambda a, b: [tfr.dataset(a), b], lambda a, b: [a, b]),
    "sum": Kind(lambda a, b: tfr.dataset(b) + tfr.dataset(a), lambda a, b: [b, a]),
    "filter": Kind(filtered, of((5, 7), (8, 9), (10, 12), (13, 16)), rows=True),
    "offset and limit": Kind(lambda a, b: tfr.dataset(a).offset(3).limit(9), of((3, 12)), rows=True),
    "select": Kind(
        lambda a, b: tfr.dataset(a).select(["steps/x", "n", "key"]), of((0, 16)).select([2, 0, 1]), columns=True
    ),
    "filters=": Kind(
        lambda a, b: tfr.dataset(a, filters=(f("n") > 4) & (f("key") != "k2") & (f("n") != 9)),
        of((5, 7), (8, 9), (10, 12), (13, 16)),
        rows=True,
    ),
    "offset= and limit=": Kind(lambda a, b: tfr.dataset(a, offset=3, limit=9), of((3, 12)), rows=True),
    "columns=": Kind(
        lambda a, b: tfr.dataset(a, columns=["steps/x", "n", "key"]), of((0, 16)).select([2, 0, 1]), columns=True
    ),
    "piece": Kind(lambda a, b: tfr.dataset(a).pieces(2)[1], of((8, 16)), piece=True),
    "piece of a file": Kind(lambda a, b: tfr.dataset("all.tfrecord").pieces(3)[1], of((5, 15)), piece=True),
    "parts": Kind(
        lambda a, b: [tfr.dataset(a).pieces(2)[1], tfr.dataset(b).filter(f("n") > 21), b],
        of((8, 16), (22, 24), (16, 24)),
        rows=True,
        piece=True,
    ),
}


def table(found: pa.Table) -> pa.Table:
    return found.replace_schema_metadata(None).combine_chunks()


def arrays(found: dict[str, Any]) -> dict[str, Any]:
    return {name: values.tolist() for name, values in found.items()}


def row(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in found.items()}


def stream(source: Any) -> pa.Table:
    with tfr.open_reader(source, batch_size=5) as reader:
        return table(pa.Table.from_batches(reader, reader.schema))


def payloads(source: Any) -> list[Any]:
    with tfr.RecordReader(source) as reader:
        return [arrays(tfr.decode_example(payload)) for payload in reader]


def report(source: Any) -> Any:
    made = tfr.report(source).to_dict()
    return str(made["features"]), made["sampling"]["records"]


def exported(name: str) -> Run:
    def run(source: Any, out: Path) -> Any:
        tfr.convert(source, out / name)
        return (out / name).read_bytes()

    return run


def numbers(report: Any) -> Any:
    found = np.load(report.path)
    return list(found) if isinstance(found, np.lib.npyio.NpzFile) else found.tolist()


def by_sql(source: Any, out: Path) -> Any:
    connection = pytest.importorskip("duckdb").connect()
    tfr.register_duckdb(connection, source, name="t")
    return connection.sql("SELECT count(*), sum(n), min(key) FROM t WHERE n > 6").fetchall()


def by_polars(source: Any, out: Path) -> Any:
    polars = pytest.importorskip("polars")
    return tfr.scan_polars(source).filter(polars.col("n") > 6).collect().to_dict(as_series=False)


def by_xarray(source: Any, out: Path) -> Any:
    xarray = pytest.importorskip("xarray")
    return xarray.open_dataset(source, engine="tfrecord")["n"].values.tolist()


def copied(call: Callable[[Any, Path], Any]) -> Run:
    def run(source: Any, out: Path) -> Any:
        made = call(source, out / "copy.tfrecord")
        return made.records, table(tfr.read_table(out / "copy.tfrecord"))

    return run


def in_parts(call: Callable[[Any, Path], Any]) -> Run:
    def run(source: Any, out: Path) -> Any:
        made = call(source, out / "parts")
        return {name: (each.records, table(tfr.read_table(each.path))) for name, each in made.items()}

    return run


def by_number(source: Any, out: Path) -> Any:
    with tfr.open_random(source, key="n") as records:
        return table(records[:]), records.lookup(8)["key"]


def selected_by_number(source: Any, out: Path) -> Any:
    with tfr.open_random(source) as records:
        some = records.select([("key", "==", "k1")])
        return row(some[0]), table(some[:])


def repaired(source: Any, out: Path) -> Any:
    return tfr.salvage(source, out / "salvaged/").records, sorted(map(len, os.walk(out / "salvaged")))


def in_place(call: Callable[[Any], Any]) -> Run:
    """A call that changes a dataset, and the rows that it has then."""

    def run(source: Any, out: Path) -> Any:
        one = source[0] if isinstance(source, list) else source
        folder = one if isinstance(one, str) else Path(tfr.dataset(one).files[0]).parent
        return call(source).records, table(tfr.read_table(folder))

    return run


def transferred(source: Any, out: Path) -> Any:
    return tfr.copy(source, out / "backup/").records, table(tfr.read_table(out / "backup/"))


def never(kind: Kind) -> bool:
    return False


def is_part(kind: Kind) -> bool:
    """Calls that work on whole files."""
    return kind.is_part


def has_columns(kind: Kind) -> bool:
    """Calls that work on whole records."""
    return kind.columns


def as_read(path: Path, source: Any) -> tfr.Dataset:
    """A file, of which damage is treated as that of `source` is: a mixture has one `on_error`."""
    return tfr.dataset(path, on_error=Scan.unwrap(tfr.dataset(source)).options.on_error)


CALLS: dict[str, tuple[Run, Refuses]] = {
    "read_table": (lambda s, out: table(tfr.read_table(s)), never),
    "read_table, narrowed": (
        lambda s, out: table(tfr.read_table(tfr.dataset(s, threads=1), filters=f("n") > 7, limit=4)),
        never,
    ),
    "read_table, of a text": (lambda s, out: table(tfr.read_table(s, filters=f("key") == "k1")), never),
    "read_table, of some columns": (lambda s, out: table(tfr.read_table(s, columns=["key"])), never),
    "read_tfrecord": (lambda s, out: repr(tfr.read_tfrecord(s).to_dict("list")), never),
    "read_arrays": (lambda s, out: arrays(tfr.read_arrays(s)), never),
    "iter_arrays": (lambda s, out: [arrays(batch) for batch in tfr.iter_arrays(s, batch_size=4)], never),
    "open_reader": (lambda s, out: stream(s), never),
    "dataset": (lambda s, out: table(tfr.dataset(s).to_table()), never),
    "dataset, pickled": (lambda s, out: table(pickle.loads(pickle.dumps(tfr.dataset(s))).to_table()), never),
    "dataset, in pieces": (
        lambda s, out: table(pa.concat_tables(piece.read() for piece in tfr.dataset(s).pieces(3))),
        lambda kind: kind in (KINDS["offset and limit"], KINDS["offset= and limit="]),
    ),
    "Dataset.head": (lambda s, out: table(tfr.dataset(s).head(3)), never),
    "Dataset.to_pandas": (lambda s, out: repr(tfr.dataset(s).to_pandas().to_dict("list")), never),
    "Dataset.to_grain": (lambda s, out: row(tfr.dataset(s).to_grain()[0]), lambda kind: kind is KINDS["parts"]),
    "infer_schema": (lambda s, out: sorted(map(repr, tfr.infer_schema(s))), never),
    "count": (lambda s, out: tfr.count(s), lambda kind: False),
    "describe": (lambda s, out: {**tfr.describe(s).to_dict(), "files": None}, never),
    "report": (lambda s, out: report(s), never),
    "diff": (lambda s, out: tfr.diff(s, out / "all.tfrecord", any_order=True).to_dict(), never),
    "read_metadata": (lambda s, out: tfr.read_metadata(s).schema.names, never),
    "join": (lambda s, out: table(tfr.join(s, {"key": ["k1"], "m": [1]}, on="key").read_all()), never),
    "explode": (lambda s, out: table(tfr.explode(s).read_all()), never),
    "implode": (lambda s, out: table(tfr.formats.implode(s, lists="steps/*").read_all()), never),
    "windows": (lambda s, out: table(tfr.windows(s, length=2).to_table()), never),
    "mix": (
        lambda s, out: table(tfr.mix([s, as_read(out / "all.tfrecord", s)], stop="all").to_table()),
        lambda kind: False,
    ),
    "convert to TFRecord": (copied(lambda s, path: tfr.convert(s, path)), never),
    "convert to JSON": (exported("rows.jsonl"), never),
    "convert to Parquet": (exported("rows.parquet"), never),
    "convert to npz": (exported("rows.npz"), never),
    "scan_polars": (by_polars, never),
    "register_duckdb": (by_sql, never),
    "xarray": (by_xarray, never),
    "write_tfrecord": (copied(lambda s, path: tfr.write_tfrecord(tfr.dataset(s), path)), never),
    "write_npy": (lambda s, out: numbers(tfr.formats.write_npy(s, out / "n.npy", column="n")), never),
    "write_npz": (lambda s, out: sorted(numbers(tfr.formats.write_npz(s, out / "n.npz", columns=["n"]))), never),
    "RecordReader": (lambda s, out: payloads(s), has_columns),
    "merge": (copied(lambda s, path: tfr.merge(s, path)), has_columns),
    "split": (copied(lambda s, path: tfr.split(s, f"{path}@2") and tfr.merge(f"{path}@2", path)), has_columns),
    "split by": (in_parts(lambda s, path: tfr.split(s, path, by="key")), has_columns),
    "split in fractions": (in_parts(lambda s, path: tfr.split(s, path, fractions=[0.5, 0.5])), has_columns),
    "shuffle": (copied(lambda s, path: tfr.shuffle(s, path, seed=3)), has_columns),
    "sample": (copied(lambda s, path: tfr.sample(s, path, n=3, seed=3)), has_columns),
    "dedupe": (copied(lambda s, path: tfr.dedupe(s, path, by="key", keep="last")), has_columns),
    "open_random": (by_number, lambda kind: kind.rows),
    "open_random, selected": (selected_by_number, lambda kind: kind.rows),
    "verify": (lambda s, out: (tfr.verify(s).ok, tfr.verify(s).records), is_part),
    "salvage": (repaired, is_part),
    "copy": (transferred, is_part),
    "compact": (in_place(tfr.compact), is_part),
    "delete": (in_place(lambda s: tfr.delete(s, filters=f("n") == 9)), is_part),
    "build_index": (lambda s, out: [each.records for each in tfr.build_index(s, columns="n")], is_part),
    "write_indexes": (lambda s, out: [each.records for each in write_indexes(s)], is_part),
    "check_indexes": (lambda s, out: [type(each.error) for each in check_indexes(s)], is_part),
}


def outcome(run: Run, make: Callable[[], Any], files: Path, place: Path) -> Any:
    """The result of a call on copies of the files, or the class of what it raises, and why."""
    shutil.copytree(files, place)
    os.chdir(place)
    try:
        return run(make(), place)
    except (tfr.TFRecordError, ValueError, TypeError) as error:
        return type(error), str(error)
