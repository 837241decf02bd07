"""Writes the files next to this one with TensorFlow, as https://developers.google.com/earth-engine/guides/tfrecord describes exports.

Run ``pip install tensorflow-cpu`` and ``python -P write.py``. An image of 3 × 2 patches of 8 × 4 pixels, in two files: the floats
``B4`` and ``B5``, the bytes ``cloud``, and ``series``, an array band with a depth of 3; `overlapping` has the same pixels in patches
with a ``kernelSize`` of 4 × 2, as floats of ``B4``. The values are those of `pixel`. `table` is an exported table, with an array of
2 × 2 values and a geometry as GeoJSON.
"""

import json
from pathlib import Path

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
WIDTH, HEIGHT, PER_ROW, ROWS = 8, 4, 3, 2
KERNEL = (4, 2)
MIXER = {
    "projection": {"crs": "EPSG:32610", "affine": {"doubleMatrix": [30.0, 0.0, 500000.0, 0.0, -30.0, 4100000.0]}},
    "patchDimensions": [WIDTH, HEIGHT],
    "patchesPerRow": PER_ROW,
    "totalPatches": PER_ROW * ROWS,
}


def pixel(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (y * 100 + x + 0.5).astype(np.float32)


def feature(values: np.ndarray) -> tf.train.Feature:
    if values.dtype == np.uint8:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[values.tobytes()]))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values.reshape(-1).tolist()))


def example(features: dict[str, tf.train.Feature]) -> bytes:
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)


def grid(number: int, kernel: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    row, column = divmod(number, PER_ROW)
    y = np.arange(-(kernel[1] // 2), HEIGHT + kernel[1] // 2) + row * HEIGHT
    x = np.arange(-(kernel[0] // 2), WIDTH + kernel[0] // 2) + column * WIDTH
    return np.meshgrid(y, x, indexing="ij")


def patch(number: int) -> bytes:
    y, x = grid(number, (0, 0))
    value = pixel(y, x)
    return example(
        {
            "B4": feature(value),
            "B5": feature(value + 1000),
            "cloud": feature(value.astype(np.uint8)),
            "series": feature(np.stack([value, value * 2, value * 3])),
        }
    )


def main() -> None:
    gzip = tf.io.TFRecordOptions(compression_type="GZIP")
    for part, numbers in enumerate(((0, 1, 2, 3), (4, 5))):
        with tf.io.TFRecordWriter(str(HERE / f"image-{part:05d}.tfrecord.gz"), gzip) as writer:
            for number in numbers:
                writer.write(patch(number))
    with tf.io.TFRecordWriter(str(HERE / "overlapping.tfrecord.gz"), gzip) as writer:
        for number in range(PER_ROW * ROWS):
            writer.write(example({"B4": feature(pixel(*grid(number, KERNEL)))}))
    (HERE / "image-mixer.json").write_text(json.dumps(MIXER, indent=2) + "\n")
    with tf.io.TFRecordWriter(str(HERE / "table.tfrecord.gz"), gzip) as writer:
        for row in range(3):
            geometry = json.dumps({"type": "Point", "coordinates": [-122.0 + row, 37.5]}).encode()
            text = tf.train.Feature(bytes_list=tf.train.BytesList(value=[geometry]))
            values = {"landcover": np.float32([row]), "array": np.arange(4, dtype=np.float32) + row}
            writer.write(example({"geo": text, **{name: feature(value) for name, value in values.items()}}))


if __name__ == "__main__":
    main()
