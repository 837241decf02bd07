"""Other engines on the same files: polars, DuckDB, Dask and Ray.

``make bench BENCH_ARGS=--engines``. polars and DuckDB select columns and rows of a file that TensorFlow wrote; the same
columns and rows are read by ``read_table`` with ``columns=`` and ``filters=``. All use all cores, begin with the path
and end with the result in memory: a table, a frame, a table. Dask and Ray reduce a dataset of many files with one and
with two processes; Ray also reads a file by its own ``read_tfrecords``: see `benchmarks.special.processes`.
Contenders alternate as in `benchmarks.contest`, clusters run one after the other, and the best time counts. The exit
code is 1 if a goal is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import report
from benchmarks.contest import Contender, Result, contest
from benchmarks.readers import library
from benchmarks.special import processes
from benchmarks.workload_files import ensure
from benchmarks.workloads import WORKLOADS, Variant, Workload

MOST = 1.2  # times as long as read_table
SCALING = 1.6  # times as fast with two processes as with one
RAY = 5.0  # times as fast as Ray's own reader
TURNS = 2  # clusters of each number of processes, one after the other
PACKAGES = ("tfrecord_io", "pyarrow", "polars", "duckdb", "dask", "ray", "tensorflow-cpu", "tensorflow")
HERE = "benchmarks.special.engines"


@dataclass(frozen=True, slots=True)
class Query:
    """Columns of a workload, and the rows where a number is in a range.

    Attributes
    ----------
    columns : tuple of str
    where : str
        The column of the condition, whose values are from `least` to `most`.
    """

    columns: tuple[str, ...]
    where: str
    least: int
    most: int

    def renamed(self) -> Query:
        """With the names of the variant."""
        name = Variant.current().renamed
        return Query(tuple(map(name, self.columns)), name(self.where), self.least, self.most)


QUERIES = {
    "tutorial": Query(("feature2", "feature3"), "feature1", 3, 3),
    "wide": Query(("count_03", "count_11", "measure_02", "measure_09", "code_01", "code_06"), "count_02", 0, 25),
    "images": Query(("image",), "label", 7, 7),
}


class _Contender:
    """A contender that reads the query of a workload; `filtered`: only its rows."""

    share = 1.0
    settings: Any = ((),)

    def __init__(self, workload: Workload, filtered: bool) -> None:
        self.tfr, self.path, self.filtered = library(), str(workload.path), filtered
        self.query = QUERIES[workload.name].renamed()
        self.rows = workload.rows
        if filtered:
            values = workload.table(workload.rows)[self.query.where]
            passing = pc.and_(pc.greater_equal(values, self.query.least), pc.less_equal(values, self.query.most))
            self.rows = pc.sum(passing).as_py()

    @staticmethod
    def count(result: Any) -> int:
        return len(result)


class ReadTable(_Contender):
    """``read_table``."""

    def run(self, setting: tuple[()]) -> pa.Table:
        query = self.query
        rows = [(query.where, ">=", query.least), (query.where, "<=", query.most)]
        return self.tfr.read_table(self.path, columns=query.columns, filters=rows if self.filtered else None)


class Polars(_Contender):
    """``scan_polars``, ``filter``, ``select``, ``collect``."""

    def __init__(self, workload: Workload, filtered: bool) -> None:
        import polars

        super().__init__(workload, filtered)
        self.col = polars.col

    def run(self, setting: tuple[()]) -> Any:
        query, frame = self.query, self.tfr.scan_polars(self.path)
        if self.filtered:
            frame = frame.filter(self.col(query.where) >= query.least, self.col(query.where) <= query.most)
        return frame.select(query.columns).collect()


class DuckDB(_Contender):
    """``register_duckdb``, ``SELECT … WHERE``, to Arrow, in a connection that is open already."""

    def __init__(self, workload: Workload, filtered: bool) -> None:
        import duckdb

        super().__init__(workload, filtered)
        self.connection = duckdb.connect()

    def run(self, setting: tuple[()]) -> pa.Table:
        query = self.query
        self.tfr.register_duckdb(self.connection, self.path, name="records")
        where = f'WHERE "{query.where}" BETWEEN {query.least} AND {query.most}' if self.filtered else ""
        names = ", ".join(f'"{name}"' for name in query.columns)
        return self.connection.sql(f"SELECT {names} FROM records {where}").to_arrow_table()


class DuckDBCopy(DuckDB):
    """The same ``SELECT`` of a table in memory, without reading: what DuckDB's own copies take."""

    def __init__(self, workload: Workload, filtered: bool) -> None:
        super().__init__(workload, filtered)
        self.table = self.tfr.read_table(self.path, columns=self.query.columns)

    def run(self, setting: tuple[()]) -> pa.Table:
        return self.connection.from_arrow(self.table).to_arrow_table()


