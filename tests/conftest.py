"""Fixtures of all tests."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from quick import pytest_collection_modifyitems, pytest_runtest_protocol, pytest_sessionfinish  # noqa: F401
from rounds import COMPLETE, QUICK, RANDOM, rounds
from running_threads import pytest_runtest_setup  # noqa: F401
from servers import bucket, chaos, dying, example_buckets, gcs, gcs_endpoint, s3, s3_endpoint, web  # noqa: F401
from suites.resumed_datasets import written  # noqa: F401

ENGINES = ("native", "reference")

settings.register_profile(
    "tfrecord_io",
    max_examples=rounds(100),
    derandomize=not RANDOM,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("tfrecord_io")


def pytest_report_header() -> str:
    import tfrecord_io

    extent = "all" if COMPLETE else "reduced, all with STORM=1"
    seeds = "new" if RANDOM else "fixed, new with RANDOM=1"
    return f"tfrecord_io: {Path(tfrecord_io.__file__).parent}; rounds of randomised tests: {extent}; seeds: {seeds}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """In a complete run, the sums of what tests counted with `record_property`; docs/reliability.md has them."""
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


@pytest.fixture(scope="session")
def native_engine() -> None:
    """Fail, not skip, where the compiled engine is missing: a run without it shows nothing about it."""
    try:
        importlib.import_module("tfrecord_io._native._kernel")
    except ImportError as error:
        pytest.fail(f"the compiled engine is missing: {error}")


@pytest.fixture(params=ENGINES[:1] if QUICK else ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test once on each engine; its name."""
    if request.param == "native":
        request.getfixturevalue("native_engine")
    monkeypatch.setenv("TFRECORD_IO_ENGINE", request.param)
    return str(request.param)


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
