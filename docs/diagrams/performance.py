"""Draw docs/images/performance.svg from docs/performance.json, and parquet.svg from the table of dev/performance.md.

`make bench` writes the first, `make bench BENCH_ARGS="--parquet --markdown dev/performance.md"` the second.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "performance.json"
PAGE = Path(__file__).parents[2] / "dev" / "performance.md"
IMAGES = Path(__file__).parents[1] / "images"
PANELS = {"read": "Reading: file → Arrow", "write": "Writing: Arrow → file"}

LABEL, BAR, SPACE, LINE, TOP, GAP = 310, 300, 60, 26, 92, 64
WIDTH = LABEL + BAR + 2 * SPACE

STYLE = """
  :root { --page: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --read: #0969da; --write: #bc4c00; }
  @media (prefers-color-scheme: dark) {
    :root { --page: #0d1117; --ink: #f0f6fc; --soft: #9198a1; --line: #3d444d; --read: #58a6ff; --write: #f0883e; } }
  text { font: 13px -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; fill: var(--ink); }
  .title { font-size: 16px; font-weight: 600; }
  .soft { fill: var(--soft); }
  .page { fill: var(--page); }
  .read { fill: var(--read); } .write { fill: var(--write); }
  .line { stroke: var(--line); }
"""


def quotients(results: dict[str, Any], part: str) -> dict[str, float]:
    """By workload: the time of the best other library divided by that of tfrecord_io with two threads."""
    found = {}
    rows = [row for row in results["rows"] if row["part"] == part and row.get("seconds")]
    for case in dict.fromkeys(row["case"] for row in rows):
        of_case = [row for row in rows if row["case"] == case]
        peers = [row["seconds"] for row in of_case if row.get("role") == "peer"]
        own = [row["seconds"] for row in of_case if row["contender"] == "tfrecord_io, 2 threads"]
        if peers and own:
            found[results["titles"].get(case, case)] = min(peers) / own[0]
    return found


def _panel(part: str, values: dict[str, float], top: int, scale: float) -> list[str]:
    left = SPACE / 2
    base = left + LABEL
    lines = [f'<text class="title" x="{left}" y="{top - 26}">{escape(PANELS[part])}</text>']
    for i, (title, value) in enumerate(values.items()):
        y = top + i * LINE
        lines.append(f'<text x="{base - 8}" y="{y + 13}" text-anchor="end">{escape(title)}</text>')
        lines.append(f'<rect class="{part}" x="{base}" y="{y}" width="{value * scale:.1f}" height="18" rx="2"/>')
        lines.append(f'<text x="{base + value * scale + 6:.1f}" y="{y + 13}">{value:.1f}×</text>')
    lines.append(f'<line class="line" x1="{base}" x2="{base}" y1="{top - 6}" y2="{top + len(values) * LINE}"/>')
    return lines


def _svg(about: str, width: int, height: int, lines: list[str], style: str = STYLE, attributes: str = "") -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"{attributes} role="img">'
    page = f'<rect class="page" width="{width}" height="{height}"/>'
    return "\n".join([head, f"<title>{escape(about)}</title>", f"<style>{style}</style>", page, *lines, "</svg>", ""])


def render(results: dict[str, Any]) -> str:
    """The picture: for each workload how many times as long the best other library takes."""
    panels = {part: quotients(results, part) for part in PANELS}
    most = max((value for values in panels.values() for value in values.values()), default=1.0)
    about = "Time of the fastest other library, with its best setting, divided by that of tfrecord_io with two threads"
    lines = [f'<text class="soft" x="{SPACE / 2}" y="32">{escape(about)}</text>']
    top = TOP
    for part, values in panels.items():  # one below the other, so that a narrow page shows legible text
        lines += _panel(part, values, top, BAR / most)
        top += LINE * len(values) + GAP
    return _svg(about, WIDTH, top - GAP + 24, lines)


def beside_parquet(page: str) -> dict[str, list[float]]:
    """By call: its time divided by that of Parquet's call for each workload, and last the geometric mean."""
    start = page.index("|", page.index("<!-- parquet:begin -->"))
    table = page[start : page.index("<!-- parquet:end -->")].strip().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {call: [float(row[i].split(", ")[-1]) for row in cells[2:]] for i, call in enumerate(cells[0]) if i}


def render_parquet(ratios: dict[str, list[float]]) -> str:
    """A picture for a phone: the mean of each call as a bar, its least and most as a line, and Parquet's time at 1."""
    about, scale = "Time relative to Parquet", 370 / max(1.5, *(max(values) for values in ratios.values()))
    height = 92 + 46 * len(ratios)
    lines = [f'<text class="title" x="10" y="24">{about}</text>']
    for y, (call, values) in zip(range(56, 1000, 46), ratios.items(), strict=False):
        least, most, mean = min(values[:-1]), max(values[:-1]), values[-1]
        kind = "read" if call.startswith("read") else "write"
        lines.append(f'<text x="10" y="{y}">{escape(call.split(" ÷ ")[0])}: {mean:.2f}</text>')
        lines.append(f'<rect class="{kind}" x="10" y="{y + 7}" width="{mean * scale:.1f}" height="18" rx="2"/>')
        ends = f'x1="{10 + least * scale:.1f}" x2="{10 + most * scale:.1f}"'
        lines.append(f'<line class="range" {ends} y1="{y + 16}" y2="{y + 16}"/>')
    lines.append(f'<text class="soft" x="{10 + scale:.1f}" y="44" text-anchor="middle">Parquet</text>')
    lines.append(f'<line class="range" x1="{10 + scale:.1f}" x2="{10 + scale:.1f}" y1="50" y2="{height - 46}"/>')
    notes = ("bar: geometric mean of twelve workloads", "line: lowest and highest of them")
    lines += [
        f'<text class="soft" x="10" y="{height - 26 + 18 * i}">{escape(note)}</text>' for i, note in enumerate(notes)
    ]
    style = STYLE.replace("13px", "14px") + "  .range { stroke: var(--soft); stroke-width: 2; }\n"
    return _svg(about, 390, height, lines, style, f' width="390" height="{height}"')


if __name__ == "__main__":
    measured = json.loads(SOURCE.read_text(encoding="utf-8"))
    (IMAGES / "performance.svg").write_text(render(measured), encoding="utf-8")
    ratios = beside_parquet(PAGE.read_text(encoding="utf-8"))
    (IMAGES / "parquet.svg").write_text(render_parquet(ratios), encoding="utf-8")
