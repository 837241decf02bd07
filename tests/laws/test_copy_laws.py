"""A copy whose source is changed, damaged or removed meanwhile, or which is killed: one version arrives, or none."""

from __future__ import annotations

import tempfile
import uuid
import warnings
from dataclasses import dataclass, field
from typing import Any

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from interposed import before_storage_calls, on_commit
from rounds import IN_A_BUCKET, rounds
from servers import Bucket
from tfrecord_io.store.filesystem.retries import s3_options
from tfrecord_io.store.paths.manifest_files import SIZES
from transfers import transfer

Files = dict[str, bytes]
FORMS: dict[str, dict[str, Any]] = {
    "shards": {"shards": 3, "write_index": True},
    "growing": {"mode": "append", "max_shard_bytes": 300},
    "folders": {"mode": "append", "partition_by": "p"},
    "packed": {"mode": "append", "compression": "gzip", "max_shard_bytes": 300},
}


class Killed(BaseException):
    """Instead of the end of the process: whatever follows fails, too."""


@dataclass
class Place:
    """A directory of a store."""

    url: str
    options: dict[str, Any] | None

    def files(self) -> Files:
        options = self.options or {}
        fs, root = fsspec.core.url_to_fs(self.url, **(s3_options(options) if self.url.startswith("s3") else options))
        fs.invalidate_cache()
        root = root.rstrip("/")
        found = fs.find(root) if fs.exists(root) else []
        return {name[len(root) + 1 :]: fs.cat_file(name) for name in found}

    def put(self, name: str, content: bytes) -> None:
        with fsspec.open(f"{self.url}{name}", "wb", **(self.options or {})) as file:
            file.write(content)

    def rows(self) -> list[int]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return tfr.read_table(self.url, storage_options=self.options)["x"].to_pylist()


def data(files: Files) -> Files:
    """The files of a dataset without its manifest and the parts of that, and what other writings have left."""
    return {name: each for name, each in files.items() if not any(part[0] in "_." for part in name.split("/"))}


def plain(files: Files) -> Files:
    """The files without their indexes."""
    return {name: each for name, each in files.items() if not name.endswith(".index")}


