"""Draw docs/images/performance.svg and read-time.svg from docs/performance.json, which `make bench` writes."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "performance.json"
IMAGES = Path(__file__).parents[1] / "images"
PANELS = {"read": "Reading: file → Arrow", "write": "Writing: Arrow → file"}

LABEL, BAR, SPACE, LINE, TOP = 310, 300, 60, 26, 92
WIDTH = 2 * LABEL + 2 * BAR + 3 * SPACE

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


def _panel(part: str, values: dict[str, float], left: float, scale: float) -> list[str]:
    base = left + LABEL
    lines = [f'<text class="title" x="{left}" y="66">{escape(PANELS[part])}</text>']
    for i, (title, value) in enumerate(values.items()):
        y = TOP + i * LINE
        lines.append(f'<text x="{base - 8}" y="{y + 13}" text-anchor="end">{escape(title)}</text>')
        lines.append(f'<rect class="{part}" x="{base}" y="{y}" width="{value * scale:.1f}" height="18" rx="2"/>')
        lines.append(f'<text x="{base + value * scale + 6:.1f}" y="{y + 13}">{value:.1f}×</text>')
    lines.append(f'<line class="line" x1="{base}" x2="{base}" y1="{TOP - 6}" y2="{TOP + len(values) * LINE}"/>')
    return lines


def render(results: dict[str, Any]) -> str:
    """The picture: for each workload how many times as long the best other library takes."""
    panels = {part: quotients(results, part) for part in PANELS}
    most = max((value for values in panels.values() for value in values.values()), default=1.0)
    height = TOP + LINE * max(map(len, panels.values())) + 24
    about = "How many times as long the best other library takes, with its best setting; tfrecord_io with two threads"
    lines = [f'<text class="soft" x="{SPACE / 2}" y="32">{escape(about)}</text>']
    for i, (part, values) in enumerate(panels.items()):
        lines += _panel(part, values, SPACE / 2 + i * (LABEL + BAR + SPACE), BAR / most)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    page = f'<rect class="page" width="{WIDTH}" height="{height}"/>'
    return "\n".join([head, f"<title>{escape(about)}</title>", f"<style>{STYLE}</style>", page, *lines, "</svg>", ""])


def render_read_time(results: dict[str, Any]) -> str:
    """A picture for a phone: how long the libraries take to read the first workload."""
    rows = [
        row for row in results["rows"] if row["part"] == "read" and row["case"] == "tutorial" and row.get("seconds")
    ]
    seconds = {row["contender"]: row["seconds"] for row in rows if row.get("role") == "peer" and "share" not in row}
    own = next(row["seconds"] for row in rows if row["contender"] == "tfrecord_io, 2 threads")
    times = {"tfrecord_io": own} | dict(sorted(seconds.items(), key=lambda item: item[1]))
    about = "Seconds to read 500,000 records, 50 MB"
    lines = [f'<text class="title" x="10" y="24">{about}</text>']
    for y, (name, value) in zip(range(40, 1000, 34), times.items(), strict=False):
        width = 220 * value / max(times.values())
        lines.append(f'<text x="102" y="{y + 18}" text-anchor="end">{escape(name)}</text>')
        kind = "read" if value == own else "line"
        lines.append(f'<rect class="{kind}" x="110" y="{y}" width="{width:.1f}" height="26" rx="2"/>')
        lines.append(f'<text x="{118 + width:.1f}" y="{y + 18}">{value:.2f}</text>')
    height = 48 + 34 * len(times)
    style = STYLE.replace("13px", "16px") + "  .line { fill: var(--soft); }\n"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 390 {height}" width="390" height="{height}" role="img">'
    )
    page = f'<rect class="page" width="390" height="{height}"/>'
    return "\n".join([head, f"<title>{about}</title>", f"<style>{style}</style>", page, *lines, "</svg>", ""])


if __name__ == "__main__":
    measured = json.loads(SOURCE.read_text(encoding="utf-8"))
    (IMAGES / "performance.svg").write_text(render(measured), encoding="utf-8")
    (IMAGES / "read-time.svg").write_text(render_read_time(measured), encoding="utf-8")
