"""The rooms of the package: other rooms import a room's door, never a module behind it."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

_SPEC = importlib.util.find_spec("tfrecord_io")
assert _SPEC is not None
assert _SPEC.origin is not None
PACKAGE = Path(_SPEC.origin).parent
STUBS = Path(__file__).parents[1] / "docs" / "reference" / "stub.py"

# The most names that a room's door may have: a name that is added to a full door belongs to a noun that is there.
ROOMS = {"base": 120, "bytes": 76, "store": 158, "columns": 317, "read": 128, "write": 28, "rows": 31}
FILES = {path.relative_to(PACKAGE).with_suffix("").as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str | None:
    """The room of a module ``a/b/c`` or ``a.b.c``, if it is in one."""
    room = re.split(r"[/.]", module)[0]
    return room if room in ROOMS else None


def imports(file: str) -> Iterator[tuple[str, str, int]]:
    """(module below the package, name, line) of each import of this package, inside functions and as text, too."""
    for node in ast.walk(ast.parse(FILES[file].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tfrecord_io":
            for alias in node.names:
                yield f"{node.module}".partition(".")[2], alias.name, node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("tfrecord_io."):
                    yield alias.name.partition(".")[2], "", node.lineno


def crossing() -> Iterator[tuple[str, str, str, int]]:
    """(file, module, name, line) of the imports of a room by what is not in it."""
    for file in FILES:
        for module, name, line in imports(file):
            if (room := room_of(module)) is not None and room != room_of(file):
                yield file, module, name, line


CROSSING = [*crossing()]


def homes(room: str) -> dict[str, str]:
    """The names of a room's door, and the module of the room that defines each."""
    found: dict[str, str] = importlib.import_module(f"tfrecord_io.{room}")._HOMES
    return found


def test_rooms_are_entered_by_their_doors() -> None:
    wrong = [
        f"tfrecord_io/{file}.py:{line}: {module}.{name}"
        for file, module, name, line in CROSSING
        if "." in module and module != "base.public_names"
    ]
    assert wrong == [], "import the name from the room, and add it to the door of the room if it is not there"


@pytest.mark.parametrize("public", ["errors", "typing"])
def test_no_module_takes_what_a_public_module_does_not_show(public: str) -> None:
    """What is not for users has a room: a public module is no second door."""
    shown = importlib.import_module(f"tfrecord_io.{public}").__all__
    wrong = [
        f"tfrecord_io/{file}.py:{line}: {module}.{name}"
        for file in FILES
        for module, name, line in imports(file)
        if module == public and name not in shown
    ]
    assert wrong == []


@pytest.mark.parametrize("room", ROOMS)
def test_names_of_a_door_are_used_and_explained(room: str) -> None:
    used = {name for _, module, name, _ in CROSSING if module == room}
    assert homes(room).keys() - used == set(), "no other room imports these"
    text = (PACKAGE / room / "__init__.py").read_text(encoding="utf-8")
    lines = re.findall(r'^    "(\w+)": "[\w.]+",  # .+$', text, re.MULTILINE)
    assert homes(room).keys() - set(lines) == set(), "say in one line what each is"


@pytest.mark.parametrize("room", ROOMS)
def test_a_door_states_where_each_name_is_defined(room: str) -> None:
    for name, module in homes(room).items():
        assert not (PACKAGE / room / f"{name}.py").exists(), f"the module {name} would take the place of the name"
        assert f"{room}/{module}".replace(".", "/") in FILES or (PACKAGE / room / module.replace(".", "/")).is_dir()
        item = getattr(importlib.import_module(f"tfrecord_io.{room}"), name)
        if isinstance(item, type) and item.__module__.startswith("tfrecord_io."):
            assert item.__module__ == f"tfrecord_io.{room}.{module}"


@pytest.mark.parametrize(("room", "most"), ROOMS.items())
def test_a_door_is_narrow(room: str, most: int) -> None:
    assert len(homes(room)) <= most


@pytest.mark.skipif(not STUBS.exists(), reason="the sources are not here")
@pytest.mark.parametrize("room", ROOMS)
def test_stubs_of_doors_are_as_written(room: str) -> None:
    expected = runpy.run_path(str(STUBS))["room_stub"](room)
    assert (PACKAGE / room / "__init__.pyi").read_text("utf-8") == expected, "run: python docs/reference/stub.py"
