"""JPEG images decoded to arrays, by Pillow and by simplejpeg, in comparison with tf.data.

``make bench BENCH_ARGS=--images``. A record has a JPEG file of a smooth picture with some noise, of quality 90. Every
contender makes one array of all images, as stored or of 224 × 224 pixels. Contenders alternate as in
`benchmarks.contest`, and the best time counts. The exit code is 1 if a contender fails.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import report
from benchmarks.contest import Contender, Result, contest
from benchmarks.readers import library
from benchmarks.workload_files import ensure
from benchmarks.workloads import WORKLOADS, Workload

PACKAGES = (*report.PACKAGES, "pillow", "simplejpeg")
HERE = "benchmarks.special.images"
SIZES = {"jpeg_small": (224, 224), "jpeg_medium": (375, 500), "jpeg_large": (1200, 1600)}  # height, width
TARGET = (224, 224)


def picture(rng: np.random.Generator, height: int, width: int) -> np.ndarray[Any, Any]:
    """Smooth parts of several sizes, and noise."""
    from PIL import Image

    pixels = rng.normal(128, 3, (height, width, 3))
    for side, contrast in ((4, 60), (16, 40), (64, 25)):
        coarse = rng.normal(0, contrast, (3, side, side)).astype("f4")
        smooth = (Image.fromarray(each).resize((width, height), Image.Resampling.BICUBIC) for each in coarse)
        pixels += np.stack([np.asarray(each) for each in smooth], -1)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def _records(name: str, rows: int) -> pa.Table:
    from PIL import Image

    rng, files = np.random.default_rng(rows), []
    for _ in range(min(rows, 20)):  # of which the others are copies
        buffer = io.BytesIO()
        Image.fromarray(picture(rng, *SIZES[name])).save(buffer, "JPEG", quality=90)
        files.append(buffer.getvalue())
    return pa.table({"image": pa.array([files[row % len(files)] for row in range(rows)], pa.binary())})


IMAGES = (
    Workload("jpeg_small", "1,000 × 224 × 224", 1_000, lambda rows: _records("jpeg_small", rows)),
    Workload("jpeg_medium", "300 × 375 × 500", 300, lambda rows: _records("jpeg_medium", rows)),
    Workload("jpeg_large", "30 × 1,200 × 1,600", 30, lambda rows: _records("jpeg_large", rows)),
)
WORKLOADS.update({workload.name: workload for workload in IMAGES})


class TfrecordIo:
    """``read_arrays`` with a schema of `tfrecord_io.image`."""

    name = "tfrecord_io"
    share = 1.0
    settings: Any = ((),)

    def __init__(
        self, workload: Workload, threads: int, codec: str, resized: bool = False, draft: bool = False
    ) -> None:
        if codec == "Pillow":
            sys.modules["simplejpeg"] = None  # type: ignore[assignment]  # as if it were not installed
        else:
            __import__(codec)
        tfr = library()
        form = {"resize": TARGET, "draft": draft} if resized else {"shape": (*SIZES[workload.name], 3)}
        self.tfr, self.path, self.threads = tfr, workload.path, threads
        self.schema = {"image": tfr.image(**form)}

    def run(self, setting: tuple[()]) -> Any:
        return self.tfr.read_arrays(self.tfr.dataset(self.path, threads=self.threads), schema=self.schema)["image"]

    @staticmethod
    def count(result: Any) -> int:
        return len(result)


class TfData:
    """TFRecordDataset → map(parse_single_example, decode_jpeg with the same pixels) → batch."""

    name = "tf.data"
    share = 1.0
    settings: Any = ((),)

    def __init__(self, workload: Workload, threads: int, resized: bool = False) -> None:
        import tensorflow as tf

        self.tf, self.path, self.threads, self.resized = tf, str(workload.path), threads, resized

    def _decoded(self, record: Any) -> Any:
        io_ = self.tf.io
        parsed = io_.parse_single_example(record, {"image": io_.FixedLenFeature([], self.tf.string)})
        image = io_.decode_jpeg(parsed["image"], channels=3, dct_method="INTEGER_ACCURATE")
        if not self.resized:
            return image
        return self.tf.cast(self.tf.image.resize(image, TARGET, antialias=True), self.tf.uint8)

    def run(self, setting: tuple[()]) -> list[Any]:
        records = self.tf.data.TFRecordDataset(self.path)
        return list(records.map(self._decoded, self.threads).batch(64))

    @staticmethod
    def count(result: list[Any]) -> int:
        return sum(int(batch.shape[0]) for batch in result)


def _contender(name: str, label: str, **options: Any) -> Contender:
    return Contender(f"{HERE}:{name}", f"{label}, {options['threads']} threads", options)


def _rows(results: Sequence[Result], count: int) -> list[list[str]]:
    first = results[0]
    rows = []
    for result in results:
        failed = result.error or first.error
        ratio = "–" if failed else f"{first.seconds / result.seconds:.2f}×"
        rows.append([result.name, result.error or f"{count / result.seconds:,.0f}", ratio])
    return rows


def measure(repeat: int = 7, budget: float = 8.0) -> tuple[str, bool]:
    """Run all; return the tables, and whether no contender has failed."""
    ensure([workload.name for workload in IMAGES])
    parts, passed = [], True
    for workload in IMAGES:
        for resized in (False, True) if workload.name != "jpeg_small" else (False,):
            print(f"{workload.title}{', resized' * resized} …", file=sys.stderr, flush=True)
            own = [
                _contender("TfrecordIo", "Pillow", codec="Pillow", threads=2, resized=resized),
                _contender("TfrecordIo", "Pillow", codec="Pillow", threads=1, resized=resized),
            ]
            if resized:
                own.append(_contender("TfrecordIo", "draft", codec="Pillow", threads=2, resized=True, draft=True))
            else:
                own += [_contender("TfrecordIo", "simplejpeg", codec="simplejpeg", threads=n) for n in (2, 1)]
            contenders = [*own, _contender("TfData", "tf.data", threads=2, resized=resized)]
            results = contest(contenders, workload, repeat, budget)
            title = f"{workload.title} {'to 224 × 224' if resized else 'as stored'}"
            parts += [title, report.table(["", "images/s", "Pillow = 1"], _rows(results, workload.rows))]
            passed &= not any(result.error for result in results)
    return "\n\n".join(parts), passed
