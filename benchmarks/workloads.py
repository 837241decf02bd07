"""The workloads: their columns, as Arrow tables of generated values.

A `Variant` sets the seed, the names of the columns and the number of rows, so that a run can show that nothing is
tuned to one of them. `benchmarks.workload_files` writes the files.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DATA = Path(__file__).resolve().parent.parent / "bench-data"
VERSION = 1  # of the workloads; raise it when their content changes
SEED = 20_260
VARIABLE = "TFRECORD_IO_BENCH_VARIANT"  # environment variable that hands the variant to other processes
BOX = ("xmin", "xmax", "ymin", "ymax")
ANIMALS = [b"cat", b"dog", b"chicken", b"horse", b"goat"]


@dataclass(frozen=True, slots=True)
class Variant:
    """What may differ between two runs without changing a ratio.

    Attributes
    ----------
    seed : int
        Of all values.
    names : str
        "own": the names of the columns as in this file; "random": random names of 3 to 24 letters.
    share : float
        Part of the rows.
    """

    seed: int = SEED
    names: str = "own"
    share: float = 1.0

    @classmethod
    def drawn(cls, share: float = 1.0) -> Variant:
        """One that no run had before: figures must not depend on values and names that the code may be tuned to."""
        return cls(secrets.randbelow(10**9), "random", share)

    @classmethod
    def of(cls, text: str) -> Variant:
        """The one that a file of results describes."""
        seed, names, share = text.split()
        return cls(int(seed), names, float(share))

    @classmethod
    def current(cls) -> Variant:
        return cls.of(os.environ.get(VARIABLE, f"{SEED} own 1.0"))

    def apply(self) -> None:
        """Use it in this process and in those that it starts."""
        os.environ[VARIABLE] = f"{self.seed} {self.names} {self.share}"

    @property
    def suffix(self) -> str:
        """Part of the names of the files."""
        parts = [f"s{self.seed}" * (self.seed != SEED), self.names * (self.names != "own")]
        return "-".join(["", *filter(None, parts), *([f"x{self.share:g}"] if self.share != 1 else [])])

    def renamed(self, name: str) -> str:
        """The name of a column in this variant."""
        if self.names == "own":
            return name
        rng = generator("names of columns", name)
        return bytes(rng.integers(97, 123, rng.integers(3, 25), np.uint8)).decode() + f"_{len(name)}"


@dataclass(frozen=True, slots=True)
class Workload:
    """One file to read or write.

    Attributes
    ----------
    full_rows : int
        Rows of the variant with all rows.
    make : callable
        ``make(rows)`` returns the columns: int64, float32 or binary, or lists of them, with nulls for absent features.
    fixed_lists : tuple of (str, int)
        List columns of fixed length.
    compression : str
        TensorFlow's name of it.
    own_order : bool
        Features are in the order of TensorFlow's Python protobuf, which depends on the set of names in the record and
        differs from process to process; else they are sorted by name.
    """

    name: str
    title: str
    full_rows: int
    make: Callable[[int], pa.Table]
    fixed_lists: tuple[tuple[str, int], ...] = ()
    compression: str = ""
    own_order: bool = True

    @property
    def rows(self) -> int:
        return max(1, round(self.full_rows * Variant.current().share))

    @property
    def fixed(self) -> dict[str, int]:
        variant = Variant.current()
        return {variant.renamed(name): length for name, length in self.fixed_lists}

    def table(self, rows: int) -> pa.Table:
        variant = Variant.current()
        made = self.make(rows)
        return made.rename_columns([variant.renamed(name) for name in made.column_names])

    @property
    def suffix(self) -> str:
        return ".tfrecord.gz" if self.compression else ".tfrecord"

    @property
    def path(self) -> Path:
        return DATA / f"{self.name.removesuffix('.gz')}-v{VERSION}{Variant.current().suffix}{self.suffix}"


def generator(*names: str) -> np.random.Generator:
    return np.random.default_rng([Variant.current().seed, *"".join(names).encode()])


def _offsets(lengths: np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def lists(values: np.ndarray, lengths: np.ndarray) -> pa.ListArray:
    return pa.ListArray.from_arrays(_offsets(lengths), pa.array(values))


def _binary(lengths: np.ndarray, content: np.ndarray) -> pa.BinaryArray:
    buffers = [None, pa.py_buffer(_offsets(lengths)), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def words(rng: np.random.Generator, rows: int, shortest: int, longest: int) -> pa.BinaryArray:
    lengths = rng.integers(shortest, longest + 1, rows)
    return _binary(lengths, rng.integers(97, 123, int(lengths.sum()), np.uint8))


def _tutorial(rows: int) -> pa.Table:
    rng = generator("tutorial")
    feature1 = rng.integers(0, 5, rows)
    return pa.table(
        {
            "feature0": rng.integers(0, 2, rows),
            "feature1": feature1,
            "feature2": pa.array(ANIMALS, pa.binary()).take(pa.array(feature1)),
            "feature3": rng.standard_normal(rows).astype(np.float32),
        }
    )


def _wide(rows: int) -> pa.Table:
    rng = generator("wide")
    columns: dict[str, object] = {}
    for i in range(16):
        columns[f"count_{i:02}"] = rng.integers(-(2 ** (2 * i + 4)), 2 ** (2 * i + 4), rows)
        columns[f"measure_{i:02}"] = rng.standard_normal(rows).astype(np.float32)
    for i in range(8):
        columns[f"code_{i:02}"] = words(rng, rows, 3, 20)
    return pa.table(columns)


def _blobs(rows: int) -> pa.Table:
    rng = generator("blobs")
    lengths = rng.integers(8 << 10, (32 << 10) + 1, rows)
    content = np.frombuffer(rng.bytes(int(lengths.sum())), np.uint8)
    return pa.table({"data": _binary(lengths, content), "label": rng.integers(0, 1000, rows)})


def _vectors(rows: int) -> pa.Table:
    values = generator("vectors").standard_normal(rows * 768, np.float32)
    return pa.table({"embedding": lists(values, np.full(rows, 768))})


def _tokens(rows: int) -> pa.Table:
    rng = generator("tokens")
    lengths = rng.integers(64, 961, rows)
    return pa.table({"tokens": lists(rng.integers(0, 50_000, int(lengths.sum())), lengths)})


def _images(rows: int) -> pa.Table:
    rng = generator("images")
    content = np.frombuffer(rng.bytes(rows * 784), np.uint8)
    return pa.table({"image": _binary(np.full(rows, 784), content), "label": rng.integers(0, 10, rows)})


def _scalar(rng: np.random.Generator, rows: int, i: int) -> pa.Array:
    """Column `i` of a table with many: of five columns two are integers, two floats, one is words."""
    if i % 5 < 2:
        return pa.array(rng.integers(0, 2 ** (3 + i % 30), rows))
    return pa.array(rng.standard_normal(rows).astype(np.float32)) if i % 5 < 4 else words(rng, rows, 2, 12)


def _columns_1000(rows: int) -> pa.Table:
    rng = generator("columns_1000")
    return pa.table({f"column_{i:04}": _scalar(rng, rows, i) for i in range(1000)})


def _detection(rows: int) -> pa.Table:
    """Boxes of object detection: four lists of floats, their labels and texts, and an image."""
    rng = generator("detection")
    lengths = rng.integers(0, 20, rows)
    boxes = int(lengths.sum())
    sides = {f"image/object/bbox/{k}": lists(rng.random(boxes, np.float32), lengths) for k in BOX}
    texts = pa.array(ANIMALS, pa.binary()).take(pa.array(rng.integers(0, 5, boxes)))
    content = np.frombuffer(rng.bytes(rows * (8 << 10)), np.uint8)
    return pa.table(
        sides
        | {
            "image/object/class/label": lists(rng.integers(1, 90, boxes), lengths),
            "image/object/class/text": pa.ListArray.from_arrays(_offsets(lengths), texts),
            "image/encoded": _binary(np.full(rows, 8 << 10), content),
            "image/height": np.full(rows, 480),
            "image/width": np.full(rows, 640),
            "image/filename": pa.array([b"%012d.jpg" % row for row in range(rows)], pa.binary()),
        }
    )


def _log(rows: int) -> pa.Table:
    """Lines of a log: twelve texts, of 6 to 190 bytes, of some of 5,000 words."""
    rng = generator("log")
    words = pa.array([rng.bytes(int(size)).hex() for size in rng.integers(3, 12, 5000)])
    columns = {}
    for i in range(12):
        counts = rng.integers(1, 9, rows)
        picked = words.take(pa.array(rng.integers(0, 5000, int(counts.sum()))))
        joined = pc.binary_join(pa.ListArray.from_arrays(_offsets(counts), picked), " ")
        columns[f"field_{i}"] = joined.cast(pa.binary())
    return pa.table(columns)


def _ids(rows: int) -> pa.Table:
    """Hashed identifiers: 64-bit ones, single and in lists of 0 to 49, and 39 below 2²⁰."""
    rng = generator("ids")
    lengths = rng.integers(0, 50, rows)
    wide = (-(2**63), 2**63 - 1)
    return pa.table(
        {
            "user": rng.integers(*wide, rows),
            "history": lists(rng.integers(*wide, int(lengths.sum())), lengths),
            "cross": lists(rng.integers(0, 2**20, 39 * rows), np.full(rows, 39)),
            "clicked": (rng.random(rows) < 0.03).astype(np.float32),
        }
    )


def _clicks(rows: int) -> pa.Table:
    """Rows as of Criteo's logs: a label, 13 counts, and 26 categories as texts of 8 bytes."""
    rng = generator("clicks")
    columns: dict[str, object] = {"label": (rng.random(rows) < 0.03).astype(np.int64)}
    columns |= {f"count_{i:02}": rng.integers(0, 2 ** (2 + i), rows) for i in range(13)}
    columns |= {f"category_{i:02}": words(rng, rows, 8, 8) for i in range(26)}
    return pa.table(columns)


