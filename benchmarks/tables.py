"""The results of each part as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.filters import SHAPES
from benchmarks.report import table
from benchmarks.results import Results, Row, geometric_mean
from benchmarks.serial import CORES, speedup
from benchmarks.serial import PARTS as SERIAL_PARTS
from benchmarks.workloads import GROUPS

READ_NOTE = """\
Seconds; best peer: with its best setting. ×: the best peer's time divided by that with 2 threads. ÷ floor: the time
with 2 threads divided by memcpy + CRC32C of the file's bytes. Kernel, header hop and read(): on one thread."""


def _time(row: Row | None) -> str:
    if row is None or row.seconds is None:
        return "–"
    return ("~" if row.share < 1 else "") + f"{row.seconds:.4f}"


def _ratio(over: Row | None, under: Row | None) -> str:
    if over is None or under is None or not over.seconds or not under.seconds:
        return "–"
    value = over.seconds / under.seconds
    return f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"


def _named(rows: Sequence[Row], name: str) -> Row | None:
    return next((row for row in rows if row.contender == name), None)


def _own(rows: Sequence[Row]) -> dict[str, Row]:
    """Rows of tfrecord_io by their threads."""
    return {row.contender.rpartition(", ")[2].split()[0]: row for row in rows if row.role == "own"}


def best_peer(rows: Sequence[Row]) -> Row | None:
    """The fastest of the other libraries."""
    timed = [row for row in rows if row.role == "peer" and row.seconds]
    return min(timed, key=lambda row: row.seconds or 0.0, default=None)


def _mean(cases: Iterable[Sequence[Row]], numbers: Iterable[str]) -> str:
    """The geometric means of the best peer's time over ours, of the cases that have both, by threads."""
    parts = []
    for number in numbers:
        pairs = [(best_peer(rows), _own(rows).get(number)) for rows in cases]
        quotients = [peer.seconds / own.seconds for peer, own in pairs if peer and own and peer.seconds and own.seconds]
        if quotients:
            parts.append(f"{geometric_mean(quotients):.1f}× with {number}")
    return ", ".join(parts)


def _contest(results: Results, part: str, floors: dict[str, str], floor: str) -> str:
    """Times by threads, the best peer and the floors of each case."""
    cases = results.cases(part)
    numbers = list(dict.fromkeys(number for rows in cases.values() for number in _own(rows)))
    body = []
    for case, rows in cases.items():
        own, peer = _own(rows), best_peer(rows)
        chosen = own.get("2") or next(iter(own.values()), None)
        which = "–" if peer is None else f"{_time(peer)} {peer.contender} {peer.setting}".strip()
        times = [_time(own.get(number)) for number in numbers]
        found = [_time(_named(rows, name)) for name in floors]
        scale = _ratio(own.get("1"), own.get("2"))
        ratios = [_ratio(peer, chosen), scale, _ratio(chosen, _named(rows, floor))]
        body.append([results.title(case), which, *times, *found, *ratios])
    threads = [f"{number} thread{'s' * (number != '1')}" if number.isdigit() else number for number in numbers]
    header = ["workload", "best peer", *threads, *floors.values(), "×", "1 ÷ 2 threads", f"÷ {floors[floor]}"]
    groups = {title: [cases[name] for name in names if name in cases] for title, names in GROUPS.items()}
    means = [f"- {title}: {mean}" for title, group in groups.items() if (mean := _mean(group, numbers))]
    note = "\n\nGeometric means of the best peer's time divided by ours:\n\n" + "\n".join(means) if means else ""
    return table(header, body) + note


def _read(results: Results) -> str:
    floors = {"kernel": "kernel", "header hop": "header hop", "read()": "read()", "memcpy + CRC32C": "floor"}
    return _contest(results, "read", floors, "memcpy + CRC32C")


def _write(results: Results) -> str:
    floors = {"kernel": "kernel", "write()": "write()", "write() + CRC32C": "write() + CRC"}
    return _contest(results, "write", floors, "write()")


def _outputs(results: Results) -> str:
    """pandas: beyond what it must allocate, in relation to the table; NumPy: in relation to the table."""
    body = []
    for case, rows in results.cases("outputs").items():
        allocated = _named(rows, "pandas allocates")
        line = [results.title(case), _time(allocated)]
        for threads in ("1 thread", "2 threads"):
            found = [_named(rows, f"{name}, {threads}") for name in ("read_table", "read_tfrecord", "read_arrays")]
            times = [row.seconds if row is not None else None for row in found]
            line += [_time(row) for row in found]
            if all(times) and allocated is not None and allocated.seconds:
                line += [f"{(times[1] - allocated.seconds) / times[0]:.2f}×", f"{times[2] / times[0]:.2f}×"]
            else:
                line += ["–", "–"]
        body.append(line)
    header = ["workload", "pandas allocates"]
    for threads in ("1 thread", "2 threads"):
        header += [f"read_table, {threads}", "read_tfrecord", "read_arrays", "(pandas − allocated) ÷ table"]
        header += ["arrays ÷ table"]
    return table(header, body)


def _plain(part: str) -> Callable[[Results], str]:
    def text(results: Results) -> str:
        body = []
        for case, rows in results.cases(part).items():
            floor = next((row for row in rows if row.role == "floor"), None)
            for row in rows:
                name = f"{row.contender} {row.setting}".strip()
                body.append([results.title(case), name, _time(row), _ratio(row, floor)])
        return table(["case", "contender", "seconds", "÷ first lower bound"], body)

    return text


