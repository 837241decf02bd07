"""Small installed packages, with entry points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, name: str, code: str, group: str, entry_points: Mapping[str, str]) -> None:
    """Make a folder on ``sys.path`` contain an installed package `name`: a module of this name, and entry points."""
    (folder / f"{name}.py").write_text(code, "utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    points = "".join(f"{point} = {value}\n" for point, value in entry_points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{points}", "utf-8")
