"""No two modules have one name, and the tests lie where the package's modules do."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

from border import WITHOUT

TESTS = Path(__file__).parent
_SPEC = importlib.util.find_spec("tfrecord_io")
assert _SPEC is not None
assert _SPEC.origin is not None
PACKAGE = Path(_SPEC.origin).parent

# Folders of tests that show a property of many modules, and of what tests share.
SUITES = {"laws", "faults", "simulation", "protocol", "end_to_end", "conformance", "support", "data"}
# Files of tests that are about more than one module, next to those of their folder.
TOPICS = {
    ".": {
        "layout",
        "near",
        "tiers",
        "planted",
        "notebook",
        "public_api",
        "file_names",
        "docs",
        "likely_mistakes",
        "mistakes",
        "every_choice",
        "doctests",
        "diagrams",
        "importing",
        "reference",
        "rooms",
        "workflows",
        "readme",
        "rows_page",
    },  # the project itself
    "apps/adapters": {"derived_datasets", "training_options"},  # of all of them
    # what both engines fulfil
    "bytes/engine": {
        "allocation",
        "equivalence",
        "fast_paths",
        "find_header",
        "golden",
        "message_fields",
        "name_hash",
        "packed_runs",
        "reference",
        "reference_frames",
        "reference_members",
        "wire",
        "rare_records",
    },
    "bytes/compression": {"compression", "compressed_files"},  # all codecs
    "apps/cli": {"hints"},  # of all errors
    "apps/file_formats": {"all_formats", "hostile_files"},  # all formats, and all of array files
    "store/write": {"publishers"},  # what all ways to publish promise
    "base/options": {"options"},  # the keywords of all calls
}


def test_no_module_has_the_name_of_another() -> None:
    names = Counter(path.name for path in PACKAGE.rglob("*.py") if not path.name.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


MODULE_TESTS = [
    path.relative_to(TESTS)
    for path in sorted(TESTS.rglob("test_*.py"))
    if path.relative_to(TESTS).parts[0] not in SUITES and path.relative_to(TESTS).parts[:2] != ("plugins", WITHOUT)
]


def is_named_after_a_module(path: Path) -> bool:
    name, folder = path.stem.removeprefix("test_"), path.parent.as_posix()
    modules = {module.stem for module in (PACKAGE / folder).iterdir() if not module.name.startswith("__")}
    return any(name == module or name.startswith(f"{module}_") for module in modules | TOPICS.get(folder, set()))


def test_tests_are_named_after_a_module() -> None:
    """tests/read/test_reader.py tests tfrecord_io/read/reader.py, and test_reader_schema.py one topic of it."""
    wrong = [f"tests/{path}" for path in MODULE_TESTS if not is_named_after_a_module(path)]
    assert wrong == [], "their folders have no module of these names; rename them, or list their topics here"


def test_listed_topics_exist() -> None:
    for folder, names in TOPICS.items():
        assert all((TESTS / folder / f"test_{name}.py").exists() for name in names), folder
