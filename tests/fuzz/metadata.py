"""Fuzz what files say about themselves: ``python tests/fuzz/metadata.py --rounds 100000 [--target NAME] [--seed 0]``,
or ``--seconds 60`` for all targets together.

Each target mutates one kind of metadata: the embedded schema, the metadata of pandas in it, features.json and
dataset_info.json of TFDS, schema.pbtxt of TFX, manifests, indexes and column indexes. Every mutant passes its parser.
One that the parser accepts then passes one call of the package, in turn, which reads, describes or converts; of the
refused ones every 50th does. All may only raise errors of the package. Other exceptions are printed with their round
and traceback, once for each place, and make the exit code 1; ``--only ROUND`` repeats a round.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(Path(__file__).resolve().parent), str(TESTS / "support")]

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tfrecord_io as tfr
from forged_indexes import COLUMNS, forged
from hostile_metadata import CALLS, NONSENSE, TABLES, Call, at_random, describe, metadata, mutated, mutated_schema
from reading_modes import small_index_groups
from records import example, floats, framed, int64s
from tfrecord_io.apps.cli.schema_text import schema_text
from tfrecord_io.columns.schema.embedded import EmbeddedSchemaUnreadable, field_bytes, pack, unpack
from tfrecord_io.columns.schema.formats.tfds_info import TfdsInfo
from tfrecord_io.read.index.column_search import column_indexes
from tfrecord_io.read.index.find_index import open_columns
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.read.index_search import indexed_fields
from tfrecord_io.read.scan import Scan
from tfrecord_io.store.paths.manifest import parse_manifest
from tfrecord_io.store.read.random_access_file import RandomAccessFile

REFUSED = (tfr.TFRecordError, EmbeddedSchemaUnreadable)
SAMPLED = 50  # of the mutants that a parser refuses, one of so many passes a call
NO_ARROW_FORM = (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError)  # of a schema that Arrow does not write


# ---- targets


class Target(ABC):
    """One kind of metadata, of a dataset in a folder."""

    allowed: tuple[type[BaseException], ...] = ()  # what calls may raise besides errors of the package
    calls: Sequence[Call] = CALLS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder  # for the calls

    @abstractmethod
    def mutate(self, rng: random.Random) -> bytes | None:
        """A mutant; None if this mutation cannot be written."""

    @abstractmethod
    def parse(self, mutant: bytes) -> object: ...

    @abstractmethod
    def install(self, mutant: bytes) -> None:
        """Put the mutant where calls find it."""


class EmbeddedSchema(Target):
    """The schema in the first record."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "a.tfrecord"
        self._records = []
        for table in TABLES:
            tfr.write_tfrecord(table, self.path, embed_schema=False, float64="round")
            self._records.append(list(tfr.RecordReader(self.path)))
        self._current = 0

    def mutate(self, rng: random.Random) -> bytes | None:
        self._current = rng.randrange(len(TABLES))
        schema = self.mutated_schema(rng, TABLES[self._current].schema)
        try:
            content = bytearray(pack(schema))
        except (*REFUSED, *NO_ARROW_FORM):
            return None
        if rng.random() < 0.3:
            for _ in range(rng.choice((1, 1, 2, 8))):
                content[rng.randrange(6, len(content))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        if rng.random() < 0.02:
            del content[rng.randrange(len(content)) :]
        return bytes(content)

    def mutated_schema(self, rng: random.Random, schema: pa.Schema) -> pa.Schema:
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            schema = mutated_schema(rng, schema)
        return schema

    def parse(self, mutant: bytes) -> object:
        return unpack(mutant)

    def install(self, mutant: bytes) -> None:
        first, *rest = self._records[self._current]
        self.path.write_bytes(framed(field_bytes(mutant) + first, *rest))


class PandasMetadata(EmbeddedSchema):
    """The key "pandas" in the metadata of the embedded schema, which `read_tfrecord` uses."""

    calls = CALLS[5:8]

    def mutated_schema(self, rng: random.Random, schema: pa.Schema) -> pa.Schema:
        notes = (schema.metadata or {}).get(b"pandas", b"{}")
        if rng.random() < 0.1:
            return schema.with_metadata({"pandas": mutated_bytes(rng, notes)})
        document = json.loads(notes)
        for _ in range(rng.choice((1, 1, 2, 4))):
            document = mutated(rng, document)
        return schema.with_metadata({"pandas": json.dumps(document)})


class TfdsFolder(Target):
    """A folder with a file of TFDS, its features.json and its dataset_info.json."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        golden = TESTS / "data/tfds/everything"
        for name in ("features.json", "dataset_info.json"):
            (folder / name).write_bytes((golden / name).read_bytes())
        record = example(label=int64s(1), bbox=floats(1, 2, 3, 4))
        name = next(iter(TfdsInfo.lengths_in(golden)))
        (folder / name).write_bytes(framed(record, record))


class FeaturesJson(TfdsFolder):
    """features.json, which gives the schema."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "dataset_info.json").unlink()
        data = TESTS / "data/tfds"
        self._documents = [json.loads(path.read_text()) for path in sorted(data.rglob("features.json"))]

    def mutate(self, rng: random.Random) -> bytes:
        document = rng.choice(self._documents)
        for _ in range(rng.choice((1, 2, 4))):
            document = mutated(rng, document)
        return mutated_text(rng, document)

    def parse(self, mutant: bytes) -> object:
        self.install(mutant)
        return tfr.Schema.from_tfds(self.folder, class_labels="codes")

    def install(self, mutant: bytes) -> None:
        (self.folder / "features.json").write_bytes(mutant)


class DatasetInfo(TfdsFolder):
    """dataset_info.json, which gives the numbers of records."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        tensor = {"type": "x.Tensor", "content": {"shape": [], "dtype": "int64"}}
        features = {"type": "x.FeaturesDict", "content": {"label": tensor}}
        (folder / "features.json").write_text(json.dumps(features))
        self._document = json.loads((folder / "dataset_info.json").read_text())

    def mutate(self, rng: random.Random) -> bytes:
        document = self._document
        for _ in range(rng.choice((1, 2, 4))):
            document = mutated(rng, document)
        return mutated_text(rng, document)

    def parse(self, mutant: bytes) -> object:
        self.install(mutant)
        return TfdsInfo.lengths_in(self.folder)

    def install(self, mutant: bytes) -> None:
        (self.folder / "dataset_info.json").write_bytes(mutant)


class TfxSchema(Target):
    """schema.pbtxt, as text and as a message."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "a.tfrecord"
        self.path.write_bytes(framed(example(label=int64s(1), bbox=floats(1, 2, 3, 4))))
        self._seeds = [path.read_bytes() for path in sorted((TESTS / "data/tfx").glob("*.pb*"))]
        self._schema: tfr.Schema | None = None
        forms = [
            lambda path: self._accepted().to_json(),
            lambda path: self._accepted().to_tfx(),
            lambda path: self._accepted().to_python(),
            lambda path: self._accepted().to_arrow(),
            lambda path: self._accepted().to_feature_description(),
            lambda path: repr(self._accepted()),
            lambda path: schema_text(self._accepted(), "arrow"),
            lambda path: schema_text(self._accepted(), "feature_description"),
            lambda path: tfr.read_table(tfr.dataset(path, threads=1), schema=self._accepted()),
            lambda path: tfr.read_arrays(tfr.dataset(path, threads=1), schema=self._accepted(), missing="mask"),
        ]
        self.calls = forms

    def _accepted(self) -> tfr.Schema:
        if self._schema is None:
            raise tfr.errors.SchemaError("refused")
        return self._schema

    def mutate(self, rng: random.Random) -> bytes:
        seed = rng.choice(self._seeds)
        return mutated_bytes(rng, seed, rng.choice(self._seeds))

    def parse(self, mutant: bytes) -> object:
        self._schema = None
        self._schema = tfr.Schema.from_tfx(mutant)
        return self._schema

    def install(self, mutant: bytes) -> None:
        pass


class Manifest(Target):
    """The manifest of a sharded dataset."""

    allowed = (FileNotFoundError,)  # a shard that it names is missing

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        tfr.write_tfrecord({"x": [1, 2, 3, 4]}, folder / "train@2")
        self._name = folder / "_MANIFEST-train.json"
        self._document = json.loads(self._name.read_text())
        staged = [{**file, "staged": f"_{'0' * 16}-{at:05d}.staged"} for at, file in enumerate(self._document["files"])]
        self._published = {**self._document, "files": staged, "replaces": ["train-00000-of-00003"]}

    def mutate(self, rng: random.Random) -> bytes:
        document = rng.choice((self._document, self._published))
        for _ in range(rng.choice((1, 1, 2, 4))):
            document = mutated(rng, document)
        return mutated_text(rng, document)

    def parse(self, mutant: bytes) -> object:
        return parse_manifest(mutant, str(self._name))

    def install(self, mutant: bytes) -> None:
        self._name.write_bytes(mutant)


class Index(Target):
    """The index of a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "a.tfrecord"
        tfr.write_tfrecord({"x": list(range(20))}, self.path, write_index=True)
        self._name = folder / "a.tfrecord.index"
        self._text = self._name.read_bytes()

        def part(path: Path) -> None:
            list(tfr.iter_arrays(tfr.dataset(path, threads=1), batch_size=4, worker=(1, 2)))

        self.calls = [at_random, part, metadata, describe, *CALLS[10:12]]

    def mutate(self, rng: random.Random) -> bytes:
        if rng.random() < 0.5:
            lines = self._text.split(b"\n")
            at = rng.randrange(len(lines))
            numbers = [*lines[at].split(b" "), b"", b""][:2]
            numbers[rng.randrange(2)] = rng.choice((b"0", b"-1", b"16", b"9" * 18, b"9223372036854775807", b"9" * 30))
            lines[at] = rng.choice((b" ", b"  ", b"\t", b"\0", b"")).join(numbers)
            return b"\n".join(lines)
        return mutated_bytes(rng, self._text)

    def parse(self, mutant: bytes) -> object:
        return RecordIndex.from_blocks([mutant], str(self._name))

    def install(self, mutant: bytes) -> None:
        self._name.write_bytes(mutant)


class ColumnIndex(Target):
    """The column index of a file: its checksums are right."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "a.tfrecord"
        tfr.write_tfrecord(pa.table(COLUMNS), self.path)
        self._name = folder / "a.tfrecord.column_index"
        tfr.build_index(self.path, columns="*")
        self._contents = [self._name.read_bytes()]
        with small_index_groups():
            tfr.build_index(self.path, columns="*")
        self._contents.append(self._name.read_bytes())
        conditions = [*(pc.field(name).is_valid() for name in COLUMNS), pc.field("n") > 3, pc.field("text") == "red"]
        self.calls = [call for condition in conditions for call in _by_index(condition)]
        self.calls.append(lambda path: tfr.count(path))

    def mutate(self, rng: random.Random) -> bytes:
        return forged(rng, rng.choice(self._contents))

    def parse(self, mutant: bytes) -> object:
        self.install(mutant)
        dataset = Scan.unwrap(tfr.dataset(self.path))
        (source,) = dataset.sources
        (sidecar,) = column_indexes([source])
        assert sidecar is not None
        with RandomAccessFile.open(source) as file, open_columns(sidecar, source, file) as (columns, _):
            return columns.columns(filter(columns.has, indexed_fields(dataset, list(COLUMNS))))

    def install(self, mutant: bytes) -> None:
        self._name.write_bytes(mutant)


def _by_index(condition: Any) -> list[Call]:
    return [
        lambda path: tfr.read_table(path, filters=condition),
        lambda path: tfr.open_random(path).select(condition).to_table(),
    ]


TARGETS: dict[str, type[Target]] = {
    "embedded": EmbeddedSchema,
    "pandas": PandasMetadata,
    "features_json": FeaturesJson,
    "dataset_info": DatasetInfo,
    "tfx": TfxSchema,
    "manifest": Manifest,
    "index": Index,
    "column_index": ColumnIndex,
}


# ---- mutations of bytes


def mutated_text(rng: random.Random, document: Any) -> bytes:
    """A document as JSON, sometimes with damaged bytes."""
    text = json.dumps(document).encode()
    return mutated_bytes(rng, text) if rng.random() < 0.1 else text


def mutated_bytes(rng: random.Random, content: bytes, other: bytes = b"") -> bytes:
    """Bytes with some replaced, removed, repeated, or taken from `other`."""
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        begin = rng.randrange(len(out) + 1)
        end = min(len(out), begin + int(np.exp(rng.uniform(0, 5))))
        kind = rng.randrange(6)
        if kind == 0:
            del out[begin:end]
        elif kind == 1:
            out[begin:begin] = out[begin:end]
        elif kind == 2:
            out[begin : begin + 1] = bytes([rng.randrange(256)])
        elif kind == 3:
            at = rng.randrange(len(other) + 1)
            out[begin:end] = other[at : at + end - begin]
        elif kind == 4:
            out[begin:end] = str(rng.choice(NONSENSE)).encode("utf-8", "replace")
        else:
            out[begin:end] = rng.choice((b"-1", b"9" * 20, b"{", b"}", b'"', b"\xff", b"\0", b"1e999", b"nan"))
    return bytes(out)


# ---- the loop


def run(target: Target, seed: int, round_: int) -> bool:
    """One round; whether the parser accepted the mutant. Unexpected exceptions pass through."""
    rng = random.Random(f"{type(target).__name__}-{seed}-{round_}")
    mutant = target.mutate(rng)
    if mutant is None:
        return False
    accepted = True
    try:
        target.parse(mutant)
    except REFUSED:
        accepted = False
    if accepted or round_ % SAMPLED == 0:
        target.install(mutant)
        try:
            rng.choice(target.calls)(target.path)
        except (*REFUSED, *target.allowed):
            pass
    return accepted


def fuzz(name: str, rounds: Iterable[int], seed: int, folder: str | None, most_seconds: float) -> int:
    """Run rounds of one target; returns the number of places where an unexpected exception was raised."""
    places: dict[tuple[str, str, int], int] = {}
    done, accepted, begin = 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder) as directory:
        target = TARGETS[name](Path(directory))
        for round_ in rounds:
            if time.monotonic() - begin >= most_seconds:
                break
            done += 1
            try:
                accepted += run(target, seed, round_)
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                place = (type(error).__name__, last.filename, last.lineno or 0)
                places[place] = places.get(place, 0) + 1
                if places[place] == 1:
                    print(f"{name}: round {round_} of seed {seed}:", flush=True)
                    traceback.print_exc()
    seconds = time.monotonic() - begin
    print(f"{name}: {done} rounds, {accepted} accepted, {len(places)} findings, {seconds:.0f} s", flush=True)
    return len(places)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, help="of each target; 1000 unless --seconds are given")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for all targets together")
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this round only")
    parser.add_argument(
        "--folder", help="for temporary files", default="/dev/shm" if os.path.isdir("/dev/shm") else None
    )
    arguments = parser.parse_args()
    most = arguments.rounds or (1000 if arguments.seconds == float("inf") else sys.maxsize)
    rounds = range(most) if arguments.only is None else [arguments.only]
    warnings.simplefilter("ignore")
    names = arguments.target or list(TARGETS)
    seconds = arguments.seconds / len(names)
    found = [fuzz(name, rounds, arguments.seed, arguments.folder, seconds) for name in names]
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