@dataclass
class Copied:
    """A source that changes, a target, and the versions that the source has had since the last copy began."""

    source: Place
    target: Place
    form: str
    number: int = 0
    versions: list[Files] = field(default_factory=list)
    damaged: bool = False

    def write(self, mode: str = "overwrite") -> None:
        keywords = {**FORMS[self.form]}
        if "shards" in keywords:
            keywords["mode"] = "overwrite"
        else:
            keywords["mode"] = mode
        self.number += 1
        rows = [self.number * 100 + i for i in range(10)]  # as many bytes in each version
        tfr.write_tfrecord(
            {"x": rows, "p": [x % 2 for x in rows]}, self.source.url, storage_options=self.source.options, **keywords
        )
        self.damaged = self.damaged and mode == "append" and "shards" not in keywords
        self.versions.append(data(self.source.files()))

    def damage(self) -> None:
        files = data(self.source.files())
        name = sorted(name for name in files if not name.endswith(".index"))[self.number % 2]
        content = bytearray(files[name])
        content[len(content) // 2] ^= 1
        self.source.put(name, bytes(content))
        self.damaged = True

    def act(self, step: str) -> None:
        if step == "damage":
            self.damage()
        elif step == "kill":
            raise Killed
        else:
            self.write(step)

    def copy(self, steps: dict[int, str], **keywords: Any) -> Any:
        """Copy while steps are made before the calls to the storage with these numbers."""
        self.versions, calls = self.versions[-1:], 0
        killed = acting = False

        def before(*_: Any) -> None:
            nonlocal calls, killed, acting
            if acting:
                return
            if killed:
                raise Killed
            step = steps.get(calls)
            calls += 1
            if step is not None:
                acting = True
                try:
                    self.act(step)
                except Killed:
                    killed = True
                    raise
                finally:
                    acting = False

        def publish(output: Any, commit: Any) -> None:
            before()
            commit()

        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("error")
            before_storage_calls(patch, before)
            on_commit(patch, publish)
            return self.plain_copy(**keywords)

    def plain_copy(self, **keywords: Any) -> Any:
        source, options = transfer(self.source.url, self.source.options, self.target.options)
        return tfr.copy(source, self.target.url, **options, **keywords)

    def run(self, steps: dict[int, str], *, has_old: bool, threads: int) -> None:
        """The law."""
        self.write()
        if has_old:
            self.plain_copy()
            self.write()
        old = data(self.target.files())
        try:
            self.copy(steps, update=True, threads=threads)
            is_done = True
        except (Killed, OSError, tfr.TFRecordError):
            assert steps
            is_done = False
        found = self.readable()
        is_old = not is_done and plain(found) == plain(old)  # whose indexes are removed before it is replaced
        assert found in self.versions or is_old, "it is not a version, or none that is expected"
        if self.damaged:
            self.write()
        self.plain_copy(update=True)
        current = data(self.source.files())
        left = {name: each for name, each in data(self.target.files()).items() if name not in current}
        assert data(self.target.files()) == {**current, **left}
        assert not left or not is_done  # `clean` removes what a killed copy has replaced
        assert self.target.rows() == self.source.rows()
        again = self.plain_copy(update=True)
        assert (again.copied, again.removed) == ((), ())

    def readable(self) -> Files:
        """The files that a reader of the target reads, with their indexes; none if it is refused, or does not exist."""
        from tfrecord_io.base import StorageOptions
        from tfrecord_io.store.paths.resolve import resolve_inputs

        try:
            sources = resolve_inputs(self.target.url, StorageOptions(self.target.options))
        except FileNotFoundError:
            return {}
        except tfr.errors.CorruptRecordError as error:
            if "incomplete" not in str(error):
                raise
            return {}
        files, found = self.target.files(), {}
        root = self.target.url
        for source in sources:
            name = source.path.removeprefix(root)
            staged = None if source.shard is None else source.shard.staged
            waiting = "" if staged is None else staged.rpartition("/")[2]
            found[name] = files[waiting if waiting in files else name]
        versions = [set(version) for version in self.versions]
        indexes = {name: each for name, each in files.items() if name.endswith(".index")}
        missing = not any(set(found) | set(indexes) == version for version in versions)
        if missing:  # indexes arrive after the files
            indexes = {}
            self.versions += [plain(version) for version in self.versions]
        return {**found, **indexes}


FORM = st.sampled_from(list(FORMS))
STEPS = st.dictionaries(
    st.integers(0, 40), st.sampled_from(["append", "overwrite", "damage", "kill", "kill"]), max_size=3
)


def place(kind: str, bucket: Bucket | None, directory: str) -> Place:
    if bucket is None:
        return Place(f"{directory}/{kind}/", None)
    return Place(bucket.url(f"{uuid.uuid4().hex}/{kind}/"), bucket.storage_options)


def check(
    form: str, steps: dict[int, str], source: Bucket | None, target: Bucket | None, has_old: bool, threads: int,
    has_parts: bool,
) -> None:  # fmt: skip
    """Try the law; of a manifest that `has_parts`, its files are not looked up."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        if has_parts:
            patch.setattr(SIZES, "many", 1)
            patch.setattr(SIZES, "large_bytes", 0)
        copied = Copied(place("source", source, directory), place("target", target, directory), form)
        copied.run(steps, has_old=has_old, threads=threads)


@settings(max_examples=rounds(100))
@given(form=FORM, steps=STEPS, has_old=st.booleans(), threads=st.integers(1, 3), has_parts=st.booleans())
def test_on_the_disk(form: str, steps: dict[int, str], has_old: bool, threads: int, has_parts: bool) -> None:
    check(form, steps, None, None, has_old, threads, has_parts)


@pytest.mark.parametrize("way", ["to a bucket", "from a bucket", "within a bucket"])
@settings(max_examples=rounds(30, 2), suppress_health_check=IN_A_BUCKET)
@given(form=FORM, steps=STEPS, has_old=st.booleans(), threads=st.integers(1, 3), has_parts=st.booleans())
def test_with_a_bucket(
    bucket: Bucket, way: str, form: str, steps: dict[int, str], has_old: bool, threads: int, has_parts: bool
) -> None:
    source, target = None if way == "to a bucket" else bucket, None if way == "from a bucket" else bucket
    check(form, steps, source, target, has_old, threads, has_parts)


@pytest.mark.parametrize(
    ("source", "target"), [("s3", "google"), ("google", "s3"), ("s3", "azure"), ("azure", "google")]
)
@settings(max_examples=rounds(30, 2), suppress_health_check=IN_A_BUCKET)
@given(form=FORM, steps=STEPS, has_old=st.booleans(), threads=st.integers(1, 3), has_parts=st.booleans())
def test_between_stores(
    request: pytest.FixtureRequest, source: str, target: str, form: str, steps: dict[int, str], has_old: bool,
    threads: int, has_parts: bool,
) -> None:  # fmt: skip
    places = request.getfixturevalue(source), request.getfixturevalue(target)
    check(form, steps, *places, has_old, threads, has_parts)
