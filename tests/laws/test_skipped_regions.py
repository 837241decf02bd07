"""Any damage, read in any way: a function is asked once about each region, and the report has them in order."""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import random_damages
import tfrecord_io as tfr
from reading import read_by
from rounds import rounds
from tfrecord_io.bytes.compression import CODECS

pytestmark = [pytest.mark.fault(18), pytest.mark.fault(26)]


def read_all(path: Any, **keywords: Any) -> tfr.typing.ReadReport:
    with read_by(tfr.open_reader, path, batch_size=100, **keywords) as reader:
        reader.read_all()
        return reader.report


def iterate(path: Any, **keywords: Any) -> tfr.typing.ReadReport:
    with read_by(tfr.open_reader, path, batch_size=100, **keywords) as reader:
        for _ in reader:
            pass
        return reader.report


def train(path: Any, **keywords: Any) -> None:
    for _ in read_by(tfr.iter_arrays, path, batch_size=64, columns=["a"], epochs=2, **keywords):
        pass


CALLS: dict[str, Callable[..., Any]] = {
    "read_all": read_all,
    "batches": iterate,
    "table": lambda path, **keywords: read_by(tfr.read_table, path, **keywords),
    "filter": lambda path, **keywords: read_by(tfr.read_table, path, filters=[("a", ">", 10)], **keywords),
    "limit": lambda path, **keywords: read_by(tfr.read_table, path, limit=100, **keywords),
    "offset": lambda path, **keywords: read_by(tfr.read_table, path, offset=30, **keywords),
    "arrays": lambda path, **keywords: read_by(tfr.read_arrays, path, columns=["a"], **keywords),
    "training": train,
}


@settings(max_examples=rounds(1200, 40), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(sorted(CALLS)), st.sampled_from([1, 2]), st.booleans())
def test_each_region_is_asked_about_once_and_reported_in_order(seed: int, how: str, threads: int, embed: bool) -> None:
    rng = random.Random(seed)
    asked = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = [Path(folder, f"{number}.tfrecord") for number in range(rng.choice([1, 2]))]
        for path in paths:
            rows = rng.choice([20, 500])
            data = {"a": range(rows), "s": [rng.randbytes(rng.choice([5, 200])) for _ in range(rows)]}
            tfr.write_tfrecord(data, path, compression=rng.choice([None, *CODECS.names()]), embed_schema=embed)
            for _ in range(rng.choice([0, 1, 2])):
                content = path.read_bytes() or b"x"
                path.write_bytes(random_damages.damaged(content, rng.choice(random_damages.KINDS), rng))

        def decide(error: tfr.TFRecordError) -> bool:
            region = error.region
            assert region is not None
            asked.append((region.path, region.begin, region.end, region.records_before))
            return True

        try:
            report = CALLS[how](paths, on_error=decide, threads=threads)
        except (tfr.TFRecordError, ValueError):
            return
    assert len(asked) == len(set(asked))
    if isinstance(report, tfr.typing.ReadReport):
        places = [
            (
                paths.index(Path(region.path)),
                float("inf") if region.begin is None else region.begin,
                region.records_before,
            )
            for region in report.skipped
        ]
        assert places == sorted(places)
