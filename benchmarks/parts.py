"""The parts of the benchmark: which contenders run on which workload, beside which lower bounds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import filters, import_time, latency, memory, planning, serial
from benchmarks.contest import Contender, contest
from benchmarks.results import Row
from benchmarks.workload_files import RECORDS_OF_A_FILE, ensure, repeated, small_files
from benchmarks.workloads import WORKLOADS, Variant, Workload

THREADS = (1, 2, 4, 8)
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
SMALL_FILES = 10_000
SHARDS = 8
SHARD_CODECS = (None, "gzip", "zstd")
SHARDS_COMPRESSED = ("tutorial", "vectors", "tokens", "images")
OUTPUTS = {"table": "read_table", "pandas": "read_tfrecord", "arrays": "read_arrays"}
READER, COUNTER, WRITER = (
    "benchmarks.readers:TfrecordIo",
    "benchmarks.readers:CountRecords",
    "benchmarks.writers:TfrecordIoWriter",
)
READ_PEERS = ("benchmarks.readers:TfData", "benchmarks.readers:TfxBsl", "benchmarks.readers:Tfrecord")
WRITE_PEERS = (
    "benchmarks.writers:TensorFlowWriter",
    "benchmarks.writers:TfxBslWriter",
    "benchmarks.writers:TfrecordWriter",
)
FLOOR = "benchmarks.floor:Floor"
READ_FLOORS = (FLOOR, "benchmarks.floor:Kernel", "benchmarks.floor:HeaderHop", "benchmarks.floor:ReadBytes")
WRITE_FLOORS = (
    "benchmarks.floor:WriteBytes",
    "benchmarks.floor:WriteBytesAlone",
    "benchmarks.floor:KernelEncode",
    FLOOR,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How thoroughly to measure: at most `repeat` rounds, and about `budget` seconds for each contender."""

    workloads: Sequence[str]
    repeat: int = 7
    budget: float = 30.0
    peers: bool = True
    threads: Sequence[int] = THREADS


@dataclass(frozen=True, slots=True)
class Match:
    """The contenders of one case."""

    case: str
    title: str
    workload: Workload
    own: Sequence[Contender]
    peers: Sequence[Contender] = ()
    floors: Sequence[Contender] = ()
    path: Path | None = None  # of what is read, if not the workload's

    def run(self, part: str, settings: Settings) -> Iterator[Row]:
        peers = self.peers if settings.peers else ()
        roles = ["own"] * len(self.own) + ["peer"] * len(peers) + ["floor"] * len(self.floors)
        print(f"{part}: {self.title} …", file=sys.stderr, flush=True)
        results = contest([*self.own, *peers, *self.floors], self.workload, settings.repeat, settings.budget, self.path)
        for role, result in zip(roles, results, strict=True):
            seconds = result.seconds if result.error is None and result.runs else None
            numbers = {"bytes": result.size} if result.size else {}
            row = Row(part, self.case, result.name, role, seconds, result.setting, result.share, result.error, numbers)
            yield row


def _contenders(specs: Sequence[str], **options: object) -> list[Contender]:
    return [Contender.of(spec, **options) for spec in specs]


def _own(spec: str, threads: Sequence[int], **options: object) -> list[Contender]:
    return [Contender.of(spec, threads=number, **options) for number in threads]


def _workloads(settings: Settings) -> Iterator[Workload]:
    for name in settings.workloads:
        ensure([name])
        yield WORKLOADS[name]


def _read(settings: Settings) -> Iterator[Match]:
    """File → Arrow."""
    for w in _workloads(settings):
        own = _own(READER, settings.threads)
        yield Match(w.name, w.title, w, own, _contenders(READ_PEERS), _contenders(READ_FLOORS))


def _write(settings: Settings) -> Iterator[Match]:
    """Arrow → file."""
    for w in _workloads(settings):
        own = _own(WRITER, settings.threads)
        yield Match(w.name, w.title, w, own, _contenders(WRITE_PEERS), _contenders(WRITE_FLOORS))


def _outputs(settings: Settings) -> Iterator[Match]:
    """File → Arrow, pandas and NumPy."""
    for w in _workloads(settings):
        own = [
            Contender(READER, f"{label}, {number} thread{'s' * (number > 1)}", {"threads": number, "output": output})
            for output, label in OUTPUTS.items()
            for number in settings.threads[:2]
        ]
        yield Match(w.name, w.title, w, own, floors=_contenders(["benchmarks.floor:PandasAllocates", FLOOR]))


