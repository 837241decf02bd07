"""Aligned Markdown tables, and a description of the machine."""

from __future__ import annotations

import importlib.metadata
import platform
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from tfrecord_io.base import cpu_count

BEGIN, END = "<!-- {0}:begin -->", "<!-- {0}:end -->"
PACKAGES = ("tfrecord_io", "numpy", "pyarrow", "tensorflow-cpu", "tensorflow", "tfx-bsl", "tfrecord", "crc32c")


def machine(packages: Sequence[str] = PACKAGES) -> str:
    """CPU, cores, Python and the versions of packages in one line."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    cores, versions = cpu_count(), []
    for package in packages:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"{cpu}, {cores} cores, {platform.system()}; Python {platform.python_version()}, " + ", ".join(versions)


def _width(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns, all but the first to the right.

    >>> print(table(["a", "b"], [["x", "10"]]))
    | a |  b |
    |:--|---:|
    | x | 10 |
    """
    widths = [max(_width(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = []
    for row in [header, *rows]:
        pads = [" " * (w - _width(cell)) for cell, w in zip(row, widths, strict=True)]
        cells = [cell + pad if i == 0 else pad + cell for i, (cell, pad) in enumerate(zip(row, pads, strict=True))]
        lines.append("| " + " | ".join(cells) + " |")
    rule = "|:" + "-" * (widths[0] + 1) + "|" + "".join("-" * (w + 1) + ":|" for w in widths[1:])
    return "\n".join([lines[0], rule, *lines[1:]])


def put(path: Path, text: str, name: str = "bench") -> None:
    """Write `text` to a file, between its markers of that name if it has them."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    first, last = BEGIN.format(name), END.format(name)
    begin, end = old.find(first), old.find(last)
    if 0 <= begin < end:
        text = f"{old[: begin + len(first)]}\n\n{text}\n\n{old[end:]}"
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
