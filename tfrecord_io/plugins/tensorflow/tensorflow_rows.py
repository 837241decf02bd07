"""Formats of TensorFlow's libraries that this plugin adds, with their keywords.

Tests: tests/plugins/tensorflow/test_array_record.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfrecord_io.kit import FORMATS, Format, Options, format_option

_TFRECORD = FORMATS.tfrecord


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class TensorflowOptions(Options):
    """Keywords of `tfrecord_io.convert` for these formats, with the help texts of ``tfr convert --help``."""

    target_split: str | None = format_option("The split of a TFDS dataset to write; by default, train.", "NAME")
    group_size: int | None = format_option(
        "Number of records of an ArrayRecord file that are compressed together; by default, 1.", "N"
    )
    record_compression: str | None = format_option(
        "Compression within an ArrayRecord file: zstd (the default), brotli, snappy or uncompressed.", "NAME[:LEVEL]"
    )


_CODE = "tfrecord_io.plugins.tensorflow."

ELWC = Format(
    *("elwc", _TFRECORD.title, "TFRecord files with lists of TensorFlow Ranking: `tfrecord_io.formats.open_elwc`"),
    records=f"{_CODE}from_elwc:elwc_rows",
    reads=Format.READING,
)
ARRAY_RECORD = Format(
    *("array_record", "ArrayRecord", "files of Grain and TFDS; records are copied, and parsed only for other formats"),
    suffixes=(".array_record", ".arrayrecord"),
    records=f"{_CODE}array_record:array_record_rows",
    content=f"{_CODE}array_record:array_record_source",
    write=f"{_CODE}array_record:to_array_record",
    reads=Format.READING,
    writes=frozenset({"mode", "group_size", "record_compression"}),
    options=TensorflowOptions,
    copied=True,
    looks=("a Riegeli or ArrayRecord file",),
    **Format.hints("array_record", where="of an ArrayRecord file, "),
    extra="array_record",
)
TFDS = Format(
    *("tfds", "TFDS", "a split of a TFDS dataset, in ``data_dir/name/1.0.0``: `tfrecord_io.formats.write_tfds`"),
    records=lambda paths, keywords: (paths, keywords),
    reads=Format.READING,
    write=f"{_CODE}write_tfds:convert_to_tfds",
    writes=frozenset({"mode", "shards", "float64", "target_split"}),
    options=TensorflowOptions,
)
