"""The rooms of the package: other rooms import a room's door, never a module behind it.

What is outside the rooms imports the kit: folders that do so already are in `CONVERTED`.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import runpy
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from border import WITHOUT
from tfrecord_io import errors, kit, typing
from tfrecord_io.apps import views
from tfrecord_io.base.public_names import homes as public_homes

_SPEC = importlib.util.find_spec("tfrecord_io")
assert _SPEC is not None
assert _SPEC.origin is not None
PACKAGE = Path(_SPEC.origin).parent
STUBS = Path(__file__).parents[1] / "docs" / "reference" / "stub.py"

# The most names that a room's door may have: a name that is added to a full door belongs to a noun that is there.
ROOMS = {"base": 60, "bytes": 40, "store": 40, "columns": 75, "read": 29, "write": 10, "rows": 25}
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
    """(file, module, name, line) of the imports of a room by what is not in it; the kit imports what it shows."""
    yield from (("kit/__init__", home, name, 0) for name, home in KIT.items() if home in ROOMS)
    for file in FILES:
        for module, name, line in imports(file):
            if (room := room_of(module)) is not None and room != room_of(file):
                yield file, module, name, line


KIT: dict[str, str] = importlib.import_module("tfrecord_io.kit")._HOMES
CROSSING = [*crossing()]


def homes(room: str) -> dict[str, str]:
    """The names of a room's door, and the module of the room that defines each."""
    found: dict[str, str] = importlib.import_module(f"tfrecord_io.{room}")._HOMES
    return found


def is_shown_to_users(file: str, module: str, name: str) -> bool:
    """True if `typing` names the module of a public name, as the stubs of the other public modules do."""
    return file == "typing" and public_homes("typing").get(name) == f"tfrecord_io.{module}"


def test_rooms_are_entered_by_their_doors() -> None:
    wrong = [
        f"tfrecord_io/{file}.py:{line}: {module}.{name}"
        for file, module, name, line in CROSSING
        if "." in module and module != "base.public_names" and not is_shown_to_users(file, module, name)
    ]
    assert wrong == [], "import the name from the room, and add it to the door of the room if it is not there"


@pytest.mark.parametrize("public", ["errors", "typing"])
def test_no_module_takes_what_a_public_module_does_not_show(public: str) -> None:
    """What is not for users belongs to a room: a public module is not a second door."""
    shown = importlib.import_module(f"tfrecord_io.{public}").__all__
    wrong = [
        f"tfrecord_io/{file}.py:{line}: {module}.{name}"
        for file in FILES
        for module, name, line in imports(file)
        if module == public and name not in shown
    ]
    assert wrong == []


@pytest.mark.plugins("vision", "report", "engines", "tensorflow", "browse")  # which use them
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
        assert not (PACKAGE / room / f"{name}.py").exists(), f"the module {name} would hide the name"
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


# The most names of rooms that folders outside take: what is left until they import the kit alone.
OUTSIDE = {
    "apps/cli": 13,
    "apps/file_formats": 46,
    "apps/tf_compat": 4,
    "apps/views": 7,
    "plugins/report": 6,
    "plugins/tensorflow": 23,
    "plugins/vision": 26,
    "testing": 3,
}
MOST_OUTSIDE = 71
PUBLIC_CALLS = ("apps/api", "apps/derived_datasets", "apps/lazy_dataset")  # the public package itself


def folder_of(file: str) -> str:
    """The folder of a module outside the rooms: apps/cli, plugins/vision, testing."""
    return "/".join(file.split("/")[: 2 if file.startswith(("apps/", "plugins/")) else 1])


def test_folders_outside_take_few_names_of_rooms() -> None:
    found: dict[str, set[str]] = {}
    for file, module, name, _ in CROSSING:
        if room_of(file) is None and "/" in file and not file.startswith(("kit/", *PUBLIC_CALLS)):
            found.setdefault(folder_of(file), set()).add(f"{module}.{name}")
    wrong = {folder: sorted(names) for folder, names in found.items() if len(names) > OUTSIDE.get(folder, 0)}
    assert wrong == {}, "take the name from the kit, or let the room do the work"
    assert len(set().union(*found.values())) <= MOST_OUTSIDE


# ---- the kit

# Folders that import the kit and, inside functions, the package; to these, one that is converted is added.
CONVERTED = ("plugins/engines", "apps/adapters", "plugins/browse")
MOST_NAMES = 60
MOST_MEMBERS = 299
PUBLIC = {"errors": set(errors.__all__), "typing": {*typing.__all__, *dir(typing)}}
CLASSES = {name: item for name in kit.__all__ if isinstance(item := getattr(kit, name), type)}


