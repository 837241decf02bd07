"""Mutates files of each format that is parsed in Python; calls succeed, or raise an error of the package.

``python tests/fuzz/formats.py --seconds 60``; ``--target NAME --input FILE`` runs one input again.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "support")]

import tfrecord_io as tfr
from mutation import DATA, SEEDS, Target, main
from records import framed
from tfrecord_io.columns.schema.embedded import EmbeddedSchemaUnreadable, field_bytes, unpack
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.store.paths.manifest import parse_manifest

PLACE = Path(tempfile.mkdtemp(prefix="fuzz-"))
ERRORS = (tfr.TFRecordError, OSError)
RECORDS = (SEEDS / "frames/records0_0").read_bytes()[6:]
_EVERY = 16  # the whole way from a file is taken for one input of so many; the parser alone for all


def seeds(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((SEEDS / name).iterdir())]


class Seldom:
    """True for one call of many, the same ones in each run."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self) -> bool:
        self._calls += 1
        return self._calls % _EVERY == 1


def read_in_all_ways(path: Path) -> None:
    for call in (
        lambda: tfr.read_table(path),
        lambda: tfr.describe(path),
        lambda: tfr.read_tfrecord(path),
        lambda: tfr.read_arrays(path, missing="mask"),
        lambda: list(tfr.RecordReader(path)),
        lambda: tfr.verify(path),
    ):
        with suppress(*ERRORS):
            call()


def embedded_schema() -> Callable[[bytes], Any]:
    seldom, path = Seldom(), PLACE / "embedded.tfrecord"

    def run(data: bytes) -> None:
        unpack(data)
        if seldom():
            path.write_bytes(framed(field_bytes(data), b""))
            read_in_all_ways(path)

    return run


def tensor_proto(data: bytes) -> None:
    tfr.io.parse_tensor(data)


def index() -> Callable[[bytes], Any]:
    seldom, path = Seldom(), PLACE / "indexed.tfrecord"
    path.write_bytes(RECORDS)

    def run(data: bytes) -> None:
        if seldom():
            path.with_name("indexed.tfrecord.index").write_bytes(data)
            with suppress(*ERRORS):
                tfr.count(path)
            with suppress(*ERRORS), tfr.open_random(path) as records:
                for number in range(len(records)):
                    records[number]
        RecordIndex.from_blocks([data], "x.index")

    return run


def manifest() -> Callable[[bytes], Any]:
    seldom, folder = Seldom(), PLACE / "dataset"
    folder.mkdir()
    for number in range(2):
        (folder / f"part-{number:05}-of-00002.tfrecord").write_bytes(RECORDS)

    def run(data: bytes) -> None:
        if seldom():
            (folder / "_MANIFEST.json").write_bytes(data)
            for call in (tfr.read_table, tfr.verify, tfr.count):
                with suppress(*ERRORS):
                    call(folder)
        parse_manifest(data, "_MANIFEST.json")

    return run


def features_json(data: bytes) -> None:
    (PLACE / "features.json").write_bytes(data)
    tfr.Schema.from_tfds(PLACE)


def tfx_schema(data: bytes) -> None:
    path = PLACE / "schema.pbtxt"
    path.write_bytes(data)
    tfr.Schema.from_tfx(path)


def tfx_binary_schema(data: bytes) -> None:
    path = PLACE / "schema.pb"
    path.write_bytes(data)
    tfr.Schema.from_tfx(path)


def json_schema(data: bytes) -> None:
    tfr.Schema.from_json(data)


def array_file(name: str, open_file: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    path = PLACE / name

    def run(data: bytes) -> None:
        path.write_bytes(data)
        open_file(path).read_all()

    return run


def compressed(name: str) -> Callable[[bytes], Any]:
    path = PLACE / f"compressed.tfrecord{name}"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(*ERRORS):
            tfr.count(path)
        tfr.read_table(path)

    return run


def record_file() -> Callable[[bytes], Any]:
    path = PLACE / "records.tfrecord"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        read_in_all_ways(path)

    return run


def targets() -> dict[str, Target]:
    def golden(pattern: str) -> list[bytes]:
        return [path.read_bytes() for path in sorted(DATA.glob(pattern))]

    def of(run: Callable[[bytes], Any], seed: list[bytes], *more: type[BaseException]) -> Target:
        return Target(run, seed, (*ERRORS, *more), "dictionary_formats")

    return {
        "embedded_schema": of(embedded_schema(), seeds("embedded_schema"), EmbeddedSchemaUnreadable),
        "tensor_proto": of(tensor_proto, seeds("tensor_proto")),
        "index": of(index(), seeds("index")),
        "manifest": of(manifest(), seeds("manifest")),
        "features_json": of(features_json, golden("tfds/*/features.json")),
        "tfx_schema": of(tfx_schema, golden("tfx/*.pbtxt")),
        "tfx_binary": of(tfx_binary_schema, golden("tfx/*.pb")),
        "json_schema": of(json_schema, seeds("json_schema")),
        "npy": of(array_file("x.npy", tfr.formats.open_npy), seeds("npy")),
        "npz": of(array_file("x.npz", tfr.formats.open_npz), seeds("npz")),
        "idx": of(array_file("x-idx3-ubyte", tfr.formats.open_idx), seeds("idx")),
        "gzip": of(compressed(".gz"), seeds("gzip")),
        "zlib": of(compressed(".zlib"), seeds("zlib")),
        "zstd": of(compressed(".zst"), seeds("zstd")),
        "records": of(record_file(), [data[6:] for data in seeds("frames")]),
    }


@contextmanager
def removed(folder: Path) -> Iterator[None]:
    import shutil

    try:
        yield
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    with removed(PLACE):
        main(__doc__ or "", targets)
