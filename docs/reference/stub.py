"""Write the stubs ``*.pyi`` of modules that import a name when it is first used: where each is defined.

Those are the public modules, the doors of the rooms, and the kit.

Type checkers and editors read signatures and docstrings there. The stubs are in the repository; a test compares them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from tfrecord_io.base.public_names import SHOWN_IN, homes

ROOT = Path(__file__).parents[2]
STUBS = {"": "__init__", "formats": "formats", "io": "io", "train": "train"}  # public modules without code of their own


ROOMS = ("base", "bytes", "store", "columns", "read", "write", "rows")


def stub(shown_in: str) -> str:
    """The text of the stub of a public module; "" is the package."""
    return _text(homes(shown_in), ()) if shown_in else _text(homes(""), SHOWN_IN)


def room_stub(room: str) -> str:
    """The text of the stub of a room's door."""
    return _text({name: f"tfrecord_io.{room}.{home}" for name, home in room_homes(room).items()}, ())


def kit_stub() -> str:
    """The text of the stub of `tfrecord_io.kit`."""
    homes_of_kit: dict[str, str] = import_module("tfrecord_io.kit")._HOMES
    return _text({name: f"tfrecord_io.{home}" for name, home in homes_of_kit.items()}, ())


def room_homes(room: str) -> dict[str, str]:
    """The names of a room's door, by the module of the room that defines each."""
    homes_of_room: dict[str, str] = import_module(f"tfrecord_io.{room}")._HOMES
    return homes_of_room


def _text(names: Mapping[str, str], modules: tuple[str, ...]) -> str:
    by_module = defaultdict[str, list[str]](list)
    for name, module in names.items():
        by_module[module].append(name)
    by_module["tfrecord_io"] += modules
    lines = [f"# Written by docs/reference/{Path(__file__).name}.\n"]
    for module in sorted(filter(by_module.get, by_module)):
        lines += [_import(module, name) for name in sorted(by_module[module], key=_order)]
    if modules:
        lines.append("\n__version__: str")
    lines.append("\n__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n")
    return "\n".join(lines)


def _order(name: str) -> tuple[int, str]:
    """Constants, classes, functions: the order in which imports are formatted."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name.casefold()


def _import(module: str, name: str) -> str:
    line = f"from {module} import {name} as {name}"
    return line if len(line) <= 120 else f"from {module} import (\n    {name} as {name},\n)"


if __name__ == "__main__":
    for shown_in, file in STUBS.items():
        (ROOT / "tfrecord_io" / f"{file}.pyi").write_text(stub(shown_in), encoding="utf-8")
    for room in ROOMS:
        (ROOT / "tfrecord_io" / room / "__init__.pyi").write_text(room_stub(room), encoding="utf-8")
    (ROOT / "tfrecord_io" / "kit" / "__init__.pyi").write_text(kit_stub(), encoding="utf-8")