def _projection(settings: Settings) -> Iterator[Match]:
    """1 and 10 of 1,000 columns."""
    w = WORKLOADS["columns_1000"]
    ensure([w.name])
    for columns in (1, 10):
        own = _own(READER, settings.threads[:2], columns=columns)
        peers = _contenders(READ_PEERS[:2], columns=columns)
        title = f"{columns} of 1,000 columns"
        yield Match(f"columns={columns}", title, w, own, peers, _contenders([FLOOR, READ_FLOORS[2]]))


def _count(settings: Settings) -> Iterator[Match]:
    """Number of records."""
    for w in _workloads(settings):
        peers = [Contender.of("benchmarks.readers:TfDataCount")]
        yield Match(w.name, w.title, w, [Contender.of(COUNTER)], peers, _contenders(READ_FLOORS[2:]))


def _gzip(settings: Settings) -> Iterator[Match]:
    """Files compressed with gzip, read and written."""
    for name in settings.workloads:
        if name not in ("tutorial", "images", "tokens"):
            continue
        ensure([f"{name}.gz"])
        w = WORKLOADS[f"{name}.gz"]
        own, floors = _own(READER, settings.threads[:2]), _contenders(["benchmarks.floor:Decompress"])
        yield Match(w.name, f"{w.title}, read", w, own, _contenders(READ_PEERS), floors)
        own, floors = _own(WRITER, settings.threads[:2]), _contenders(["benchmarks.floor:Compress"])
        yield Match(f"{w.name} write", f"{w.title}, written", w, own, _contenders(WRITE_PEERS[:2]), floors)


def _shards(settings: Settings) -> Iterator[Match]:
    """Arrow → shards, of a table and of a stream of unknown length, beside one file."""
    for w in _workloads(settings):
        one = [replace(contender, label=f"{contender.label}, one file") for contender in _own(WRITER, settings.threads)]
        for codec in SHARD_CODECS if w.name in SHARDS_COMPRESSED else (None,):
            own = one if codec is None else []
            own = own + _own(WRITER, settings.threads, shards=SHARDS, codec=codec)
            streams = _own(WRITER, settings.threads, shards=SHARDS, codec=codec, stream=True)
            own = own + [replace(contender, label=f"{contender.label}, stream") for contender in streams]
            title = f"{w.title}, {SHARDS} shards{f', {codec}' if codec else ''}"
            yield Match(f"{w.name} {codec or 'plain'}", title, w, own, floors=_contenders(WRITE_FLOORS[:1]))


def _files(settings: Settings) -> Iterator[Match]:
    """Many small files."""
    w = WORKLOADS["tutorial"]
    count = max(1, round(SMALL_FILES * Variant.current().share))
    folder = small_files(count)
    at = {"path": str(folder), "rows": count * RECORDS_OF_A_FILE}
    own, peers = _own(READER, settings.threads, **at), [Contender.of(READ_PEERS[0], **at)]
    title = f"{count:,} files of {RECORDS_OF_A_FILE} records"
    yield Match("files", title, w, own, peers, [Contender.of("benchmarks.floor:ReadFiles", **at)], folder)


def _sizes(settings: Settings) -> Iterator[Match]:
    """The tutorial's records, few and many."""
    w = WORKLOADS["tutorial"]
    for rows in SIZES:
        rows = max(1, round(rows * Variant.current().share))
        path = repeated(rows)
        at = {"path": str(path), "rows": rows}
        yield Match(f"rows={rows}", f"{rows:,} records", w, _own(READER, settings.threads[:2], **at), path=path)


MATCHES: dict[str, Callable[[Settings], Iterator[Match]]] = {
    "read": _read,
    "write": _write,
    "outputs": _outputs,
    "projection": _projection,
    "count": _count,
    "gzip": _gzip,
    "shards": _shards,
    "files": _files,
    "sizes": _sizes,
}
OTHERS: dict[str, Callable[[Settings], Iterator[Row]]] = {
    "filters": filters.rows,
    "serial": serial.rows,
    "memory": memory.rows,
    "import": import_time.rows,
    "latency": latency.rows,
    "planning": planning.rows,
}
PARTS = (*MATCHES, *OTHERS)


def measure(part: str, settings: Settings) -> Iterator[tuple[list[Row], dict[str, str]]]:
    """The rows of each case of a part as soon as it was measured, and the title of the case."""
    if part in OTHERS:
        for row in OTHERS[part](settings):
            yield [row], {}
        return
    for match in MATCHES[part](settings):
        yield list(match.run(part, settings)), {match.case: match.title}
