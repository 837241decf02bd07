"""The format of manifests: valid ones round-trip, and all others are refused."""

from __future__ import annotations

import contextlib
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from servers import Web
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.paths import manifest
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardName
from tfrecord_io.store.paths.history import History
from tfrecord_io.store.paths.manifest import Manifest, Txn, format_manifest, parse_manifest
from tfrecord_io.store.read.source import ManifestFile

PATH = "dir/_MANIFEST-train.json"
NUMBERS = st.integers(0, 2**40)
SOURCES: list[dict[str, str | int]] = [
    {"path": "ä\udcff.csv", "size": 7, "version": "ETag=x"},
    {"path": "a", "records": 1, "bytes": 2, "crc32c": "0000000a"},  # as the entry of a file
]


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    count = draw(st.integers(0, 5))
    files = [
        ManifestFile(
            ShardName.make("train", i, count),
            draw(NUMBERS),
            draw(NUMBERS),
            draw(st.integers(0, 2**32 - 1)),
            draw(st.sampled_from([None, f"_{'0a' * 8}-{i:05d}.staged"])),
            draw(st.sampled_from([None, *SOURCES])),
            tuple(draw(st.lists(st.sampled_from(SOURCES), max_size=2))),
        )
        for i in range(count)
    ]
    return Manifest(
        "train",
        ShardName.new_id(),
        tuple(files),
        draw(st.sampled_from([None, "gzip"])),
        draw(st.none() | st.binary(max_size=20)),
        draw(st.booleans()),
        draw(st.sampled_from([(), ("train-00007.tfrecord",)])),
        sources_without_rows=tuple(draw(st.lists(st.sampled_from(SOURCES), max_size=2))),
    )


@given(manifests())
def test_written_manifest_is_read_back(manifest: Manifest) -> None:
    assert parse_manifest(format_manifest(manifest), PATH) == manifest


STAGED = f"_{'0a' * 8}-00001.staged"
# No fact has its default.
FULL = Manifest(
    dataset="train",
    id="0a" * 8,
    files=(ManifestFile("c=1/train-00000-of-00001", 5, 100, 7, STAGED, SOURCES[0], (SOURCES[0],)),),
    compression="gzip",
    schema=b"schema",
    complete=False,
    replaces=("c=1/train-00007.tfrecord",),
    sources_without_rows=(SOURCES[0],),
    partition_by=("c",),
    partition_schema=b"types",
    replaced_ids=("1a" * 8,),
    staged_before=(STAGED,),
    metadata=(("a", "b"),),
    txns=(Txn("a", 1, 2),),
    history=History(3, "1b" * 8, 1, ((1, 3), (3, 2))),
)


@pytest.mark.parametrize("stated", [FULL, FULL.files[0]], ids=lambda stated: type(stated).__name__)
def test_each_fact_is_stated(stated: Any) -> None:
    defaults = {name: default for name, default in stated._field_defaults.items() if name != "upkeep"}
    names = [name for name, default in defaults.items() if getattr(stated, name) == default]
    assert not names, f"state {', '.join(names)} in FULL, so that the next tests see what is formatted and parsed"


def test_each_fact_is_read_back() -> None:
    again = parse_manifest(format_manifest(FULL), PATH)
    lost = [name for name in FULL._fields if getattr(again, name) != getattr(FULL, name)]
    assert not lost, f"format and parse {', '.join(lost)} in store/paths/manifest.py"


def test_each_key_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "format.md").read_text("utf-8")
    made = json.loads(format_manifest(FULL))
    for key in (*made, *made["files"][0]):
        assert f"`{key}`" in page, f"docs/format.md: add `{key}` to the table of the manifest"
        assert f'"{key}"' in (manifest.__doc__ or ""), f'store/paths/manifest.py: say what "{key}" is'


@given(
    st.binary(max_size=50)
    | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_any_other_text_is_refused_or_ignored(text: bytes) -> None:
    with contextlib.suppress(CorruptRecordError):
        assert parse_manifest(text, PATH) is None


def document(**changes: Any) -> dict[str, Any]:
    made = Manifest("train", ShardName.new_id(), (ManifestFile("train-00000-of-00001", 5, 100, 7),), None, b"")
    return {**json.loads(format_manifest(made)), **changes}


def entry(**changes: Any) -> dict[str, Any]:
    return document(files=[{**document()["files"][0], **changes}])


@pytest.mark.fault(55)
@pytest.mark.parametrize(
    "name",
    [
        "../train-00000-of-00001",
        "/etc/train-00000-of-00001",
        "s3://bucket/train-00000-of-00001",
        "..",
        ".",
        "",
        "sub/train-00000-of-00001",
        "..\\train-00000-of-00001",
        "C:\\train-00000-of-00001",
        "train-00000-of-00001\0",
        "test-00000-of-00001",
        "train",
        "_MANIFEST-train.json",
        None,
        7,
        ["train-00000-of-00001"],
    ],
)
def test_names_outside_the_directory_are_refused(name: Any) -> None:
    for bad in (entry(path=name), document(replaces=[name])):
        with pytest.raises(CorruptRecordError, match="the manifest cannot be used") as caught:
            parse_manifest(json.dumps(bad).encode(), PATH)
        assert caught.value.path == PATH


@pytest.mark.fault(55)
@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "_0000000000000000-00000.staged/../../x", "train-00000-of-00001", "", 5, None]
)
def test_other_staged_names_are_refused(name: Any) -> None:
    with pytest.raises(CorruptRecordError, match="staged"):
        parse_manifest(json.dumps(entry(staged=name)).encode(), PATH)