def _sizes(results: Results) -> str:
    """Nanoseconds for each record."""
    body = []
    for case, rows in results.cases("sizes").items():
        count = int(case.partition("=")[2])
        costs = [f"{row.seconds / count * 1e9:.1f}" if row.seconds else "–" for row in rows]
        body.append([results.title(case), *costs])
    names = [row.contender for row in next(iter(results.cases("sizes").values()), [])]
    return table(["ns a record", *names], body)


def _filters(results: Results) -> str:
    """What `filters=` takes, in relation to reading and then filtering."""
    body = []
    for case, rows in results.cases("filters").items():
        for row in rows:
            ways = [f"{way}{cpu}" for cpu in ("", ", CPU") for way in ("table", "stream")]
            names = [(way, way.replace(", CPU", "") + ", then filter" + ", CPU" * way.endswith("CPU")) for way in ways]
            ratios = [f"{row.numbers[own] / row.numbers[then]:.2f}" if row.numbers else "–" for own, then in names]
            body.append([SHAPES[case][0], row.contender, *ratios])
    return table(
        ["records", "rows that pass", "read_table", "open_reader", "read_table, CPU", "open_reader, CPU"], body
    )


def _serial(results: Results) -> str:
    body = []
    for case, (row, *_) in results.cases("serial").items():
        n = row.numbers
        gains = [f"{speedup(n['by_parts'], cores):.1f}×" for cores in CORES]
        parts = [f"{1e3 * n[f'cpu {part}']:.1f}" for part in ("parallel", *SERIAL_PARTS, "rest")]
        shares = [f"{100 * n[name]:.0f} %" for name in ("by_times", "by_parts")]
        body.append([results.title(case), f"{n['one']:.4f}", f"{n['two']:.4f}", *parts, *shares, *gains])
    parts = [f"{part}, CPU ms" for part in ("parallel", *SERIAL_PARTS, "rest")]
    header = ["workload", "1 thread", "2 threads", *parts, "serial, by times", "serial, by parts"]
    return table([*header, *(f"{cores} cores would give" for cores in CORES)], body)


def _memory(results: Results) -> str:
    """Peaks in MB; of whole reads also in relation to the table."""
    body = []
    for case, rows in results.cases("memory").items():
        tables = [row.numbers["result"] for row in rows if "read_table" in row.contender and row.numbers]
        for row in rows:
            if row.error:
                body.append([results.title(case), row.contender, row.error, "–", "–"])
                continue
            top, whole = row.numbers["peak"], row.contender.startswith("read_")
            kept = f"{row.numbers['result'] / 1e6:.0f}" if whole else "–"
            ratio = f"{top / tables[0]:.2f}×" if whole and tables else "–"
            body.append([results.title(case), row.contender, f"{top / 1e6:.0f}", kept, ratio])
    return table(["workload", "call", "peak, MB", "result, MB", "peak ÷ table"], body)


def _latency(results: Results) -> str:
    """Microseconds of the first call in a process, and of later ones."""
    body = []
    for case, rows in results.cases("latency").items():
        for row in rows:
            first, later = row.numbers["first"], row.seconds or 0.0
            body.append([results.title(case), row.contender, f"{first * 1e6:.0f}", f"{later * 1e6:.0f}"])
    return table(["case", "call", "first in a process, µs", "later, µs"], body)


def _planning(results: Results) -> str:
    body = []
    for case, rows in results.cases("planning").items():
        for row in rows:
            n, title = row.numbers, f"{int(case.partition('=')[2]):,} shards"
            body.append([title, row.contender, f"{n['requests']:.0f}", f"{row.seconds:.2f}", f"{n['cpu']:.2f}"])
    return table(["dataset", "step", "requests", "seconds, 20 ms a request", "CPU seconds"], body)


TEXTS: dict[str, tuple[str, Callable[[Results], str]]] = {
    "read": ("File → Arrow", _read),
    "write": ("Arrow → file", _write),
    "outputs": ("File → Arrow, pandas and NumPy", _outputs),
    "projection": ("Some of 1,000 columns", _plain("projection")),
    "count": ("Counting records", _plain("count")),
    "gzip": ("Compressed files", _plain("gzip")),
    "shards": ("Shards written", _plain("shards")),
    "files": ("Many small files", _plain("files")),
    "sizes": ("Few and many records", _sizes),
    "filters": ("`filters=`, divided by reading and then filtering", _filters),
    "serial": ("The serial share of a read", _serial),
    "memory": ("Memory", _memory),
    "import": ("Import", _plain("import")),
    "latency": ("A few records", _latency),
    "planning": ("Until tasks can run", _planning),
}


def text(results: Results, parts: Sequence[str]) -> str:
    """All tables, with the machine, and what failed."""
    sections = [results.machine + "."]
    for part in parts:
        title, make = TEXTS[part]
        if results.cases(part):
            sections += [f"### {title}", *([READ_NOTE] * (part == "read")), make(results)]
    failed = [row for row in results.rows if row.error and row.part in parts]
    if failed:
        lines = [f"- {row.part}, {results.title(row.case)}, {row.contender}: {row.error}" for row in failed]
        sections += ["Did not run:", "\n".join(lines)]
    return "\n\n".join(sections)
