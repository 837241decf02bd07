"""The lazy imports behind the public names."""

from __future__ import annotations

import subprocess
import sys

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