def _graph(rows: int) -> pa.Table:
    """Nodes of a graph: 0 to 63 neighbours, as many weights of edges, and 64 floats."""
    rng = generator("graph")
    lengths = rng.integers(0, 64, rows)
    edges = int(lengths.sum())
    columns: dict[str, object] = {"node": rng.permutation(rows)}
    columns["neighbours"] = lists(rng.integers(0, rows, edges), lengths)
    columns["weights"] = lists(rng.random(edges, np.float32), lengths)
    columns["features"] = lists(rng.standard_normal(64 * rows, np.float32), np.full(rows, 64))
    return pa.table(columns)


def _series(rows: int) -> pa.Table:
    """Time series: 24 to 500 steps, as seconds since 1970 and two lists of floats."""
    rng = generator("series")
    lengths = rng.integers(24, 501, rows)
    steps = int(lengths.sum())
    columns: dict[str, object] = {"sensor": words(rng, rows, 12, 12)}
    columns["time"] = lists(1_700_000_000 + 60 * np.arange(steps), lengths)
    columns |= {name: lists(rng.standard_normal(steps, np.float32), lengths) for name in ("value", "target")}
    return pa.table(columns)


def _documents(rows: int) -> pa.Table:
    """Texts of 0.5 to 6 KB, a URL, and four scalars."""
    rng = generator("documents")
    columns: dict[str, object] = {"text": words(rng, rows, 500, 6000), "url": words(rng, rows, 20, 90)}
    columns |= {name: rng.integers(0, 2**20, rows) for name in ("tokens", "fetched")}
    columns |= {name: rng.random(rows, np.float32) for name in ("score", "quality")}
    return pa.table(columns)


