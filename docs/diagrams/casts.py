"""Draw docs/images/cast-*.svg: sessions in a terminal, whose lines appear one after the other.

The commands are run, in an empty directory with demo/data/penguins.csv: what is drawn is what they print.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
FLIP = "python -c \"f = open('birds.tfrecord', 'r+b'); f.seek(30_000); f.write(b'?')\""
CASTS = {
    "convert": [
        "tfr convert penguins.csv birds.tfrecord --null-values NA --float64 round",
        "tfr head -n 3 birds.tfrecord -c species -c island -c body_mass_g -c year",
        "tfr convert birds.tfrecord birds.jsonl",
    ],
    "look": ["tfr count birds.tfrecord", "tfr schema birds.tfrecord", "tfr verify birds.tfrecord"],
    "damage": [
        FLIP,
        "tfr verify birds.tfrecord",
        "tfr salvage birds.tfrecord intact.tfrecord",
        "tfr count intact.tfrecord",
    ],
}

COLUMNS, LINE, WIDTH, LEFT, TOP = 96, 19, 8.0, 20, 58
STYLE = """
  text { font: 13.3px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d6deeb;
    white-space: pre; }
  .command { fill: #7fdbca; }
  .line { animation: show 0.01s both; }
  @keyframes show { from { visibility: hidden; } to { visibility: visible; } }
  @media (prefers-reduced-motion: reduce) { .line { animation: none; } }
"""


def run(command: str, directory: Path) -> list[str]:
    """The lines that a command prints to a terminal of COLUMNS, without colours."""
    module = f"{sys.executable} -m tfrecord_io " if command.startswith("tfr ") else f"{sys.executable} "
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        module + command.partition(" ")[2], shell=True, cwd=directory, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return [row for line in done.stdout.splitlines() for row in textwrap.wrap(line, COLUMNS) or [""]]


def render(title: str, session: list[tuple[str, list[str]]]) -> str:
    """The picture of commands with the lines that they printed; each command takes a second and a half to read."""
    lines, at, time = [], TOP, 0.4
    for command, printed in session:
        for i, text in enumerate([f"$ {command}", *printed]):
            kind = "line command" if i == 0 else "line"
            time += 0.05 if i else 0.9
            lines.append(
                f'<text class="{kind}" x="{LEFT}" y="{at}" xml:space="preserve" style="animation-delay:{time:.2f}s">'
                f"{escape(text)}</text>"
            )
            at += LINE
        at += LINE // 2
    width, height = int(2 * LEFT + COLUMNS * WIDTH), at + 8
    colours = enumerate(("#ff5f57", "#febc2e", "#28c840"))
    dots = "".join(f'<circle cx="{22 + 18 * i}" cy="20" r="5.5" fill="{colour}"/>' for i, colour in colours)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    page = f'<rect width="{width}" height="{height}" rx="9" fill="#0f1724"/>'
    style = f"<style>{STYLE}</style>"
    return "\n".join([head, f"<title>{escape(title)}</title>", style, page, dots, *lines, "</svg>", ""])


def casts() -> dict[Path, str]:
    """The pictures, by file."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        shutil.copy(ROOT / "demo" / "data" / "penguins.csv", directory)
        for cast, commands in CASTS.items():
            session = [(command, run(command, directory)) for command in commands]
            found[IMAGES / f"cast-{cast}.svg"] = render(f"tfr: {cast}", session)
    return found


if __name__ == "__main__":
    for path, picture in casts().items():
        path.write_text(picture, encoding="utf-8")
