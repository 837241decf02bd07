"""Draw docs/images/architecture.svg from docs/diagrams/architecture.txt, which explains its own syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

SOURCE = Path(__file__).with_name("architecture.txt")
TARGET = Path(__file__).parents[1] / "images" / "architecture.svg"

MARGIN, BAR, LANE, CENTRE = 24, 196, 300, 132  # widths
GAP = 28  # between two of them
FLOW = 48  # height of the arrows between two rows
LINE, PAD = 21, 15
TOP = 122

READ_X = MARGIN + BAR + GAP
CENTRE_X = READ_X + LANE + GAP
WRITE_X = CENTRE_X + CENTRE + GAP
WIDTH = WRITE_X + LANE + GAP + BAR + MARGIN

STYLE = """
  :root { --page: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --box: #f6f8fa; --bar: #eef1f4;
          --read: #0969da; --write: #bc4c00; --plan: #8250df; }
  @media (prefers-color-scheme: dark) {
    :root { --page: #0d1117; --ink: #f0f6fc; --soft: #9198a1; --line: #3d444d; --box: #151b23; --bar: #1c232c;
            --read: #58a6ff; --write: #f0883e; --plan: #bc8cff; } }
  text { font: 14px -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; fill: var(--ink); }
  .title { font-size: 21px; font-weight: 600; }
  .lane { font-size: 16px; font-weight: 600; }
  .heading, .strong { font-weight: 600; }
  .path { font: 13px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
  .text, .floor { fill: var(--soft); font-size: 13px; }
  .text .strong { fill: var(--ink); font-size: 14px; }
  .floor { font-size: 11px; }
  .page { fill: var(--page); }
  .box { fill: var(--box); stroke: var(--line); }
  .bar { fill: var(--bar); stroke: var(--line); }
  .read { --tone: var(--read); } .write { --tone: var(--write); } .plan { --tone: var(--plan); }
  .accent, .lane, .noun { fill: var(--tone); }
  .noun { font-weight: 600; font-size: 13px; }
  .arrow { stroke: var(--tone); stroke-width: 2; fill: none; }
  .dashed { stroke-dasharray: 5 4; stroke-width: 1.5; }
  .head { fill: var(--tone); }
"""


@dataclass
class Box:
    floor: str
    heading: str
    path: str
    lines: list[str]
    arrows: str = ""

    @property
    def height(self) -> int:
        return 2 * PAD + LINE * (bool(self.heading) + bool(self.path) + len(self.lines)) - 6


@dataclass
class Row:
    boxes: dict[str, Box] = field(default_factory=dict)  # by "read", "write", "both" or "centre"
    beside: dict[str, list[str]] = field(default_factory=dict)  # what the bars say, by "read" or "write"
    flow: tuple[str, str] | None = None
    top: int = 0

    @property
    def height(self) -> int:
        return max(box.height for side, box in self.boxes.items() if side != "centre")

    @property
    def bottom(self) -> int:
        return self.top + self.height


@dataclass
class Drawing:
    title: str = ""
    note: str = ""
    rows: list[Row] = field(default_factory=list)
    bars: dict[str, Box] = field(default_factory=dict)


def parse(text: str) -> Drawing:
    """Read the description and give each row its position."""
    drawing = Drawing()
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        key, _, rest = line.partition(":")
        cells = [cell.strip() for cell in rest.split("|")]
        match key:
            case "title":
                drawing.title = cells[0]
            case "note":
                drawing.note = cells[0]
            case "bar":
                drawing.bars[cells[0]] = Box(cells[1], "", cells[2], [])
            case "row":
                drawing.rows.append(Row())
            case "flow":
                drawing.rows[-1].flow = (cells[0], cells[1])
            case "beside":
                drawing.rows[-1].beside[cells[0]] = split_lines(cells[1])
            case "centre":
                drawing.rows[-1].boxes[key] = Box(cells[0], "", cells[1], split_lines(cells[2]), cells[3])
            case "read" | "write" | "both":
                drawing.rows[-1].boxes[key] = Box(cells[0], cells[1], cells[2], split_lines(cells[3]))
            case _:
                raise ValueError(f"unknown line: {line}")
    top = TOP
    for row in drawing.rows:
        row.top = top
        top = row.bottom + FLOW
    return drawing


def split_lines(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(";")]


def text_at(x: float, y: float, content: str, kind: str, anchor: str = "start") -> str:
    inner = re.sub(r"\*\*(.+?)\*\*", r'<tspan class="strong">\1</tspan>', escape(content))
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{inner}</text>'


def draw_lines(x: float, y: float, lines: list[tuple[str, str]], anchor: str = "start") -> list[str]:
    """Lines of text, each with its class; `y` is the first baseline."""
    return [text_at(x, y + LINE * i, content, kind, anchor) for i, (content, kind) in enumerate(lines)]


def draw_box(box: Box, x: int, y: int, width: int, height: int, *, kind: str = "box", tone: str = "") -> list[str]:
    """A box with its text: on the left beside a stripe of the colour `tone`, or without one in the middle."""
    parts = [f'<g class="{tone}"><rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="7"/>']
    if tone:
        parts.append(f'<rect class="accent" x="{x}" y="{y + 7}" width="4" height="{height - 14}" rx="2"/>')
    lines = [(box.heading, "heading"), (box.path, "path"), *((line, line_class(line)) for line in box.lines)]
    shown = [line for line in lines if line[0]]
    left, anchor = (x + PAD + 2, "start") if tone else (x + width / 2, "middle")
    parts += draw_lines(left, y + PAD + 12, shown, anchor)
    parts.append(text_at(x + width - 10, y + 18, box.floor, "floor", "end"))
    return [*parts, "</g>"]


def line_class(line: str) -> str:
    return "path" if line.endswith("/") else "text"


def draw_arrow(x: int, start: int, end: int, tone: str, noun: str = "") -> list[str]:
    """A vertical arrow from `start` to `end` with the name of what it carries on its right."""
    tip = 8 if end > start else -8
    parts = [
        f'<g class="{tone}"><path class="arrow" d="M{x} {start}V{end - tip}"/>',
        f'<path class="head" d="M{x} {end}l-6 {-1.4 * tip:g}h12z"/>',
    ]
    if noun:
        parts.append(text_at(x + 14, (start + end) / 2 + 5, noun, "noun"))
    return [*parts, "</g>"]


def draw_dashed(x: int, y: int, dx: int, dy: int) -> str:
    """A dashed arrow from a point, horizontal or vertical."""
    head = f"l{-9 if dx > 0 else 9} -5v10z" if dx else "l-5 -9h10z"
    return (
        f'<g class="plan"><path class="arrow dashed" d="M{x} {y}l{dx} {dy}"/>'
        f'<path class="head" d="M{x + dx} {y + dy}{head}"/></g>'
    )


def draw_centre(row: Row, below: Row) -> list[str]:
    """The box between the lanes, and dashed arrows to what uses it."""
    box = row.boxes["centre"]
    middle, bottom = row.top + row.height // 2, row.top + (row.height + box.height) // 2
    arrows = {
        "left": (CENTRE_X - 3, middle, 7 - GAP, 0),
        "right": (CENTRE_X + CENTRE + 3, middle, GAP - 7, 0),
        "from-right": (WRITE_X - 3, middle, 7 - GAP, 0),
        "down": (CENTRE_X + CENTRE // 2, bottom + 3, 0, below.top - bottom - 7),
    }
    parts = draw_box(box, CENTRE_X, bottom - box.height, CENTRE, box.height, tone="plan")
    return parts + [draw_dashed(*arrows[name]) for name in box.arrows.split()]


def draw_bar(drawing: Drawing, side: str) -> list[str]:
    """The bar beside the rows in between, with its text beside the rows that it is about."""
    rows = drawing.rows[1:-1]
    x = MARGIN if side == "read" else WRITE_X + LANE + GAP
    top = rows[0].top - FLOW // 2 - LINE
    parts = draw_box(drawing.bars[side], x, top, BAR, rows[-1].bottom - top, kind="bar", tone=side)
    for row in rows:
        lines = [(line, "text") for line in row.beside.get(side, [])]
        parts += draw_lines(x + PAD + 2, row.top + PAD + 12, lines)
    return parts


def render(drawing: Drawing) -> str:
    """The SVG document."""
    rows, height = drawing.rows, drawing.rows[-1].bottom + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title">',
        f'<title id="title">{escape(drawing.title)}</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="10"/>',
        text_at(WIDTH / 2, 48, drawing.title, "title", "middle"),
        f'<g class="read">{text_at(READ_X, TOP - 18, "↑ Reading", "lane")}</g>',
        f'<g class="write">{text_at(WRITE_X, TOP - 18, "↓ Writing", "lane")}</g>',
        *draw_bar(drawing, "read"),
        *draw_bar(drawing, "write"),
    ]
    for row, below in zip(rows, [*rows[1:], row_after(rows)], strict=True):
        for side, box in row.boxes.items():
            if side == "both":
                parts += draw_box(box, READ_X, row.top, WRITE_X + LANE - READ_X, row.height)
            elif side == "centre":
                parts += draw_centre(row, below)
            else:
                parts += draw_box(box, READ_X if side == "read" else WRITE_X, row.top, LANE, row.height, tone=side)
        if row.flow is not None:
            start, end = row.bottom + 4, below.top - 4
            parts += draw_arrow(READ_X + 60, end, start, "read", row.flow[0])
            parts += draw_arrow(WRITE_X + 60, start, end, "write", row.flow[1])
    parts.append(text_at(WIDTH - MARGIN, height - 16, drawing.note, "text", "end"))
    return "\n".join([*parts, "</svg>", ""])


def row_after(rows: list[Row]) -> Row:
    """An empty row below the last one."""
    return Row(top=rows[-1].bottom + FLOW)


def main() -> None:
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(render(parse(SOURCE.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
