"""Write the stubs ``*.pyi`` of the public modules, which import a name when it is first used: where each is defined.

Type checkers and editors read signatures and docstrings there. The stubs are in the repository; a test compares them.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tfrecord_io.base.public_names import SHOWN_IN, homes

ROOT = Path(__file__).parents[2]
STUBS = {"": "__init__", "formats": "formats", "io": "io", "train": "train"}  # public modules without code of their own


def stub(shown_in: str) -> str:
    """The text of the stub of a public module; "" is the package."""
    names, by_module = homes(shown_in), defaultdict[str, list[str]](list)
    for name, module in names.items():
        by_module[module].append(name)
    by_module["tfrecord_io"] += [] if shown_in else SHOWN_IN
    lines = [f"# Written by docs/reference/{Path(__file__).name}.\n"]
    for module in sorted(filter(by_module.get, by_module)):
        lines += [f"from {module} import {name} as {name}" for name in sorted(by_module[module])]
    if not shown_in:
        lines.append("\n__version__: str")
    lines.append("\n__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n")
    return "\n".join(lines)


if __name__ == "__main__":
    for shown_in, file in STUBS.items():
        (ROOT / "tfrecord_io" / f"{file}.pyi").write_text(stub(shown_in), encoding="utf-8")
