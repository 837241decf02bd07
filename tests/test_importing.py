"""Lazy imports: those behind the public names, and of large libraries."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tfrecord_io as tfr
import tfrecord_io.beam
from tfrecord_io.errors import MissingDependencyError

DATA = Path(__file__).parent / "data"

PROGRAM = """\
import sys, threading, time

inside = threading.Event()
found = []


class Slow:  # records who imports what; the first thread pauses inside numpy
    def find_spec(self, name, path=None, target=None):
        found.append((threading.current_thread().name, name))
        if name == "numpy._core" and not inside.is_set():
            inside.set()
            time.sleep(0.5)


import tfrecord_io.io

sys.meta_path.insert(0, Slow())
first = threading.Thread(target=lambda: tfrecord_io.io.serialize_tensor, name="first")
second = threading.Thread(target=lambda: tfrecord_io.read_arrays, name="second")
first.start()
inside.wait()
second.start()
first.join()
second.join()
threads = [thread for thread, name in found if thread in ("first", "second")]
assert found[0] == ("first", "numpy"), found[0]
assert threads == sorted(threads), threads
tfrecord_io.io.serialize_tensor, tfrecord_io.read_arrays
"""


def test_threads_import_in_turn_and_numpy_first() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


# Modules that take long to import, and what they are for: URLs, DataFrames, functions on columns, the command `tfr`.
HEAVY = (
    "numpy",
    "pyarrow",
    "pyarrow.compute",
    "pandas",
    "fsspec",
    "asyncio",
    "google.protobuf",
    "click",
    "rich",
    "tqdm",
    "importlib.metadata",
)
COLUMNS = {"numpy", "pyarrow"}
WITH_FILTER = {*COLUMNS, "pyarrow.compute"}
# Of each usual call: the heavy modules that it imports, the number of modules of this package, and of its dataclasses
# with a generated constructor. A module takes 0.2 ms and more: what few calls use is imported in a function. A frozen
# dataclass takes 0.3 to 0.9 ms: values of usual calls are plain classes or NamedTuples. Four to six modules are doors
# of rooms, and up to seven those of `base/messages`. `python -m benchmarks.import_time` measures the time.
CALLS: dict[str, tuple[set[str], int, int]] = {
    "pass": (set(), 5, 0),
    "tfr.count(path)": (COLUMNS, 67, 3),
    "tfr.read_table(path)": (COLUMNS, 98, 11),
    "tfr.read_table(embedded)": (COLUMNS, 90, 10),
    "tfr.read_table(path, columns=['feature0'], limit=1)": (COLUMNS, 101, 11),
    "tfr.read_table(path, filters='feature0 == 3')": (WITH_FILTER, 110, 17),
    "tfr.dataset(path, schema={'feature1': 'int64'}).filter([('feature1', '>', 2)]).to_table()": (WITH_FILTER, 124, 24),
    "tfr.write_tfrecord({'a': [1, 2]}, new); tfr.open_random(new, key='a').get(2)": (WITH_FILTER, 156, 28),
    "list(tfr.RecordReader(path))": (COLUMNS, 61, 4),
    "tfr.write_tfrecord({'a': [1, None], 'b': ['x', 'y']}, new)": (COLUMNS, 86, 7),
    "tfr.write_tfrecord(table, new)": (COLUMNS, 85, 7),
    "tfr.read_tfrecord(path)": ({*COLUMNS, "pandas"}, 111, 14),
    "sys.argv[1] = '--help'; tfr.apps.cli.main()": ({"click", "importlib.metadata"}, 49, 5),
    "sys.argv[1] = '--version'; tfr.apps.cli.main()": ({"click"}, 20, 1),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_imports_only_the_libraries_that_it_needs(call: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes((DATA / "tutorial.tfrecord").read_bytes())
    embedded = tmp_path / "embedded.tfrecord"
    tfr.write_tfrecord({"a": [1, None], "b": ["x", "y"]}, embedded)
    program = (
        "import sys\n"
        "sys.argv = ['tfr', '--help']\n"
        f"path, embedded, new = {str(path)!r}, {str(embedded)!r}, {str(tmp_path / 'new.tfrecord')!r}\n"
        "import tfrecord_io as tfr\n"
        + ("import tfrecord_io.apps.cli\n" if "cli" in call else "")
        + ("import pyarrow as pa\ntable = pa.table({'a': pa.nulls(3, pa.int64())})\n" if "table," in call else "")
        + f"try:\n    {call}\nexcept SystemExit: pass\n"
        "own = [name for name in sys.modules if name.startswith('tfrecord_io')]\n"
        "values = [(name, value) for name in own for value in vars(sys.modules[name]).values()]\n"
        "classes = [value for name, value in values if isinstance(value, type) and value.__module__ == name]\n"
        "built = [kind for kind in classes if {'__init__', '__dataclass_fields__'} <= vars(kind).keys()]\n"
        f"print(len(own), len(built), *[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    own, built, *imported = done.stderr.splitlines()[-1].split()
    libraries, most_modules, most_built = CALLS[call]
    of_pandas = {"pyarrow.compute", "asyncio"} if "pandas" in libraries else set()
    assert set(imported) - of_pandas == libraries
    assert int(own) <= most_modules
    assert int(built) <= most_built


@pytest.mark.skipif(find_spec("apache_beam") is not None, reason="Beam is installed")
@pytest.mark.plugins("engines")
def test_transforms_are_listed_and_name_what_they_need() -> None:
    assert dir(tfrecord_io.beam) == ["ReadAllTables", "ReadTable", "WriteTable"]
    for name in tfrecord_io.beam.__all__:
        with pytest.raises(MissingDependencyError, match=r"pip install 'tfrecord_io\[beam\]'"):
            getattr(tfrecord_io.beam, name)