def _utterances(rows: int) -> pa.Table:
    """Speech: 80 floats for each of 50 to 400 frames, and a transcript."""
    rng = generator("utterances")
    lengths = 80 * rng.integers(50, 401, rows)
    values = rng.standard_normal(int(lengths.sum()), np.float32)
    return pa.table({"frames": lists(values, lengths), "transcript": words(rng, rows, 20, 200)})


def _multihot(rows: int) -> pa.Table:
    """16 lists of 0 to 5 integers, and 16 of as many floats."""
    rng = generator("multihot")
    columns = {}
    for i in range(16):
        lengths = rng.integers(0, 6, rows)
        total = int(lengths.sum())
        columns[f"ids_{i:02}"] = lists(rng.integers(0, 2 ** (4 + i), total), lengths)
        columns[f"weights_{i:02}"] = lists(rng.random(total, np.float32), lengths)
    return pa.table(columns)


def _with_absent(name: str, rows: int, names: list[str], probability: float) -> pa.Table:
    """Scalar columns, each present in a random part of the rows."""
    rng = generator(name)
    columns = {}
    for i, column in enumerate(names):
        absent = pa.array(rng.random(rows) >= probability)
        values = _scalar(rng, rows, i)
        columns[column] = pc.if_else(absent, pa.scalar(None, values.type), values)
    return pa.table(columns)


