"""Fixtures of all tests."""

from __future__ import annotations

import atexit
import gc
import importlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import border
from rounds import COMPLETE, QUICK, RANDOM, TIER, is_law, rounds, rounds_of
from running_threads import pytest_runtest_setup  # noqa: F401
from servers import (  # noqa: F401
    azure,
    azure_endpoint,
    bucket,
    chaos,
    conditional,
    dying,
    example_buckets,
    gcs,
    gcs_endpoint,
    gcs_server,
    google,
    s3,
    s3_endpoint,
    web,
)
from shared_collection import SharedCollection
from suites.resumed_datasets import written  # noqa: F401
from tiers import pytest_collection_modifyitems, pytest_runtest_protocol, pytest_sessionfinish  # noqa: F401
from unwaited import fsync

ENGINES = ("native", "reference_engine")
COMPARED = {"laws"}  # folders whose tests run on both engines, beside that of the engines; in a storm all do

for kind in ("laws", "others"):
    with rounds_of(kind):
        settings.register_profile(
            kind,
            max_examples=rounds(100),
            derandomize=not RANDOM,
            deadline=None,
            suppress_health_check=[HealthCheck.differing_executors],  # several classes inherit the tests of a suite
        )


@contextmanager
def examples_of(path: Path) -> Iterator[None]:
    """Import or run a file of tests with the rounds and examples of its folder."""
    with rounds_of(path.parent.name):
        settings.load_profile("laws" if is_law() else "others")
        yield


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    with examples_of(collector.path):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with examples_of(item.path):
        return (yield)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(border, "border")
    if not COMPLETE:
        os.fsync = fsync
    if hasattr(config, "workerinput"):  # one process of several
        config.pluginmanager.register(SharedCollection(config.workerinput["workerid"]))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Freeze the objects loaded so far, which garbage collections then skip, while tests are loaded and run."""
    gc.disable()
    result = yield
    gc.freeze()
    atexit.register(gc.unfreeze)  # so that the kernel finds nothing left at the end, after pytest has collected twice
    gc.enable()
    return result


def pytest_report_header() -> str:
    import tfrecord_io

    seeds = "new" if RANDOM else "fixed, new with RANDOM=1"
    return f"tfrecord_io: {Path(tfrecord_io.__file__).parent}; tier of tests: {TIER}; seeds: {seeds}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """In a complete run, the sums of what tests counted with `record_property`; dev/reliability.md has them."""
    sums: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        sums.update({name: value for name, value in report.user_properties if isinstance(value, int)})
    if COMPLETE and sums:
        terminalreporter.section("figures")
        for name, value in sums.items():
            terminalreporter.line(f"{value:>12,}  {name}")


@pytest.fixture
def data() -> Path:
    """The folder of the golden files; its README.md says where each comes from."""
    return Path(__file__).parent / "data"


@pytest.fixture(scope="module", autouse=True)
def own_garbage(request: pytest.FixtureRequest) -> None:
    """Freeze the objects of earlier tests, which a test that collects garbage would search for a second each time."""
    if "gc" in vars(request.module):
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def native_engine() -> None:
    """Fail, not skip, where the compiled engine is missing: a run without it shows nothing about it."""
    try:
        importlib.import_module("tfrecord_io.bytes._native._kernel")
    except ImportError as error:
        pytest.fail(f"the compiled engine is missing: {error}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the engines of a test: the compiled one, and the reference where both are compared."""
    test = metafunc.definition
    if "engine" not in metafunc.fixturenames:
        return
    folders = test.path.relative_to(Path(__file__).parent).parts
    is_given = any("engine" in str(mark.args[0]) for mark in test.iter_markers("parametrize"))
    if is_given or "engine" in folders:  # which has a fixture of that name
        return
    both = not QUICK and (COMPLETE or folders[0] in COMPARED)
    metafunc.parametrize("engine", ENGINES if both else ENGINES[:1])


@pytest.fixture(autouse=True)
def chosen_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test with a parameter `engine` on the engine of that name, in all of its examples."""
    callspec = getattr(request.node, "callspec", None)
    name = callspec.params.get("engine") if callspec else None
    if name not in ENGINES:
        yield
        return
    if name == "native":
        request.getfixturevalue("native_engine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFRECORD_IO_ENGINE", name)
        patch.setenv("PYTHONPATH", str(Path(__file__).parent / "support"), prepend=os.pathsep)  # for child processes
        yield


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """``new_folder()``: an empty folder, one for each example of a randomised test."""
    root, numbers = tmp_path_factory.mktemp("examples"), count()

    def make() -> Path:
        path = root / str(next(numbers))
        path.mkdir()
        return path

    return make


@pytest.fixture
def own_log() -> Iterator[None]:
    """The log afterwards is as it was: ``-v`` of a command in this process sets it."""
    logger = logging.getLogger("tfrecord_io")
    handlers, level = [*logger.handlers], logger.level
    yield
    logger.handlers = handlers
    logger.setLevel(level)


@pytest.fixture
def flipped(data: Path, tmp_path: Path) -> Callable[..., Path]:
    """``flipped(name, byte, bit)``: a copy of a golden file with one bit flipped; negative bytes are from the end."""

    def make(name: str, byte: int, bit: int = 0) -> Path:
        content = bytearray((data / name).read_bytes())
        content[byte] ^= 1 << bit
        path = tmp_path / "flipped.tfrecord"
        path.write_bytes(content)
        return path

    return make