def members(item: type[Any]) -> Iterator[tuple[type[Any], str, Any]]:
    """(class, name, value) of the public members of a class, by the first base that has them; no fields of options."""
    owners = [owner for owner in item.__mro__ if owner.__module__.startswith("tfrecord_io.")]
    for at, owner in enumerate(owners):
        own_fields = {field.name for field in fields(owner)} if is_dataclass(owner) else set[str]()
        keywords = own_fields if hasattr(owner, "from_keywords") else set()
        for name in dict.fromkeys([*vars(owner), *getattr(owner, "__annotations__", ())]):
            if not (name.startswith("_") or name in keywords or any(hasattr(base, name) for base in owners[at + 1 :])):
                yield owner, name, vars(owner).get(name)


MEMBERS = {(owner, name): value for item in CLASSES.values() for owner, name, value in members(item)}


def test_the_kit_is_small() -> None:
    assert len(kit.__all__) <= MOST_NAMES
    assert len(MEMBERS) <= MOST_MEMBERS


def test_names_of_the_kit_are_explained() -> None:
    text = (PACKAGE / "kit" / "__init__.py").read_text(encoding="utf-8")
    lines = re.findall(r'^    "(\w+)": "[\w.]+",  # .+$', text, re.MULTILINE)
    assert lines == kit.__all__, "say in one line what each is"
    without = [
        name for name in kit.__all__ if callable(item := getattr(kit, name)) and not (item.__doc__ or "").strip()
    ]
    assert without == []


def is_documented(owner: type[Any], name: str, value: Any) -> bool:
    """True if a method or property has a docstring, and a docstring or a comment says what an attribute is."""
    function = getattr(value, "func", getattr(value, "fget", getattr(value, "__func__", value)))
    if inspect.isfunction(function) or hasattr(function, "cache_info"):
        return bool((function.__doc__ or "").strip())
    comment = re.compile(rf"^    {name}\b.*  # |^    # .*\n    {name}\b", re.MULTILINE)
    return re.search(rf"\b{name}\b", owner.__doc__ or "") is not None or bool(comment.search(inspect.getsource(owner)))


def test_members_of_the_kit_are_documented() -> None:
    without = [key for key, value in MEMBERS.items() if not is_documented(*key, value)]
    assert [f"{owner.__qualname__}.{name}" for owner, name in without] == []


def test_a_name_of_the_kit_is_of_a_room_or_a_facade() -> None:
    for name, home in KIT.items():
        is_facade = home.startswith("kit.") and getattr(kit, name).__module__ == f"tfrecord_io.{home}"
        assert home in ROOMS or home == "errors" or is_facade, name


@pytest.mark.parametrize("folder", [folder for folder in CONVERTED if folder != f"plugins/{WITHOUT}"])
def test_converted_folders_import_the_kit_alone(folder: str) -> None:
    files = [file for file in FILES if file.startswith(f"{folder}/")]
    assert files
    wrong = [
        f"tfrecord_io/{file}.py:{line}: {module}.{name}"
        for file in files
        for module, name, line in imports(file)
        if not is_public(folder, module, name)
    ]
    assert wrong == []


def is_public(folder: str, module: str, name: str) -> bool:
    """True for names of the kit, of `errors` and `typing`, for the package, and in the own folder."""
    if module.replace(".", "/").startswith(folder):
        return True
    if folder.startswith("plugins/") and (module == "apps.views" or module.split(".")[:2] == ["apps", "cli"]):
        return module != "apps.views" or name in views.__all__  # of which pages and commands are made
    return (module == "kit" and name in KIT) or name in PUBLIC.get(module, ()) or (module == "" and name in dir(tfr))


@pytest.mark.parametrize("folder", CONVERTED)
def test_converted_folders_import_the_package_inside_functions(folder: str) -> None:
    wrong = [
        f"tfrecord_io/{file}.py:{node.lineno}"
        for file in FILES
        if file.startswith(f"{folder}/")
        for node in ast.parse(FILES[file].read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import) and any(alias.name == "tfrecord_io" for alias in node.names)
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", CONVERTED)
def test_converted_folders_import_no_module_by_its_name(folder: str) -> None:
    """A text with the name of a module below the package is only in rows, which are tables of such names."""
    found = {
        (file, node.value)
        for file in FILES
        if file.startswith(f"{folder}/")
        for node in ast.walk(ast.parse(FILES[file].read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith("tfrecord_io.")
        and node.value.strip(".").partition(".")[2].replace(".", "/") in {*FILES, *ROOMS}
        and not node.value.startswith(f"tfrecord_io.{folder.replace('/', '.')}")
    }
    assert found == set()


@pytest.mark.skipif(not STUBS.exists(), reason="the sources are not here")
def test_the_stub_of_the_kit_is_as_written() -> None:
    expected = runpy.run_path(str(STUBS))["kit_stub"]()
    assert (PACKAGE / "kit" / "__init__.pyi").read_text("utf-8") == expected, "run: python docs/reference/stub.py"
