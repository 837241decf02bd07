"""Suggestions for whole files: right for the layouts of well-known programs, and none that is wrong for other files.

Each file is written by protobuf, and read by what is suggested for it in Python and in a shell, against NumPy's arrays.
"""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.train import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from tfrecord_io.typing import Suggestion

Array = np.ndarray[Any, Any]
IMAGE = "tfr.image()"
HWC = "tfr.tensor('uint8', ('height', 'width', 'depth'))"
RECORDS = 6
FILES = 200


class Layout(NamedTuple):
    """A file: what is to be suggested for its columns, its records, and the arrays that the suggestions read.

    A suggestion of None has no field: media and messages are only named.
    """

    suggestions: Mapping[str, str | None]
    records: Sequence[bytes]
    arrays: Mapping[str, Sequence[Any]] = {}
    compression: str | None = None


def feature(value: Any) -> Feature:
    values = [value] if isinstance(value, bytes | str | int | float) else [*value]
    if isinstance(values[0], bytes | str):
        return Feature(bytes_list=BytesList(value=[v.encode() if isinstance(v, str) else v for v in values]))
    if isinstance(values[0], float | np.floating):
        return Feature(float_list=FloatList(value=values))
    return Feature(int64_list=Int64List(value=values))


def example(**features: Any) -> bytes:
    return Example(features=Features(feature={n: feature(v) for n, v in features.items()})).SerializeToString()


def sequence(context: Mapping[str, Any], **lists: Sequence[Any]) -> bytes:
    features = Features(feature={name: feature(value) for name, value in context.items()})
    steps = {name: FeatureList(feature=[*map(feature, values)]) for name, values in lists.items()}
    return SequenceExample(context=features, feature_lists=FeatureLists(feature_list=steps)).SerializeToString()


rng = np.random.default_rng(0)


def pixels(*shape: int) -> Array:
    return rng.integers(0, 256, shape, dtype=np.uint8)


def floats(*shape: int, dtype: str = "float32") -> Array:
    return rng.normal(size=shape).astype(dtype)


def jpeg() -> bytes:
    return b"\xff\xd8\xff\xe0\0\x10JFIF\0" + rng.bytes(60)


def png() -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + rng.bytes(60)


def wav() -> bytes:
    data = rng.bytes(100)
    form = struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16)
    return b"RIFF" + struct.pack("<I", 136) + b"WAVEfmt " + form + b"data" + struct.pack("<I", 100) + data


