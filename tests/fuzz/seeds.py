"""Write the seeds of the fuzzers and their dictionaries to tests/data/fuzz: small inputs in all forms that are read.

``python tests/fuzz/seeds.py`` makes the same files each time. The first bytes of a seed for a C++ target choose
options, see the target's ``run_...``; the rest is a file of records.
"""

from __future__ import annotations

import gzip
import io
import random
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "support"))

import numpy as np
import pyarrow as pa

import tfrecord_io as tfr
from reference_engine import ENGINE
from tfrecord_io.columns.schema.embedded import embedded_schema, field_bytes, pack
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.store.paths.manifest import Manifest, format_manifest
from tfrecord_io.store.read.source import ManifestFile
from wire_forms import INTS, KINDS, NAMES, WireForms, delimited, varint

FOLDER = TESTS / "data/fuzz"
MOST = 1500  # bytes of a seed

OPTIONS = {
    "frames": 6,
    "example": 7,
    "sequence": 7,
    "append": 8,
    "encoder": 3,
    "primitives": 4,
}  # bytes before the records


def files() -> Iterator[tuple[str, bytes]]:
    """Files of few records: in the usual form, in odd forms, with sequences and an embedded schema."""
    for seed in range(4):
        forms = WireForms(seed, plain=seed % 2 == 0)
        yield f"records{seed}", ENGINE.frame([p for p in forms.records(3) if len(p) < MOST // 4])
    forms = WireForms(7, plain=True)
    for name, kind in (("a", "int64"), ("label", "bytes"), ("x", "float")):
        yield f"column_{name}", ENGINE.frame([delimited(1, forms.entry(name, kind)) for _ in range(6)])
    steps = [delimited(1, forms.feature(kind)) for kind in KINDS for _ in range(2)]
    lists = delimited(2, delimited(1, delimited(1, b"tokens") + delimited(2, b"".join(steps[:2]))))
    yield "sequence", ENGINE.frame([delimited(1, forms.entry("a", "int64")) + lists] * 2)
    schema = field_bytes(pack(pa.schema([("b", pa.int64())])))
    yield "embedded", ENGINE.frame([schema + delimited(1, forms.entry("b", "int64")), b""])
    yield "empty", ENGINE.frame([b"", b""])
    yield "scalars", ENGINE.frame([delimited(1, b"".join(scalars(row))) for row in range(13)])


def scalars(row: int) -> list[bytes]:
    """The entries of a record that the fast paths take: one short value each, in most records in the same order."""
    number, text = varint(INTS[row % len(INTS)]), (b"plain text, " * 5)[: row * 5 % 47]
    values = {
        b"a": delimited(3, delimited(1, number)),
        b"image/encoder" if row == 4 else b"image/encoded": delimited(
            1, delimited(1, text if row % 5 else text + b"\x7f")
        ),
        b"x": delimited(2, delimited(1, row.to_bytes(4, "little"))),
        b"label": delimited(3, delimited(1, number)),  # a name that the target does not read: its length modulo 3 is 2
    }
    entries = [delimited(1, delimited(1, name) + delimited(2, value)) for name, value in values.items()]
    return entries[::-1] if row % 7 == 6 else entries


def primitives() -> Iterator[tuple[str, bytes]]:
    """Runs of varints, and text."""
    yield "varints", b"".join(varint(number) for number in INTS * 2)
    yield "short_varints", bytes(range(100))
    yield "text", "".join(NAMES).encode()[:200] + "€𐍈".encode()
    yield "printable", bytes(range(0x20, 0x7F))
    for byte in (0x1F, 0x7F, 0x80):
        yield f"text_{byte:02x}", b"x" * 40 + bytes([byte]) + b"x" * 9


def dictionary() -> Iterator[bytes]:
    """Parts of records: tags, lengths, names, map entries, frames."""
    yield from (bytes([field << 3 | wire]) for field in (1, 2, 3, 15) for wire in (0, 1, 2, 3, 4, 5))
    yield from (b"\x0a\x00", b"\x12\x00", b"\x1a\x00", b"\xb2\xc4\x0a\x02TF", b"\x8a\xdc\x0a\x00", b"\x7b\x7c")
    yield from (varint(number) for number in (128, 2**31, 2**32 - 1, 2**63, 2**64 - 1))
    yield from (b"\xff" * 9 + b"\x01", b"\xff" * 10, b"\x80\x80\x00", bytes(8), b"\xff" * 8)
    yield from (b"\xc3\xa4", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xc2\x80", b"\x7f", b"\x1b[0m")
    forms = WireForms(3, plain=True)
    for name in ("a", "b", "label", "x", "tokens"):
        yield delimited(1, name.encode())
        for kind in KINDS:
            yield forms.entry(name, kind)[:60]
    yield ENGINE.frame([b""])
    yield ENGINE.frame([delimited(1, forms.entry("a", "int64"))])


def embedded_schemas() -> Iterator[tuple[str, bytes]]:
    note = {"tfrecord_io.encoding": "raw"}
    columns = [
        pa.field("i", pa.int8(), nullable=False),
        pa.field("t", pa.timestamp("us", "Europe/Paris")),
        pa.field("d", pa.decimal128(10, 2), metadata={"k": "v"}),
        pa.field("r", pa.list_(pa.float32(), 4), metadata=note),
        pa.field("s", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
        pa.field("x", pa.fixed_shape_tensor(pa.float32(), (2, 2))),
        pa.field("c", pa.dictionary(pa.int8(), pa.string())),
    ]
    plain = pa.schema(columns[:4], metadata={"pandas": '{"index_columns": [], "columns": []}'})
    yield "plain", pack(embedded_schema(plain))
    yield "nested", pack(embedded_schema(pa.schema(columns[4:6])))
    yield "categories", pack(pa.schema(columns[6:]), {"c": pa.array(["x", "y"])})
    yield "deflated", pack(pa.schema([(f"column {n}", pa.int64()) for n in range(200)]))


def tensor_protos() -> Iterator[tuple[str, bytes]]:
    for dtype in ("int64", "float32", "bool", "complex64"):
        yield dtype, tfr.io.serialize_tensor(np.ones((2, 3), dtype))
    yield "text", tfr.io.serialize_tensor(np.array(["a", "größe"]))
    shape = delimited(2, delimited(2, b"\x08\x02") + delimited(2, b"\x08\x03"))
    yield "repeated", b"\x08\x01" + shape + delimited(5, bytes(4))
    yield "int_values", b"\x08\x03" + shape + delimited(7, b"\x01\x02\x03\x04\x05\x06")


def array_files() -> Iterator[tuple[str, str, bytes]]:
    """(format, name, content)"""
    for order in ("C", "F"):
        out = io.BytesIO()
        np.save(out, np.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), order=order))
        yield "npy", order, out.getvalue()
    out = io.BytesIO()
    np.save(out, np.array(["a", "bc"]))
    yield "npy", "text", out.getvalue()
    for name, save in (("stored", np.savez), ("deflated", np.savez_compressed)):
        out = io.BytesIO()
        save(out, x=np.arange(6).reshape(3, 2), y=np.ones(3, np.uint8))
        yield "npz", name, fixed_zip(out.getvalue())
    yield "idx", "images", b"\0\0\x08\x03" + bytes([0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3]) + bytes(range(12))
    yield "idx", "doubles", b"\0\0\x0e\x01" + bytes([0, 0, 0, 2]) + np.ones(2, ">f8").tobytes()


def fixed_zip(content: bytes) -> bytes:
    """The archive with the same members, of 1980."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for member in old.infolist():
            new.writestr(zipfile.ZipInfo(member.filename), old.read(member), member.compress_type)
    return out.getvalue()


def compressed_files() -> Iterator[tuple[str, str, bytes]]:
    for name, content in list(files())[:3]:
        once = gzip.compress(content, mtime=0)
        yield "gzip", name, once
        yield "zlib", name, zlib.compress(content)
    yield "gzip", "members", once + gzip.compress(b"", mtime=0) + once
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.zst")
        tfr.write_tfrecord({"x": np.arange(20)}, path, compression="zstd")
        yield "zstd", "column", path.read_bytes()


def sidecars() -> Iterator[tuple[str, str, bytes]]:
    content = (FOLDER / "frames/records0_0").read_bytes()[OPTIONS["frames"] :]
    starts = ENGINE.scan(content)[0].lengths + 16
    yield "index", "index", b"".join(RecordIndex.from_sizes(starts).texts())
    yield "index", "crlf", b"".join(RecordIndex.from_sizes(starts).texts()).replace(b"\n", b"\r\n")
    shards = [f"part-{n:05}-of-00002.tfrecord" for n in range(2)]
    entries = [ManifestFile(name, len(starts), len(content), ENGINE.crc32c(content)) for name in shards]
    schema = pack(pa.schema([("a", pa.int64())]))
    yield "manifest", "manifest", format_manifest(Manifest("part", "0" * 16, tuple(entries), schema=schema))
    staged = ManifestFile(shards[0], 1, 20, 5, f"_{'1' * 16}-00000.staged")
    yield (
        "manifest",
        "staged",
        format_manifest(Manifest("part", "1" * 16, (staged,), "gzip", None, False, (shards[1],))),
    )
    schema = tfr.Schema(
        {"a": tfr.scalar("int8", default=3), "b": tfr.list_("string"), "t": tfr.tensor("float32", (2, None))}
    )
    yield "json_schema", "fields", schema.to_json().encode()
    arrow = pa.schema([("t", pa.timestamp("us", "UTC")), ("s", pa.struct([("a", pa.date32())]))])
    yield "json_schema", "types", tfr.Schema.from_arrow(arrow).to_json().encode()


def format_words() -> Iterator[bytes]:
    """Parts of JSON, protobuf text, array headers and compressed streams."""
    text = "null true false [] {} [[]] : , \" -1 1e400 NaN Infinity \\ud800 \\u0000 { } [ ] ( ) ' True"
    yield from (word.encode() for word in f"{text} <f4 |O <U3 <M8[s] >f8".split())
    names = (
        "type content shape dtype encoding sequence feature lzma zlib int64 string float32 complex128 bfloat16 uint4"
    )
    more = "FIXED_LEN_FEATURE value_count min max dim size INT BYTES FLOAT struct_domain tensor_representation_group"
    yield from (word.encode() for word in f"{names} {more} descr fortran_order timestamp decimal No/Where ../x".split())
    yield from (b"TFRA\x01\x00", b"TFRA\x01\x01", b"\xff\xff\xff\xff", b"tfrecord_io.", b"ARROW:extension:name")
    yield from (
        b"\x1f\x8b\x08\x00",
        b"\x78\x9c",
        b"\x28\xb5\x2f\xfd",
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"\x93NUMPY\x01\x00",
    )
    yield from (b"\n", b"\r\n", b" ", bytes(8), b"9223372036854775807", b"18446744073709551616", b"[" * 300)


def quoted(word: bytes) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"'


def main() -> None:
    for target, options in OPTIONS.items():
        shutil.rmtree(FOLDER / target, ignore_errors=True)
        (FOLDER / target).mkdir(parents=True)
        draw = random.Random(target)
        for name, content in primitives() if target == "primitives" else files():
            for number in range(2):  # the usual options, and some others
                chosen = bytes(options) if number == 0 else draw.randbytes(options)
                (FOLDER / target / f"{name}_{number}").write_bytes(chosen + content[:MOST])
    others = [("embedded_schema", *seed) for seed in embedded_schemas()] + [
        ("tensor_proto", *seed) for seed in tensor_protos()
    ]
    for format_, name, content in [*others, *array_files(), *compressed_files(), *sidecars()]:
        (FOLDER / format_).mkdir(exist_ok=True)
        (FOLDER / format_ / name).write_bytes(content)
    for file, words in (("dictionary", dictionary()), ("dictionary_formats", format_words())):
        lines = dict.fromkeys(map(quoted, words))
        (FOLDER / file).write_text("\n".join(["# Written by tests/fuzz/seeds.py, in libFuzzer's format.", *lines, ""]))


if __name__ == "__main__":
    main()
