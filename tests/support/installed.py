"""Small installed packages, with entry points."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from rounds import RANDOM, rounds

PAGE = Path(__file__).parents[2] / "docs" / "extend.md"
# Of the laws of a shipped suite: no example is late, on a machine that stands still meanwhile either.
SETTINGS = f"""from hypothesis import settings
settings.register_profile("page", max_examples={rounds(100)}, deadline=None, derandomize={not RANDOM})
settings.load_profile("page")
"""


def install(folder: Path, name: str, code: str, group: str, entry_points: Mapping[str, str]) -> None:
    """Make a folder on ``sys.path`` contain an installed package `name`: a module of this name, and entry points."""
    (folder / f"{name}.py").write_text(code, "utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    points = "".join(f"{point} = {value}\n" for point, value in entry_points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{points}", "utf-8")


def install_of_page(folder: Path, name: str, made: str, suite: str, group: str, key: str) -> Callable[..., None]:
    """Install a package in a folder as docs/extend.md says: its entry point `key` is an object of the class `made`.

    The test of the page that inherits `suite` is in the folder, too. Returns what runs Python there, with arguments.
    """
    code = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    module = next(block for block in code if f"class {made}(" in block) + f"\n\n{key.upper()} = {made}()\n"
    install(folder, name, module, group, {key: f"{name}:{key.upper()}"})
    (folder / f"test_{key}.py").write_text(next(block for block in code if suite in block), "utf-8")
    return python_in(folder)


def python_in(folder: Path) -> Callable[..., None]:
    """Return what runs Python, with arguments, in a folder whose installed packages and tests it sees."""
    (folder / "conftest.py").write_text(SETTINGS, "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other installed packages have nothing to do with it

    def run(*arguments: str) -> None:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return run
