"""Which engine is used, and the warnings and errors without the compiled one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfrecord_io.bytes.engine import native, select

WITHOUT_KERNEL = """
import sys
sys.modules["tfrecord_io.bytes._native._kernel"] = None  # its import fails
import tfrecord_io as tfr
tfr.show_versions()
for use in (lambda: tfr.read_table("a.tfrecord"), lambda: tfr.write_tfrecord({"x": [1]}, "b.tfrecord"),
            lambda: tfr.decode_example(b"")):
    try:
        use()
    except ImportError as error:
        assert isinstance(error, tfr.errors.MissingDependencyError)
        print("error:", error)
"""


def test_a_missing_kernel_is_an_error_that_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    environment = {name: value for name, value in os.environ.items() if name != "TFRECORD_IO_ENGINE"}
    command = [sys.executable, "-c", WITHOUT_KERNEL]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    advice = "install a C++ compiler, and then build it: pip install "
    (shown,) = (line for line in done.stdout.splitlines() if line.startswith("engine: "))
    assert shown.startswith("engine: missing: the compiled engine cannot be loaded")
    errors = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert len(errors) == 3
    assert all(advice in line for line in [shown, *errors])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tfrecord"]


def test_an_environment_variable_names_the_module_of_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("native", ""):
        monkeypatch.setenv("TFRECORD_IO_ENGINE", value)
        assert select.get_engine() is native.ENGINE
    monkeypatch.delenv("TFRECORD_IO_ENGINE")
    assert select.get_engine() is native.ENGINE
    monkeypatch.setenv("TFRECORD_IO_ENGINE", "reference_engine")
    assert select.get_engine().name == "reference_engine"
    monkeypatch.setenv("TFRECORD_IO_ENGINE", "no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        select.get_engine()
