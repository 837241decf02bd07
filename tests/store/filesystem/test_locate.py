"""Which paths are refused before a file is opened."""

from __future__ import annotations

import errno
import ftplib
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import tfrecord_io as tfr
from limited import set_limits
from tfrecord_io.base import StorageOptions
from tfrecord_io.store.filesystem.locate import Location

CALLS: dict[str, Callable[[str], Any]] = {
    "read": tfr.read_table,
    "count": tfr.count,
    "write": lambda path: tfr.write_tfrecord({"x": [1]}, path),
    "shards": lambda path: tfr.write_tfrecord({"x": [1]}, path, shards=2),
    "records": tfr.RecordWriter,
    "convert": lambda path: tfr.convert(path, "x.parquet"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_lone_surrogate_in_a_path(call: str) -> None:
    with pytest.raises(ValueError, match=r"ud800.*lone surrogate") as caught:
        CALLS[call]("\ud800")
    assert not isinstance(caught.value, UnicodeError)


@pytest.mark.parametrize("call", CALLS)
def test_a_path_of_bytes(call: str) -> None:
    class Path(os.PathLike[bytes]):
        def __fspath__(self) -> bytes:
            return b"x"

    with pytest.raises(TypeError, match="a path is str or PathLike, not bytes"):
        CALLS[call](Path())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a path is str or PathLike, not bytes"):
        tfr.convert("x.parquet", Path())  # type: ignore[arg-type]


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    """Python has surrogates for the bytes of such names; they are paths."""
    path = tmp_path / "\udcff.tfrecord"
    tfr.write_tfrecord({"x": [1]}, path)
    assert tfr.count(path) == 1


@pytest.mark.parametrize(
    "url", ["s3:///x", "s3://", "gs:///x", "gcs://", "s3a:////x/y", "az:///x", "simplecache::s3:///x"]
)
def test_a_url_without_a_bucket_is_refused_at_once(url: str) -> None:
    for call in (tfr.read_table, lambda path: tfr.write_tfrecord({"x": [1]}, path)):
        with pytest.raises(ValueError, match="names no bucket: expected s3://bucket/name"):
            call(url)


@pytest.mark.parametrize("url", ["s3://b/a.tfrecord", "gs://b/a@4", "https://host/a.tfrecord"])
def test_a_url_as_a_path_of_pathlib_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has lost a slash, and would name a local directory, which a writer would make."""
    monkeypatch.chdir(tmp_path)
    for call in (tfr.read_table, partial(tfr.write_tfrecord, {"x": [1]})):
        with pytest.raises(ValueError, match="two slashes after its protocol"):
            call(Path(url))
    assert not list(tmp_path.iterdir())
    local = Path(url.replace("//", "/"))
    local.parent.mkdir(parents=True)
    tfr.write_tfrecord({"x": [1]}, local)
    assert tfr.read_table(local)["x"].to_pylist() == [1]


@pytest.mark.parametrize(("failures", "tries"), [(4, 5), (5, 5)])
def test_a_connection_that_fails_is_made_again(failures: int, tries: int, flaky: list[Exception | None]) -> None:
    flaky += [EOFError()] * failures + [None]
    if failures < tries:
        Location.of("flaky://host/a.tfrecord", StorageOptions())
    else:
        with pytest.raises(OSError, match=r"EOFError.*tried 5 times.*flaky://host/a\.tfrecord"):
            Location.of("flaky://host/a.tfrecord", StorageOptions())
    assert len(flaky) == failures + 1 - tries


def test_a_login_that_is_refused_is_not_made_again(flaky: list[Exception | None]) -> None:
    flaky += [ftplib.error_perm("530 Login incorrect"), None]
    with pytest.raises(OSError, match=r"530 Login incorrect.*flaky://host/a\.tfrecord"):
        Location.of("flaky://host/a.tfrecord", StorageOptions())
    assert flaky == [None]


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> list[Exception | None]:
    """What the next filesystems of ``flaky://`` raise when they connect, which they do at once."""
    outcomes: list[Exception | None] = []

    class Flaky(MemoryFileSystem):  # type: ignore[misc]
        protocol = "flaky"
        cachable = False

        def __init__(self, **keywords: Any) -> None:
            if (outcome := outcomes.pop(0)) is not None:
                raise outcome
            super().__init__(**keywords)

    fsspec.register_implementation("flaky", Flaky, clobber=True)
    set_limits(monkeypatch, backoff_seconds=0.0)
    return outcomes


def test_a_letter_before_two_colons_is_part_of_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a protocol; fsspec takes it for a drive, and wrote both files to one."""
    monkeypatch.chdir(tmp_path)
    for name in ("d", "e"):
        tfr.write_tfrecord({"x": [name]}, f"c::{name}.tfrecord")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c::d.tfrecord", "c::e.tfrecord"]
    assert tfr.read_table("c::d.tfrecord").to_pydict() == {"x": ["d"]}


def test_a_letter_that_the_encoding_of_the_system_lacks() -> None:
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    code = "import tfrecord_io as tfr; tfr.count('\\u0130.tfrecord')"
    call = subprocess.run([sys.executable, "-c", code], env=ascii_only, capture_output=True, text=True, check=False)
    assert "encoding, ascii, lacks a letter of it: set PYTHONUTF8=1" in call.stderr


def test_the_version_of_an_object_in_a_url_is_refused() -> None:
    url = "s3://bucket/a.tfrecord?versionId=abc"
    for call in (tfr.read_table, lambda path: tfr.write_tfrecord({"x": [1]}, path)):
        with pytest.raises(
            ValueError, match=r"pass the file fsspec\.filesystem\('s3', version_aware=True\)\.open\(path"
        ):
            call(url)


def test_a_url_of_azure_without_an_account_says_how_to_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("adlfs")
    for name in ("ACCOUNT_NAME", "CONNECTION_STRING"):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)
    with pytest.raises(ValueError, match=r"no account of Azure is named; pass storage_options=\{'account_name': '…'\}"):
        tfr.read_table("az://container/a.tfrecord")


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("name", ["new.tfrecord", "new@2"])
def test_archives_and_caches_are_read_only(tmp_path: Path, name: str, mode: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("old.tfrecord", b"")
    refused = {
        f"zip://{name}::{(tmp_path / 'a.zip').as_uri()}": "an archive is read-only",
        f"simplecache::http://127.0.0.1:9/{name}": "a cache is read-only: write to the URL without 'simplecache::'",
        f"filecache::memory://{name}": "a cache is read-only: write to the URL without 'filecache::'",
    }
    for url, reason in refused.items():
        with pytest.raises(OSError, match=re.escape(reason)) as caught:
            tfr.write_tfrecord({"x": [1]}, url, mode=mode)
        assert caught.value.errno == errno.EROFS
    assert os.listdir(tmp_path) == ["a.zip"]


HDFS = """
import os, sys, time
os.environ["JAVA_HOME"] = sys.argv[1]
import tfrecord_io as tfr
import tfrecord_io.store.filesystem.retries
time.sleep = lambda _: sys.exit("a request is made again")
for call in [tfr.read_table, tfr.count, lambda url: tfr.write_tfrecord({"x": [1]}, url)]:
    for url in ["hdfs://namenode:8020/a.tfrecord", "hdfs:///a.tfrecord"]:
        try:
            call(url)
        except tfr.errors.MissingDependencyError as error:
            print(error)
"""


def test_hdfs_without_hadoop_is_one_error_that_names_what_is_missing(tmp_path: Path) -> None:
    """pyarrow states the reason once in a process."""
    if not hasattr(pytest.importorskip("pyarrow.fs"), "HadoopFileSystem"):
        pytest.skip("this pyarrow has no HDFS")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("HADOOP", "ARROW_LIBHDFS"))
    }
    program = [sys.executable, "-c", HDFS, str(tmp_path)]
    done = subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    for line in lines:
        assert re.match(
            "hdfs://.*: hdfs:// needs Java and Hadoop's client, and pyarrow cannot load lib(jvm|hdfs)", line
        )
        assert re.search("set JAVA_HOME.*webhdfs://", line)
        assert len(line) < 500
    assert len({line.partition("tfrecord: ")[2] for line in lines}) == 1