@dataclass(slots=True)
class Comparison:
    """Two results of one contest.

    Attributes
    ----------
    work : str
    own, other : Result
        The ratio is the time of `other` divided by that of `own`.
    most, least : float or None
        The goal for the ratio.
    """

    work: str
    own: Result
    other: Result
    most: float | None = None
    least: float | None = None

    @property
    def ratio(self) -> float:
        return self.other.seconds / self.own.seconds

    @property
    def reached(self) -> bool:
        if self.own.error or self.other.error:
            return False
        return (self.most is None or self.ratio <= self.most) and (self.least is None or self.ratio >= self.least)

    def row(self) -> list[str]:
        own, other = (result.error or f"{result.seconds:.3f} s" for result in (self.own, self.other))
        failed = self.own.error or self.other.error
        goal = "" if self.most is None else f"≤ {self.most}×"
        goal = goal if self.least is None else f"≥ {self.least:g}×"
        names = f"{self.other.name} {self.other.setting}".strip(), f"{self.own.name} {self.own.setting}".strip()
        missed = "" if self.reached else "missed"
        return [self.work, names[0], other, names[1], own, "–" if failed else f"{self.ratio:.2f}×", goal, missed]


def _queries(repeat: int, budget: float) -> Iterator[Comparison]:
    ensure(list(QUERIES))
    for name in QUERIES:
        workload = WORKLOADS[name]
        for filtered in (True, False):
            kinds = {"read_table": "ReadTable", "polars": "Polars", "DuckDB": "DuckDB"}
            if not filtered:
                kinds["DuckDB, from memory"] = "DuckDBCopy"
            contenders = [Contender(f"{HERE}:{kind}", label, {"filtered": filtered}) for label, kind in kinds.items()]
            own, *others = contest(contenders, workload, repeat, budget)
            work = f"{workload.title}, {'columns and rows' if filtered else 'columns'}"
            for other in others:
                yield Comparison(work, own, other, most=None if "memory" in other.name else MOST)


def _processes(kind: str, repeat: int, budget: float) -> Iterator[Comparison]:
    workload = processes.SHARDED
    two, one = _alternately(kind, workload, repeat, budget)
    yield Comparison(workload.title, two, one, least=SCALING)


def _alternately(kind: str, workload: Workload, repeat: int, budget: float) -> list[Result]:
    """The best times of clusters with two processes and with one, which never run at the same time."""
    found: list[Result] = []
    for _ in range(TURNS):
        turn = []
        for n in (2, 1):
            label = f"{kind}, {n} process{'es' * (n > 1)}"
            contender = Contender(f"{processes.HERE}:{kind}", label, {"processes": n})
            folder = processes.dataset_of(workload).parent
            turn += contest([contender], workload, max(2, repeat // TURNS), budget / TURNS, folder)
        found = [min(pair, key=lambda result: result.seconds) for pair in zip(turn, found or turn, strict=True)]
    return found


def _ray_readers(repeat: int, budget: float) -> Iterator[Comparison]:
    workload = processes.ROWS
    ensure([workload.name])
    (own,), (other,) = (
        contest([Contender(f"{processes.HERE}:{kind}", label)], workload, max(2, rounds), budget)
        for label, kind, rounds in (("to_ray", "RayRead", repeat), ("read_tfrecords", "RayOwnRead", 2))
    )
    yield Comparison(workload.title, own, other, least=RAY)


PARTS = {
    "queries": _queries,
    "dask": partial(_processes, "Dask"),
    "ray": partial(_processes, "Ray"),
    "ray-own": _ray_readers,
}


def measure(repeat: int = 7, budget: float = 15.0, parts: tuple[str, ...] = tuple(PARTS)) -> tuple[str, bool]:
    """Run all, or some parts; return a table, and whether all goals are reached."""
    found: list[Comparison] = []
    for part in parts:
        for comparison in PARTS[part](repeat, budget):
            found.append(comparison)
            print(" | ".join(comparison.row()), file=sys.stderr, flush=True)
    header = ["", "", "time", "", "time", "ratio", "goal", ""]
    return report.table(header, [each.row() for each in found]), all(each.reached for each in found)


if __name__ == "__main__":
    text, passed = measure(parts=tuple(sys.argv[1:]) or tuple(PARTS))
    print(f"{report.machine(PACKAGES)}.\n\n{text}")
    sys.exit(not passed)