@pytest.mark.fault(56)
@pytest.mark.parametrize(
    "bad",
    [
        document(version=2),
        document(version=True),
        document(dataset="test"),
        document(dataset=None),
        document(id="x"),
        document(id="0" * 15 + "/"),
        document(complete=1),
        document(records=6),
        document(bytes=-1),
        document(files=None),
        document(files={}),
        document(files=[5]),
        document(files=document()["files"] * 2, records=10, bytes=200),
        document(schema="%%%"),
        document(schema=5),
        document(replaces="train-00000"),
        entry(records=-1),
        entry(records=5.0),
        entry(records=True),
        entry(records=2**63),
        entry(records="5"),
        entry(bytes=None),
        entry(crc32c=7),
        entry(crc32c="0000000G"),
    ],
    ids=lambda d: json.dumps(d)[-60:],
)
def test_values_of_a_wrong_type_are_refused(bad: Any) -> None:
    with pytest.raises(CorruptRecordError, match="delete the manifest"):
        parse_manifest(json.dumps(bad).encode(), PATH)


def test_truncated_deeply_nested_or_too_large_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(document()).encode()
    for bad in (text[:-1], b"", b"[" * 100_000, b"\xff"):
        with pytest.raises(CorruptRecordError, match="not JSON"):
            parse_manifest(bad, PATH)
    monkeypatch.setattr(manifest, "MOST_MANIFEST_BYTES", len(text))
    assert parse_manifest(text, PATH) is not None
    with pytest.raises(CorruptRecordError, match="limit"):
        parse_manifest(text + b" ", PATH)


@pytest.mark.parametrize("folder", ["", "k=1/"])
def test_names_that_differ_in_their_numbers_alone_are_not_parsed_each(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, parsed, parse = 1000, list[str](), ShardName.parse
    monkeypatch.setattr(ShardName, "parse", lambda name: parsed.append(name) or parse(name))
    files = [ManifestFile(f"{folder}{ShardName.make('train', i, count)}.tfrecord", 1, 1, 0) for i in range(count)]
    manifest = Manifest("train", ShardName.new_id(), tuple(files), partition_by=("k",) if folder else ())
    assert parse_manifest(format_manifest(manifest), PATH) == manifest
    assert len(parsed) == 1
    for name in ("test-00001-of-01000.tfrecord", "l=1/train-00001-of-01000.tfrecord", "/train-00001-of-01000.tfrecord"):
        other = manifest._replace(files=(*files, ManifestFile(name, 1, 1, 0)))
        with pytest.raises(CorruptRecordError, match=r"is not a shard of|leads out"):
            parse_manifest(format_manifest(other), PATH)


def test_manifest_of_another_tool_is_ignored() -> None:
    assert parse_manifest(b'{"manifest_version": 2, "name": "extension"}', "_MANIFEST.json") is None


def test_each_dataset_of_a_directory_has_its_own_manifest() -> None:
    for stem in ("part", "train", "a.b-c"):
        assert FileName.parse(FileName.manifest(stem)).dataset == stem
    assert FileName.parse("manifest.json").kind is not Kind.MANIFEST


def test_a_url_with_a_query_has_no_sidecars(web: Web, tmp_path: Path) -> None:
    """A server that ignores the query, or what follows it, would return the file as its own index."""
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    web.files["a.tfrecord"] = (tmp_path / "a.tfrecord").read_bytes()
    url = web.url("a.tfrecord?download=true")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tfr.verify(url).ok
        assert tfr.count(url) == 2
    assert not any("index" in request for request in web.requests)


def test_the_manifest_of_several_folders_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"k": range(20), "v": range(20)}, tmp_path, partition_by="k")
    texts: list[bytes] = []

    def counted(text: bytes, path: str) -> Manifest | None:
        texts.append(text)
        return parse_manifest(text, path)

    monkeypatch.setattr("tfrecord_io.store.paths.manifest.parse_manifest", counted)
    folders = tfr.dataset([tmp_path / f"k={number}" for number in range(20)])
    assert folders.to_table()["v"].to_pylist() == list(range(20))
    assert len(texts) < 5
