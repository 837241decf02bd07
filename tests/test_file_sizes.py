"""How large files and folders may become, and that the tests lie where the package's modules do."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
_SPEC = importlib.util.find_spec("tfrecord_io")
assert _SPEC is not None
assert _SPEC.origin is not None
PACKAGE = Path(_SPEC.origin).parent

LINES = 600
FILES_OF_A_FOLDER = 30
TOP_LEVEL_MODULES = 13

# Folders of tests that show a property of many modules, and of what tests share.
SUITES = {"laws", "faults", "end_to_end", "conformance", "support", "data"}
# Files of tests that are about more than one module, next to those of their folder.
TOPICS = {
    ".": {
        "budgets",
        "layout",
        "near",
        "notebook",
        "public_api",
        "file_sizes",
        "docs",
        "likely_mistakes",
        "doctests",
        "diagrams",
        "importing",
        "reference",
        "workflows",
    },  # the project itself
    "adapters": {"derived_datasets", "training_options"},  # of all of them
    # what both engines fulfil
    "engine": {
        "allocation",
        "equivalence",
        "fast_paths",
        "find_header",
        "golden",
        "message_fields",
        "name_hash",
        "packed_runs",
        "wire",
        "rare_records",
    },
    "compression": {"compression", "compressed_files"},  # all codecs
    "file_formats": {"all_formats", "hostile_files"},  # all formats, and all of array files
    "storage/write": {"publishers"},  # what all ways to publish promise
    "options": {"options"},  # the keywords of all calls
}


def sources(*suffixes: str) -> list[Path]:
    """Files of the package, the tests and, where they are, the benchmarks."""
    folders = [PACKAGE, TESTS, ROOT / "benchmarks"]
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in suffixes)


def shown(path: Path) -> str:
    base = PACKAGE.parent if path.is_relative_to(PACKAGE) else ROOT
    return path.relative_to(base).as_posix()


def test_no_file_is_longer_than_600_lines() -> None:
    """The stub ``__init__.pyi`` is generated, and may have any length."""
    lengths = {shown(path): len(path.read_text("utf-8").splitlines()) for path in sources(".py", ".cc", ".h", ".inc")}
    assert {name: length for name, length in lengths.items() if length > LINES} == {}


def test_the_top_of_the_package_has_few_modules() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= TOP_LEVEL_MODULES


def test_no_folder_has_more_than_30_files() -> None:
    counts = Counter(shown(path.parent) for path in sources(".py"))
    assert {folder: count for folder, count in counts.items() if count > FILES_OF_A_FOLDER} == {}


def test_no_module_has_the_name_of_another() -> None:
    names = Counter(path.name for path in PACKAGE.rglob("*.py") if not path.name.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_kernel_has_few_units() -> None:
    """A unit is a header, its source and its variants for single processors: crc32c.h, crc32c.cc, crc32c_arm.cc …"""
    units = Counter((shown(path.parent), path.stem.split("_")[0]) for path in sources(".cc", ".h", ".inc"))
    assert all(count <= FILES_OF_A_FOLDER for count in Counter(folder for folder, _ in units).values())


MODULE_TESTS = [
    path.relative_to(TESTS)
    for path in sorted(TESTS.rglob("test_*.py"))
    if path.relative_to(TESTS).parts[0] not in SUITES
]


@pytest.mark.parametrize("path", MODULE_TESTS, ids=str)
def test_tests_are_named_after_a_module(path: Path) -> None:
    """tests/read/test_reader.py tests tfrecord_io/read/reader.py, and test_reader_schema.py one topic of it."""
    name, folder = path.stem.removeprefix("test_"), path.parent.as_posix()
    if name in TOPICS.get(folder, ()):
        return
    modules = {module.stem for module in (PACKAGE / folder).iterdir() if not module.name.startswith("__")}
    assert any(name == module or name.startswith(f"{module}_") for module in modules), (
        f"tests/{path}: tfrecord_io/{folder} has no module of that name; rename it, or list its topic here"
    )


def test_listed_topics_exist() -> None:
    for folder, names in TOPICS.items():
        assert all((TESTS / folder / f"test_{name}.py").exists() for name in names), folder
