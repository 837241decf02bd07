"""Files are written atomically, whatever fails."""

import errno
import io
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forked import interpreter
from rounds import COMPLETE, rounds
from tfrecord_io.store import operating_systems
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.write.atomic import open_output


def write(path, data, **kwargs):
    with open_output(path, **kwargs) as out:
        assert out.write(data) == len(data)
        assert out.offset == len(data)


def names(folder):
    return sorted(os.listdir(folder))


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"old")
    return path


def test_all_bytes_are_written(tmp_path):
    data = np.random.default_rng(0).integers(0, 256, 20 << 20, dtype=np.uint8)
    with open_output(tmp_path / "a") as out:
        out.write(data[: 9 << 20])
        out.write(memoryview(data)[9 << 20 :])
        out.write(b"")
        assert names(tmp_path) != ["a"]
    assert (tmp_path / "a").read_bytes() == data.tobytes()
    assert names(tmp_path) == ["a"]


@settings(max_examples=rounds(20))
@given(pieces=st.lists(st.integers(0, 12 << 20), max_size=6))
def test_what_is_written_is_stored_meanwhile(tmp_path_factory, pieces):
    begun = []

    class Watched(operating_systems.System):
        def begin_sync(self, descriptor, offset, size):
            assert os.fstat(descriptor).st_size >= offset + size, "it is not written yet"
            begun.append((offset, offset + size))
            super().begin_sync(descriptor, offset, size)

    path = tmp_path_factory.mktemp("watched") / "a"
    with operating_systems.use(Watched()), open_output(path) as out:
        for size in pieces:
            out.write(bytes(size))
    ends = [0, *(end for _, end in begun)]
    assert ends[:-1] == [offset for offset, _ in begun], "each byte once, in order"
    assert sum(pieces) - ends[-1] < 4 << 20, "what is left for the sync at the end"
    assert path.stat().st_size == sum(pieces)


