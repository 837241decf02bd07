"""Prints which tests hold a module: python tests/near.py read/reader

First come the files that its docstring names (``Tests: tests/read/test_scan.py.``), then those that are named after it
(``tests/read/test_reader*.py``), and those that import it, or use one of its public names, as ``tfr.dedupe``, which not
every other test uses, too. A module that has none of the latter is also held by the tests of the modules that import
it, or, if those have none, of the modules that import those; one that is imported by its name in a table, by the tests
of its folder. A folder stands for all of its modules, and a file of tests for itself.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE, TESTS = ROOT / "tfrecord_io", ROOT / "tests"
HOME = re.compile(r'^    "(\w+)": "([\w.]+)",', re.MULTILINE)  # of the doors of rooms: where a name is defined
USE = re.compile(r"\btfr\.((?:formats\.|io\.|train\.)?\w+)")  # of a public name
MOST_USES = 25  # a name that more files of tests use says little about them
IMPORT = re.compile(r"^ *(?:from ([\w.]+) )?import (\([^)]*\)|.*)", re.MULTILINE)  # to parse all tests takes seconds


@cache
def homes_of(module: str) -> dict[str, str]:
    """The names of a room's door, by the module that defines each; nothing for other modules."""
    door = ROOT.joinpath(*module.split("."), "__init__.py")
    if not re.fullmatch(r"tfrecord_io\.\w+", module) or not door.exists():
        return {}
    return dict(HOME.findall(door.read_text(encoding="utf-8")))


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def imported(path: Path) -> frozenset[str]:
    """Dotted names that a file imports, also in functions and programs, and the modules that have these names."""
    names: set[str] = set()
    for module, given in IMPORT.findall(text_of(path)):
        words = re.findall(r"([\w.]+)(?: as \w+)?", re.sub("#.*", "", given))
        homes = homes_of(module)
        root = "tfrecord_io" if module == "tfrecord_io.kit" else module
        names.update(
            f"{root}.{homes[word]}.{word}" if word in homes else f"{module}.{word}".lstrip(".") for word in words
        )
    return frozenset(
        ".".join(parts[:n]) for parts in (name.split(".") for name in names) for n in range(1, len(parts) + 1)
    )


@cache
def importers(folder: Path, pattern: str) -> dict[str, set[Path]]:
    """The files below a folder that import each name."""
    found: dict[str, set[Path]] = {}
    for path in folder.rglob(pattern):
        for name in imported(path):
            found.setdefault(name, set()).add(path)
    return found


def public_homes() -> dict[str, str]:
    """The public names of the core, such as ``dedupe`` and ``io.parse_tensor``, and the module that defines each."""
    table = next(
        ast.literal_eval(node.value)
        for node in ast.parse(text_of(PACKAGE / "base" / "public_names.py")).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_HOMES" and node.value is not None
    )
    return {
        f"{shown_in}.{name}".lstrip("."): f"tfrecord_io.{home}"
        for shown_in, homes in table.items()
        for home, names in homes.items()
        for name in names.split()
    }


@cache
def users() -> dict[str, set[Path]]:
    """The files of tests that use public names, by the module that defines them, without names that many use."""
    found: dict[str, set[Path]] = {}
    for path in TESTS.rglob("test_*.py"):
        for name in USE.findall(text_of(path)):
            found.setdefault(name, set()).add(path)
    by_module: dict[str, set[Path]] = {}
    for name, home in public_homes().items():
        if len(paths := found.get(name, set())) <= MOST_USES:
            by_module.setdefault(home, set()).update(paths)
    return by_module


def stated(module: Path) -> set[Path]:
    """The files of tests that the docstring of a module names, or those in the folders that it names."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    found: set[Path] = set()
    for name in re.findall(r"\btests/[\w/]+(?:\.py)?", text.partition("Tests: ")[2]):
        path = ROOT / name
        found.update(path.rglob("test_*.py") if path.is_dir() else [path])
    return found


def named_after(module: Path) -> list[Path]:
    """The files of tests that are named after a module."""
    below = module.relative_to(PACKAGE).with_suffix("")
    return [*(TESTS / below.parent).glob(f"test_{below.name}*.py")]


def direct(module: Path) -> set[Path]:
    """The files of tests that are named after a module, import it, or use its public names."""
    below = module.relative_to(PACKAGE).with_suffix("")
    dotted = ".".join(("tfrecord_io", *below.parts)).removesuffix(".__init__")
    return {*named_after(module), *importers(TESTS, "test_*.py").get(dotted, ()), *users().get(dotted, ())}


def near(module: Path) -> set[Path]:
    """The files of tests that hold a module, also those that its docstring does not name."""
    met, level = {module}, {module}
    while level:
        if found := set[Path]().union(*map(direct, level)):
            return found
        names = [".".join(("tfrecord_io", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in level]
        level = set[Path]().union(*(importers(PACKAGE, "*.py").get(name, ()) for name in names)) - met
        met |= level
    return set((TESTS / module.relative_to(PACKAGE).parent).glob("test_*.py"))  # it is imported by its name in a table


def modules(word: str) -> Iterator[Path]:
    path = word.removeprefix("tfrecord_io/").removesuffix(".py").strip("/")
    if (PACKAGE / path).is_dir():
        yield from (PACKAGE / path).rglob("*.py")
    elif (PACKAGE / f"{path}.py").is_file():
        yield PACKAGE / f"{path}.py"
    else:
        raise SystemExit(f"{word}: no module, and no folder of modules, of tfrecord_io")


def main(words: list[str]) -> None:
    first: set[Path] = set()
    named: set[Path] = set()
    found: set[Path] = set()
    for word in words:
        if word.startswith("tests/"):
            found.add(ROOT / word)
            continue
        for module in modules(word):
            if module.name != "__init__.py":
                first |= stated(module)
                named.update(named_after(module))
                found |= near(module)
    ordered = dict.fromkeys([*sorted(first), *sorted(named), *sorted(found)])
    print("\n".join(path.relative_to(ROOT).as_posix() for path in ordered))


if __name__ == "__main__":
    main(sys.argv[1:])