def _sparse(rows: int) -> pa.Table:
    return _with_absent("sparse", rows, [f"column_{i:02}" for i in range(60)], 0.3)


def _optional_300(rows: int) -> pa.Table:
    return _with_absent("optional_300", rows, [f"optional_{i:03}" for i in range(300)], 0.05)


def _long_names(rows: int) -> pa.Table:
    rng = generator("long names")
    names = [f"{i:02}/" + bytes(rng.integers(97, 123, rng.integers(5, 58), np.uint8)).decode() for i in range(60)]
    return _with_absent("long_names", rows, names, 0.3)


WORKLOADS = {
    w.name: w
    for w in (
        Workload("tutorial", "500 k × 4 scalars", 500_000, _tutorial),
        Workload("wide", "100 k × 40 scalar columns", 100_000, _wide),
        Workload("blobs", "15 k × 8–32 KiB bytes", 15_000, _blobs),
        Workload("vectors", "60 k × 768 floats", 60_000, _vectors, fixed_lists=(("embedding", 768),)),
        Workload("tokens", "60 k × ragged 64–960 int64", 60_000, _tokens),
        Workload("images", "120 k × 784 bytes + label", 120_000, _images),
        Workload("columns_1000", "2 k × 1,000 scalar columns", 2_000, _columns_1000),
        Workload("sparse", "100 k × 60 columns, each in 30 %", 100_000, _sparse, own_order=False),
        Workload("optional_300", "100 k × 300 columns, each in 5 %", 100_000, _optional_300, own_order=False),
        Workload("long_names", "100 k × 60 long names in 30 %, own order", 100_000, _long_names),
        Workload("detection", "30 k × up to 19 boxes and an image", 30_000, _detection),
        Workload("log", "60 k × 12 texts of a log", 60_000, _log),
        Workload("ids", "100 k × lists of hashed identifiers", 100_000, _ids, fixed_lists=(("cross", 39),)),
        Workload("clicks", "100 k × 14 integers and 26 categories", 100_000, _clicks),
        Workload("graph", "60 k × 64 floats and up to 63 edges", 60_000, _graph, fixed_lists=(("features", 64),)),
        Workload("series", "20 k × 24–500 steps of time series", 20_000, _series),
        Workload("documents", "20 k × texts of 0.5–6 KB", 20_000, _documents),
        Workload("utterances", "3 k × 50–400 frames of 80 floats, a transcript", 3_000, _utterances),
        Workload("multihot", "60 k × 32 lists of 0–5 numbers", 60_000, _multihot),
    )
}
PLAIN = tuple(WORKLOADS)
GROUPS = {  # over which means are taken
    "the first eight": PLAIN[:8],
    "detection to series": ("detection", "log", "ids", "clicks", "graph", "series"),
    "documents to multihot": ("documents", "utterances", "multihot"),
}
WORKLOADS |= {f"{name}.gz": replace(WORKLOADS[name], name=f"{name}.gz", compression="GZIP") for name in PLAIN}


def kind_of(column: pa.DataType) -> str:
    """The feature type of a column: "int64", "float" or "bytes".

    >>> kind_of(pa.list_(pa.float32()))
    'float'
    """
    value = column.value_type if pa.types.is_list(column) else column
    return "bytes" if pa.types.is_binary(value) else "float" if pa.types.is_floating(value) else "int64"


def rows_of(table: pa.Table, batch: int = 1024) -> Iterator[dict[str, list]]:
    """Rows as dicts of lists of Python values, without absent features, as in programs that do not use columns."""
    for part in table.to_batches(max_chunksize=batch):
        columns = [c.to_pylist() for c in part.columns]
        wrapped = [
            c if pa.types.is_list(t) else [None if v is None else [v] for v in c]
            for c, t in zip(columns, part.schema.types, strict=True)
        ]
        for row in zip(*wrapped, strict=True):
            yield {name: v for name, v in zip(part.schema.names, row, strict=True) if v is not None}