def test_arrays_of_any_type_are_their_bytes(tmp_path):
    write(tmp_path / "a", memoryview(np.arange(3, dtype="<i4")).cast("B"))
    with open_output(tmp_path / "b") as out:
        out.write(np.arange(3, dtype="<i4"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == np.arange(3, dtype="<i4").tobytes()


def test_target_is_unchanged_until_commit(target):
    out = open_output(target)
    out.write(b"new")
    assert target.read_bytes() == b"old"
    out.commit()
    assert target.read_bytes() == b"new"
    out.discard()
    assert target.read_bytes() == b"new"
    with pytest.raises(ValueError, match="closed"):
        out.write(b"more")
    with pytest.raises(ValueError, match="closed"):
        out.commit()


def test_a_forked_child_does_not_discard_its_parents_file(target):
    out = open_output(target)
    out.write(b"new")
    pid = os.fork()
    if not pid:
        del out
        os._exit(0)
    os.waitpid(pid, 0)
    out.commit()
    assert target.read_bytes() == b"new"


def test_temporary_files_are_ignored_when_a_directory_is_read(target):
    with open_output(target.parent / "b.tfrecord"):
        assert len(names(target.parent)) == 2
        assert [s.path for s in resolve_inputs(target.parent)] == [str(target)]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_new_file_has_the_mode_of_open(tmp_path, mask):
    before = os.umask(mask)
    try:
        write(tmp_path / "a", b"x")
        (tmp_path / "b").write_bytes(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o777])
def test_a_replaced_file_keeps_its_mode(target, mode):
    target.chmod(mode)
    write(target, b"new")
    assert stat.S_IMODE(target.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner")
def test_a_replaced_file_keeps_its_owner(target):
    os.chown(target, 65534, 65534)
    write(target, b"new")
    assert (target.stat().st_uid, target.stat().st_gid) == (65534, 65534)


def test_link_target_is_replaced(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data/a")
    for text in (b"one", b"two"):
        write(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "data/a").read_bytes() == text
        assert names(tmp_path) == ["data", "link"]
        assert names(tmp_path / "data") == ["a"]


def test_the_longest_name_can_be_written(tmp_path):
    for name in ("n" * 255, "ö" * 127, "𝄞" * 63):
        write(tmp_path / name, b"x")
        assert (tmp_path / name).read_bytes() == b"x"
    with pytest.raises(OSError, match="File name too long"):
        open_output(tmp_path / ("n" * 256))


def test_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("a", b"x")
    assert names(tmp_path) == ["a"]


def test_special_characters_are_taken_literally(tmp_path):
    for name in ("a*", "{a,b}", "a@8", "[x]"):
        write(tmp_path / name, b"x")
    assert names(tmp_path) == sorted(["a*", "{a,b}", "a@8", "[x]"])


def test_overwrite_false_refuses_an_existing_file(target):
    with pytest.raises(FileExistsError, match="mode='overwrite' replaces it") as caught:
        open_output(target, mode="error")
    assert caught.value.filename == str(target)
    write(target, b"new", mode="overwrite")
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("links", [True, False])
def test_overwrite_false_refuses_a_file_created_meanwhile(tmp_path, links, monkeypatch):
    if not links:
        monkeypatch.setattr(os, "link", lambda *a: (_ for _ in ()).throw(OSError(errno.EPERM, "no links here")))
    write(tmp_path / "b", b"mine", mode="error")
    assert (tmp_path / "b").read_bytes() == b"mine"
    out = open_output(tmp_path / "a", mode="error")
    out.write(b"mine")
    (tmp_path / "a").write_bytes(b"other")
    with pytest.raises(FileExistsError, match="mode='overwrite'"):
        out.commit()
    assert (tmp_path / "a").read_bytes() == b"other"
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.fault(66)
def test_a_full_disk_or_a_size_limit_leaves_the_target(target):
    code = f"""
        import resource
        from tfrecord_io.store.write.atomic import open_output
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            with open_output({str(target)!r}) as out:
                for _ in range(30):
                    out.write(bytes(10_000))
        except OSError as error:
            assert error.filename == {str(target)!r} and "at byte 100000" in str(error), error
        else:
            raise SystemExit("no error")
    """
    subprocess.run([*interpreter(), "-c", textwrap.dedent(code)], check=True)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 100_000
    assert target.read_bytes() == b"old"
    assert names(target.parent) == ["a.tfrecord"]


@pytest.mark.fault(66)
def test_failed_write_prevents_publishing(target, monkeypatch):
    out = open_output(target)
    out.write(b"half")
    monkeypatch.setattr(os, "write", lambda *a: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space left on device, at byte 4") as caught:
        out.write(b"more")
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(ValueError, match="a write failed"):
        out.commit()
    assert target.read_bytes() == b"old"
    assert names(target.parent) == ["a.tfrecord"]


@pytest.mark.fault(61)
def test_short_writes_are_continued(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
    write(tmp_path / "a", b"abcdefghij")
    assert (tmp_path / "a").read_bytes() == b"abcdefghij"


@pytest.mark.fault(66)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_commit_leaves_the_target(target, monkeypatch, call):
    monkeypatch.setattr(os, call, lambda *a: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error") as caught:
        write(target, b"new")
    assert caught.value.filename == str(target)
    assert target.read_bytes() == b"old"
    assert names(target.parent) == ["a.tfrecord"]


@pytest.mark.fault(67)
def test_killed_at_any_moment_the_target_is_old_or_new(target):
    code = f"""
        import sys
        from tfrecord_io.store.write.atomic import open_output
        print("ready", flush=True)
        for i in range(100_000):
            with open_output({str(target)!r}) as out:
                for _ in range(20):
                    out.write(bytes([i % 256]) * 5000)
    """
    for delay in range(0, 8, 1 if COMPLETE else 2):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
        process.stdout.readline()
        threading.Event().wait(0.002 * delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        data = target.read_bytes()
        assert data == b"old" or (len(data) == 100_000 and len(set(data)) == 1)
        assert all(n.startswith(".a.tfrecord.") for n in names(target.parent) if n != "a.tfrecord")
        assert [s.path for s in resolve_inputs(target.parent)] == [str(target)]


@pytest.mark.fault(64)
def test_ctrl_c_during_a_long_write_leaves_the_target(target):
    code = f"""
        import signal
        from tfrecord_io.store.write.atomic import open_output
        signal.signal(signal.SIGINT, signal.default_int_handler)
        data = bytes(1 << 20)
        with open_output({str(target)!r}) as out:
            print("ready", flush=True)
            for i in range(3000):
                out.write(data)
    """
    process = subprocess.Popen(
        [*interpreter(), "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate()[1]
    assert target.read_bytes() == b"old"
    assert names(target.parent) == ["a.tfrecord"]


def test_devices_and_pipes_are_written_directly(tmp_path):
    write("/dev/null", b"x")
    with pytest.raises(OSError, match=r"No space left on device, at byte 0.*/dev/full"):
        write("/dev/full", b"x")
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(tmp_path / "pipe", b"data")
    reader.join()
    assert got == [b"data"]
    assert names(tmp_path) == ["pipe"]


def test_file_objects_are_written_directly_and_left_open(tmp_path):
    file = io.BytesIO(b"before")
    file.seek(6)
    write(file, b"data")
    assert file.getvalue() == b"beforedata"
    with open(tmp_path / "a", "wb", buffering=0) as raw:
        write(raw, b"data")
        assert not raw.closed
    with open(tmp_path / "b", "wb") as buffered:
        write(buffered, b"data")
        assert (tmp_path / "b").read_bytes() == b"data"
    with pytest.raises(TypeError, match="text mode"):
        open_output(io.StringIO())
    with open(tmp_path / "a", "rb") as file, pytest.raises(ValueError, match="not open for writing"):
        open_output(file)
    with pytest.raises(TypeError, match="not int"):
        open_output(3)


def test_a_file_that_another_process_removes_can_be_written(tmp_path):
    """An index beside a writer that replaces it, for example."""
    path, ended = tmp_path / "a", threading.Event()

    def replace() -> None:
        while not ended.is_set():
            path.write_bytes(b"")
            path.unlink()

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(1000):
            open_output(str(path)).discard()
    finally:
        ended.set()
        thread.join()
