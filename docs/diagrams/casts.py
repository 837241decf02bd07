"""Draw docs/images/demo-*.svg: sessions in a terminal, whose lines appear one after the other, and two programs.

The commands of examples/demos are run in an empty directory: what is drawn is what they print. The times under the two
programs are those of beside_tensorflow.txt, which `python examples/demos/compare.py` has printed.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
DEMOS = ROOT / "examples" / "demos"
MEASURED = Path(__file__).with_name("beside_tensorflow.txt")
SESSIONS = {
    "resume": ["python train.py --kill-after 3", "python train.py"],
    "damage": [
        "python flip.py meadow.tfrec 100000",
        "tfr verify meadow.tfrec",
        "tfr salvage meadow.tfrec intact.tfrec",
        "tfr count intact.tfrec",
    ],
}
PROGRAMS = {"tensorflow": "with_tensorflow.py", "tfrecord-io": "with_tfrecord_io.py"}
TITLES = {
    "resume": "Training that is killed goes on with the very next batch",
    "damage": "tfr verify finds a damaged record, tfr salvage writes the others",
    "tensorflow": "Arrays of a file with TensorFlow: 26 lines",
    "tfrecord-io": "The same arrays with tfrecord_io: one call",
}

# As wide as a phone, on which a character has 7 pixels.
COLUMNS, LINE, WIDTH, LEFT, TOP = 52, 19, 8.0, 16, 56
STYLE = """
  text { font: 13.3px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d6deeb;
    white-space: pre; }
  .command, .clock { fill: #7fdbca; }
  .clock { font-size: 26px; }
  .line { animation: show 0.01s both; }
  @keyframes show { from { visibility: hidden; } to { visibility: visible; } }
  @media (prefers-reduced-motion: reduce) { .line { animation: none; } }
"""


@dataclass
class Picture:
    """A window with lines of text, each of which appears at its time."""

    title: str
    lines: list[str] = field(default_factory=list)
    y: int = TOP
    seconds: float = 0.4

    def add(self, text: str, kind: str = "", wait: float = 0.05, height: int = LINE) -> None:
        self.seconds += wait
        self.lines.append(
            f'<text class="line{kind and f" {kind}"}" x="{LEFT}" y="{self.y}" xml:space="preserve" '
            f'style="animation-delay:{self.seconds:.2f}s">{escape(text)}</text>'
        )
        self.y += height

    def render(self, rows: int = 0) -> str:
        """The picture, at least as high as one of so many lines of text."""
        width, height = int(2 * LEFT + COLUMNS * WIDTH), max(self.y, TOP + rows * LINE) + 8
        colours = enumerate(("#ff5f57", "#febc2e", "#28c840"))
        dots = "".join(f'<circle cx="{22 + 18 * i}" cy="20" r="5.5" fill="{colour}"/>' for i, colour in colours)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        page = f'<rect width="{width}" height="{height}" rx="9" fill="#0f1724"/>'
        parts = [head, f"<title>{escape(self.title)}</title>", f"<style>{STYLE}</style>", page, dots, *self.lines]
        return "\n".join([*parts, "</svg>", ""])


def run(command: str, directory: Path) -> list[str]:
    """The lines that a command prints to a terminal of COLUMNS, without colours."""
    program, _, arguments = command.partition(" ")
    module = f"{sys.executable} -m tfrecord_io " if program == "tfr" else f"{sys.executable} "
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
    ours, terminal = pty.openpty()  # which tables are fitted into
    with subprocess.Popen(
        f"exec {module}{arguments}", shell=True, cwd=directory, env=environment, stdout=terminal, stderr=subprocess.PIPE
    ) as process:
        os.close(terminal)
        output = b"".join(iter(partial(_read, ours), b""))
        errors = process.communicate()[1]
    os.close(ours)
    killed = "Killed\n" if process.returncode == -9 else ""  # which a shell writes
    lines = (output + errors).decode().splitlines() + killed.splitlines()
    return [row for line in lines for row in textwrap.wrap(line, COLUMNS) or [""]]


def _read(terminal: int) -> bytes:
    """What was written to a terminal; empty at its end, which Linux tells by an error."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def session(name: str) -> Picture:
    """Commands with the lines that they printed; each command takes a second to read."""
    picture = Picture(TITLES[name])
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        for demo in DEMOS.glob("*.py"):
            shutil.copy(demo, directory)
        run("python meadow.py", directory)
        for command in SESSIONS[name]:
            picture.add(f"$ {command}", "command", 0.9)
            for text in run(command, directory):
                picture.add(text)
            picture.y += LINE // 2
    return picture


def program(name: str) -> Picture:
    """A program, and the time that it takes under it."""
    picture = Picture(TITLES[name])
    for line in (DEMOS / PROGRAMS[name]).read_text(encoding="utf-8").splitlines():
        picture.add(line)
    seconds = dict(re.findall(r"^(\S+) ([\d.]+) s$", MEASURED.read_text(encoding="utf-8"), re.MULTILINE))
    picture.y += LINE
    picture.add(f"{seconds[PROGRAMS[name]]} s", "clock", float(seconds[PROGRAMS[name]]), 26)
    picture.add("a process with its imports", wait=0)
    shapes = re.findall(r"^equal: (.+)$", MEASURED.read_text(encoding="utf-8"), re.MULTILINE)
    for shape in shapes:
        picture.add(shape, wait=0)
    return picture


def casts() -> dict[Path, str]:
    """The pictures, by file."""
    pictures = {name: session(name) for name in SESSIONS} | {name: program(name) for name in PROGRAMS}
    return {IMAGES / f"demo-{name}.svg": picture.render() for name, picture in pictures.items()}


if __name__ == "__main__":
    for path, drawn in casts().items():
        path.write_text(drawn, encoding="utf-8")
