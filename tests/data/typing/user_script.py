# pyright: strict
"""A user's program with most of the public calls, which type checkers accept in their strict modes. Not run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import tfrecord_io as tfr


def bring_in(folder: Path) -> None:
    with tfr.formats.open_image_folder(folder / "photos", class_names=["cat", "dog"], shuffle_seed=0) as stream:
        report = tfr.write_tfrecord(stream, f"{folder}/photos@8.tfrecord", write_index=True)
    print(report.records, report.bytes, [file.path for file in report.files])
    tfr.write_tfrecord(tfr.formats.open_file_folder("sounds", shuffle_seed=0), "sounds.tfrecord", mode="overwrite")
    tfr.write_tfrecord(
        tfr.formats.embed_files({"uri": ["1.png"]}, columns={"image": "uri"}, missing="null"), "one.tfrecord"
    )
    tfr.write_tfrecord(tfr.formats.open_npz("arrays.npz"), "arrays.tfrecord")
    tfr.write_tfrecord(tfr.formats.open_idx("images.idx", "labels.idx", names=["image", "label"]), "mnist.tfrecord")
    tfr.convert("rows.csv", "rows.tfrecord", source_options={"delimiter": ";", "schema_overrides": {"age": "int64"}})
    print(tfr.formats.write_image_folder("photos@8.tfrecord", "again", image="image/encoded").records)
    print(tfr.formats.write_file_folder("sounds.tfrecord", "sounds-again", file="file/encoded", filename=None).bytes)
    with tfr.formats.open_yolo("coco8", image_set="val", masks="json", invalid_boxes="clip") as stream:
        tfr.write_tfrecord(stream, "coco8.tfrecord")
    tfr.convert("coco8.tfrecord", "as-coco", target_format="coco", target_options={"class_names": ["cat"]})


def look(path: str) -> bool:
    shown: tfr.typing.DatasetReport = tfr.report(path, "report.html", sample_records=1000, mode="overwrite")
    print(len(shown.statistics), shown.to_dict().keys(), tfr.describe(path))
    metadata = tfr.read_metadata(path)
    print(metadata.records, [file.bytes for file in metadata.files])
    difference = tfr.diff(path, "other.tfrecord", any_order=True, limit=3)
    check = tfr.verify(path)
    if not check.ok:
        saved = tfr.salvage(path, "saved/", dry_run=True)
        lost: list[tfr.typing.SkippedRegion] = saved.regions
        print(saved.records, [(region.path, region.begin, region.reason) for region in lost])
    tfr.show_versions()
    return difference.equal and check.ok


def arrange(path: str) -> dict[str, int]:
    parts = tfr.split(path, "parts", fractions={"train": 0.8, "validation": 0.1, "test": 0.1}, seed=1)
    tfr.merge(["parts/train.tfrecord", "parts/test.tfrecord"], "merged.tfrecord", compression="gzip")
    tfr.shuffle("merged.tfrecord", "shuffled@4", seed=2, memory_bytes=1 << 28)
    tfr.sample("merged.tfrecord", "some.tfrecord", fraction=0.1)
    shards: tfr.typing.WriteReport = tfr.split(path, "shards@4", shards=4)
    print(shards.records, [index.records for index in tfr.build_index("merged.tfrecord", columns=["label"])])
    return {name: part.records for name, part in parts.items()}


def query(path: str) -> int:
    data: tfr.Dataset = tfr.dataset(path, filters=[("label", "==", 3)]).select(["image", "label"])
    pieces: Sequence[tfr.typing.DatasetPiece] = data.pieces(4)
    print(data.files, data.bytes, data.rows, data.count_rows(), len(pieces))
    arrays = data.to_arrays(missing="mask")
    total = float(arrays["label"].mean())
    for batch in data.iter_arrays(batch_size=16, shuffle_buffer=100, seed=0):
        total += float(batch["label"].sum())
    with tfr.open_random(path, columns=["label"]) as records:
        chosen: tfr.typing.SelectedRecords = records.select([("label", ">", 3)])
        print(len(chosen), chosen.numbers[:3])
    return int(total)


def records(path: Path) -> list[bytes]:
    with tfr.RecordWriter(path) as writer:
        for i in range(3):
            features = {
                "label": tfr.io.int64_feature(i),
                "name": tfr.io.bytes_feature(b"x"),
                "score": tfr.io.float_feature(0.5),
            }
            writer.write(tfr.train.Example(features=tfr.train.Features(feature=features)).SerializeToString())
        writer.write(tfr.encode_example({"label": 3, "matrix": tfr.io.serialize_tensor(np.zeros((2, 2)))}))
    with tfr.RecordReader(path) as reader:
        payloads = list(reader)
        print(reader.report.records)
    description = {
        "label": tfr.io.FixedLenFeature([], "int64", default_value=0),
        "name": tfr.io.VarLenFeature("string"),
    }
    parsed = tfr.io.parse_example(payloads, description)
    print(parsed["label"], tfr.decode_example(payloads[0])["label"], tfr.io.decode_json_example('{"features": {}}'))
    print(tfr.io.parse_tensor(b"").shape, tfr.io.decode_raw(b"", "float32").dtype)
    return payloads


def declare() -> tfr.Schema:
    fields: dict[str, tfr.typing.Field] = {
        "image": tfr.image(resize=(64, 64)),
        "label": tfr.scalar("int32", required=True),
        "tags": tfr.list_(tfr.scalar("string")),
        "digest": tfr.scalar("binary"),
        "tokens": tfr.sequence("int64"),
        "matrix": tfr.tensor("float32", (None, 3)),
    }
    schema = tfr.Schema(fields)
    print(schema.to_json(), schema.to_python(), schema["label"].required, "label" in schema, len(schema))
    return schema


def main(path: Path) -> int:
    try:
        bring_in(path)
        with tfr.open_writer(path / "rows.tfrecord", declare()) as writer:
            writer.write({"label": [1]})
        inferred = tfr.infer_schema(path / "rows.tfrecord")
        print(inferred.records, inferred.strict().names)
        return look(str(path)) + query(str(path)) + sum(arrange(str(path)).values()) + len(records(path))
    except tfr.errors.TruncatedRecordError as error:
        print(f"{error.path} ends inside record {error.record}; {error.records_intact} are intact", file=sys.stderr)
    except (tfr.errors.CorruptRecordError, tfr.errors.DecodeError, tfr.errors.SchemaError) as error:
        print(error.reason, error.advice, error.offset, error.feature, file=sys.stderr)
    except tfr.TFRecordError as error:
        print(error, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