def npy(array: Array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def bases(length: int) -> Array:
    """One-hot bases, some of which are unknown."""
    one_hot = np.eye(4, dtype=np.uint8)[rng.integers(0, 4, length)]
    one_hot[3:6] = 0
    return one_hot


def variant(number: int) -> bytes:
    """A message of Nucleus: reference_bases, alternate_bases, end, reference_name."""
    return b"\x32\x01A\x3a\x01G" + bytes([13 << 3, number]) + b"\x72\x05chr20"


def raw_images(
    names: Sequence[str],
    image: str = "image_raw",
    dtype: str = "uint8",
    shapes: Sequence[tuple[int, ...]] = ((28, 28, 1),) * RECORDS,
    axes: Sequence[str | int] = (),
    **more: Any,
) -> Layout:
    """Raw arrays with a feature for each size."""
    arrays = [
        floats(*s, dtype=dtype) if dtype.startswith("float") else rng.integers(0, 200, s).astype(dtype) for s in shapes
    ]
    records = [
        example(**{image: array.tobytes(), "label": row, **dict(zip(names, array.shape, strict=False)), **more})
        for row, array in enumerate(arrays)
    ]
    return Layout({image: f"tfr.tensor({dtype!r}, {tuple(axes or names)!r})"}, records, {image: arrays})


def shaped(column: str, shape: str, arrays: Sequence[Array], **more: Any) -> Layout:
    """Raw arrays with a feature for all sizes."""
    records = [example(**{column: a.tobytes(), shape: [*a.shape], **more}) for a in arrays]
    return Layout({column: f"tfr.tensor({str(arrays[0].dtype)!r}, {shape!r})"}, records, {column: arrays})


VARYING = [(20 + row, 30 - row, 3) for row in range(RECORDS)]
SIZES = ("height", "width", "depth")
ROWS = range(RECORDS)


def segmentation() -> Layout:
    images, masks = [pixels(20 + row, 30, 3) for row in ROWS], [pixels(20 + row, 30) for row in ROWS]
    records = [
        example(image_raw=image.tobytes(), mask_raw=mask.tobytes(), height=len(mask), width=30)
        for image, mask in zip(images, masks, strict=True)
    ]
    suggestions = {
        "image_raw": "tfr.tensor('uint8', ('height', 'width', 3))",
        "mask_raw": "tfr.tensor('uint8', ('height', 'width'))",
    }
    return Layout(suggestions, records, {"image_raw": images, "mask_raw": masks})


def tensors(column: str, encode: Callable[[Array], bytes], encoding: str, arrays: Sequence[Array]) -> Layout:
    shape = tuple(
        sizes.pop() if len(sizes) == 1 else None for sizes in map(set, zip(*(a.shape for a in arrays), strict=True))
    )
    field = f"tfr.tensor({str(arrays[0].dtype)!r}, {shape}, encoding={encoding!r})"
    return Layout({column: field}, [example(**{column: encode(a), "label": 1}) for a in arrays], {column: arrays})


def frames_of_context() -> Layout:
    frames = [[pixels(8 + row, 9, 3) for _ in range(2 + row)] for row in ROWS]
    records = [
        sequence({"height": 8 + row, "width": 9, "depth": 3}, frames=[one.tobytes() for one in frames[row]])
        for row in ROWS
    ]
    return Layout({"frames": f"tfr.sequence({HWC})"}, records, {"frames": frames})


def frames_of_steps() -> Layout:
    frames = [[pixels(8 + row, 9 + at, 3) for at in range(3)] for row in ROWS]
    records = [
        sequence(
            {"label": row},
            frames=[one.tobytes() for one in frames[row]],
            **{name: [one.shape[axis] for one in frames[row]] for axis, name in enumerate(SIZES)},
        )
        for row in ROWS
    ]
    return Layout({"frames": f"tfr.sequence({HWC})"}, records, {"frames": frames})


def vectors(context: Callable[[int], Mapping[str, Any]], dtype: str = "uint8", **sizes: int) -> Layout:
    """Features of frames, without a size: YouTube-8M, AudioSet."""
    make = pixels if dtype == "uint8" else floats
    arrays = {name: [[make(size) for _ in range(5 + row)] for row in ROWS] for name, size in sizes.items()}
    records = [
        sequence(context(row), **{name: [v.tobytes() for v in of_rows[row]] for name, of_rows in arrays.items()})
        for row in ROWS
    ]
    suggestions = {name: f"tfr.sequence(tfr.tensor({dtype!r}, ({size},)))" for name, size in sizes.items()}
    return Layout(suggestions, records, arrays)


def basenji(target: Callable[[int], Any]) -> Layout:
    arrays = [bases(512) for _ in ROWS]
    records = [example(sequence=array.tobytes(), target=target(row)) for row, array in enumerate(arrays)]
    return Layout({"sequence": "tfr.tensor('uint8', (512, 4))"}, records, {"sequence": arrays}, "zlib")


def deep_variant(shapes: Sequence[tuple[int, ...]], **more: Any) -> Layout:
    arrays = [pixels(*shape) for shape in shapes]
    records = [
        example(
            **{
                "locus": f"chr20:{row}-{row + 1}",
                "variant/encoded": variant(row),
                "variant_type": 1,
                "alt_allele_indices/encoded": b"\x0a\x01\x00",
                "image/encoded": image.tobytes(),
                "image/shape": [*image.shape],
                "sequencing_type": 1,
                **more,
            }
        )
        for row, image in enumerate(arrays)
    ]
    suggestions = {"image/encoded": "tfr.tensor('uint8', 'image/shape')", "variant/encoded": None}
    return Layout(suggestions, records, {"image/encoded": arrays}, "gzip")


def media(column: str, make: Callable[[], bytes], suggestion: str | None, **more: Any) -> Layout:
    return Layout({column: suggestion}, [example(**{column: make(), **more}) for _ in ROWS])


BOXES = {f"image/object/bbox/{side}": [0.25] for side in ("xmin", "xmax", "ymin", "ymax")}
IMAGENET = {"image/height": 20, "image/width": 30, "image/channels": 3, "image/class/label": 7, "image/format": "JPEG"}
LAYOUTS: dict[str, Layout] = {
    # TensorFlow's tutorials, and programs after them
    "tutorial, MNIST": raw_images(SIZES),
    "tutorial, JPEG in image_raw": media("image_raw", jpeg, IMAGE, height=20, width=30, depth=3, label=1),
    "tutorial, images of several sizes": raw_images(SIZES, shapes=VARYING),
    "tutorial, rows and cols": raw_images(("rows", "cols", "depth")),
    "tutorial, three channels of no feature": raw_images(
        ("height", "width"), shapes=VARYING, axes=("height", "width", 3)
    ),
    "tutorial, segmentation": segmentation(),
    "tutorial, floats": raw_images(SIZES, dtype="float32", shapes=[(8, 9, 3)] * RECORDS),
    "tutorial, doubles": raw_images(SIZES, dtype="float64", shapes=VARYING),
    "tutorial, int32 labels of pixels": raw_images(SIZES, "label_raw", dtype="int32", shapes=VARYING),
    "tutorial, uint16": raw_images(SIZES, dtype="uint16", shapes=VARYING),
    "tutorial, x, y and z": raw_images(("x", "y", "z"), "train/image", "float32", [(4 + row, 5, 6) for row in ROWS]),
    "tutorial, x and y of one size": raw_images(("x", "y"), "img", shapes=[(28, 28)] * RECORDS),
    "tutorial, serialized tensors": tensors("image", tfr.io.serialize_tensor, "tensor_proto", [floats(28, 28, 1)] * 3),
    "tutorial, serialized tensors of several shapes": tensors(
        "image", tfr.io.serialize_tensor, "tensor_proto", [pixels(*shape) for shape in VARYING]
    ),
    "tutorial, numpy.save": tensors("image", npy, "npy", [floats(2, 3, dtype="float64")] * 3),
    "tutorial, volumes": shaped("image", "image/shape", [floats(8, 9, 7)] * RECORDS, label=1),
    "tutorial, four features": Layout(
        {}, [example(feature0=1, feature1=row, feature2="goat", feature3=0.5) for row in ROWS]
    ),
    "tutorial, Keras and COCO": media(
        "image", jpeg, IMAGE, path="a/1.jpg", area=1.5, bbox=[1.0, 2.0, 3.0, 4.0], image_id=7
    ),
    "tutorial, frames with sizes in the context": frames_of_context(),
    "tutorial, frames with sizes in the steps": frames_of_steps(),
    "tutorial, frames as JPEG": Layout(
        {"frames": f"tfr.sequence({IMAGE})"}, [sequence({"label": row}, frames=[jpeg(), jpeg()]) for row in ROWS]
    ),
    "tutorial, several views": Layout({"views": f"tfr.list_({IMAGE})"}, [example(views=[png(), png()]) for _ in ROWS]),
    # DALI, TF-Slim
    "DALI, ImageNet": media("image/encoded", jpeg, IMAGE, **IMAGENET, **BOXES),
    "DALI, COCO": media("image/encoded", jpeg, IMAGE, **BOXES, **{"image/object/class/label": [1, 2]}),
    "DALI, PNG": media("image/encoded", png, IMAGE, **{"image/class/label": 1}),
    "DALI, audio": media("audio", wav, None, label=1),
    "TF-Slim, raw": raw_images(("image/height", "image/width", "image/channels"), "image/encoded", shapes=VARYING),
    # StyleGAN
    "StyleGAN, 64": shaped("data", "shape", [pixels(3, 64, 64) for _ in ROWS]),
    "StyleGAN, 4": shaped("data", "shape", [pixels(3, 4, 4) for _ in ROWS]),
    "StyleGAN, grey": shaped("data", "shape", [pixels(1, 32, 32) for _ in ROWS]),
    "StyleGAN2, labels": shaped("data", "shape", [pixels(3, 16, 16) for _ in ROWS], label=[0.5, 1.5]),
    # DeepVariant
    "DeepVariant, 6 channels": deep_variant([(100, 221, 6)] * 3, label=1),
    "DeepVariant, to be called": deep_variant([(100, 147, 7)] * 3),
    "DeepVariant, several heights": deep_variant([(60 + row, 99, 8) for row in ROWS]),
    # Basenji, Enformer
    "Basenji, floats": basenji(lambda _: floats(48)),
    "Basenji, few targets": basenji(lambda _: floats(4, 3, dtype="float16").tobytes()),
    # YouTube-8M, AudioSet
    "YouTube-8M, frames": vectors(lambda row: {"id": f"v{row}", "labels": [1, 2]}, rgb=1024, audio=128),
    "YouTube-8M, videos": Layout(
        {}, [example(id=f"v{row}", labels=[1, 2], mean_rgb=floats(1024), mean_audio=floats(128)) for row in ROWS]
    ),
    "AudioSet": vectors(
        lambda row: {"video_id": f"v{row}", "start_time_seconds": 0.5, "labels": [1]}, audio_embedding=128
    ),
    "AudioSet, floats": vectors(lambda row: {"video_id": f"v{row}"}, "float32", audio_embedding=128),
}


def write(path: Path, layout: Layout) -> Path:
    with tfr.RecordWriter(path, compression=layout.compression) as writer:
        for record in layout.records:
            writer.write(record)
    return path


def found_in(path: Path) -> dict[str, Suggestion]:
    return {suggestion.column: suggestion for suggestion in tfr.infer_schema(path).suggestions}


def test_there_are_files_of_all_programs() -> None:
    programs = {name.split(",")[0] for name in LAYOUTS}
    assert programs >= {"tutorial", "DALI", "StyleGAN", "DeepVariant", "Basenji", "YouTube-8M", "AudioSet"}
    assert len(LAYOUTS) >= 30


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_file_of_a_well_known_program(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    path = write(tmp_path / "a.tfrecord", layout)
    found = found_in(path)
    assert {column: suggestion.schema for column, suggestion in found.items()} == layout.suggestions
    for column, arrays in layout.arrays.items():
        schema = found[column].schema
        assert schema is not None
        for type_ in (eval(schema, {"tfr": tfr}), found[column].type):
            dataset = tfr.dataset(path, schema_overrides={column: type_}, sample="all")
            for own, other in zip(tfr.read_tfrecord(dataset)[column], arrays, strict=True):
                for one, expected in zip(own, other, strict=True) if isinstance(other, list) else [(own, other)]:
                    assert one.dtype == expected.dtype
                    np.testing.assert_array_equal(one, expected)


def random_file(source: random.Random) -> list[bytes]:
    """Records with features of any kind, whose names are those of sizes and whose numbers are not."""
    constant = {name: source.randint(1, 40) for name in ("height", "count", "x", "size")}
    length = source.choice([12, 16, 20, 32, 64])
    names = source.sample(["a", "image_raw", "data", "image/encoded", "target"], 2)
    makers: dict[str, Callable[[], Any]] = {
        names[0]: lambda: source.randbytes(source.randint(1, 90)),
        names[1]: lambda: source.randbytes(length),
        "digest": lambda: source.randbytes(32),
        "width": lambda: source.randint(1, 60),
        "depth": lambda: source.randint(1, 4),
        "shape": lambda: [source.randint(1, 9) for _ in range(3)],
        "label": lambda: source.randint(0, 9),
        "title": lambda: "".join(source.choices("abcdef {", k=source.randint(0, 30))),
        "score": source.random,
        "keys": lambda: [source.randbytes(16) for _ in range(source.randint(1, 3))],
        "values": lambda: [source.random() for _ in range(source.randint(1, 20))],
    }
    is_sequence = source.random() < 0.3
    chosen = source.sample([*makers], source.randint(3, len(makers)))
    records = []
    for _ in range(source.randint(3, 30)):
        features = {name: makers[name]() for name in chosen} | constant
        if not is_sequence:
            records.append(example(**features))
            continue
        steps = range(source.randint(1, 5))
        lists = {
            "ids": [source.randbytes(32) for _ in steps],
            "blobs": [source.randbytes(source.randint(1, 200)) for _ in steps],
        }
        records.append(sequence(features, **lists))
    return records


def test_random_files_have_no_suggestions(tmp_path: Path) -> None:
    found = {}
    for seed in range(FILES):
        path = write(tmp_path / f"{seed}.tfrecord", Layout({}, random_file(random.Random(seed))))
        if suggestions := found_in(path):
            found[seed] = {column: str(suggestion) for column, suggestion in suggestions.items()}
    assert found == {}
