"""``TFRecordWriter`` and ``TFRecordOptions``, with TensorFlow's parameters.

Tests: tests/write/test_record_writer.py and tests/write/test_writer_compression_level.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfrecord_io.kit import CODECS, LateTypes, check_integer, check_keywords
from tfrecord_io.typing import OutputPath

if TYPE_CHECKING:
    import tfrecord_io as tfr
else:
    tfr = LateTypes("tfrecord_io")

_COMPRESSIONS: Any = {"": "none", "NONE": "none"} | {
    codec.name.upper(): codec.name for codec in CODECS.own if codec.tensorflow
}


@dataclass(frozen=True)
class TFRecordOptions:
    """How a file is compressed, as ``tf.io.TFRecordOptions``.

    Attributes
    ----------
    compression_type : {None, "", "NONE", "GZIP", "ZLIB"}
    compression_level : int, optional
        0 to 9, from fast to small; by default, a fast one.

    Examples
    --------
    >>> TFRecordOptions("GZIP", compression_level=9)
    TFRecordOptions(compression_type='GZIP', compression_level=9)
    """

    compression_type: str | None = None
    compression_level: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.compression_type or "") not in _COMPRESSIONS:
            expected = ", ".join(map(repr, _COMPRESSIONS))
            raise ValueError(f"compression_type={self.compression_type!r}: expected None or one of {expected}")
        check_integer("compression_level", self.compression_level, 0, 9, optional=True)


@check_keywords
def TFRecordWriter(path: OutputPath, options: TFRecordOptions | str | None = None) -> tfr.RecordWriter:
    """Open a file for records, as ``tf.io.TFRecordWriter``.

    >>> with TFRecordWriter("records.tfrecord.gz", "GZIP") as writer:
    ...     writer.write(b"payload")

    Parameters
    ----------
    path : str, PathLike, URL or binary file object
        The file may have any name, also one without a suffix of TFRecord.
    options : TFRecordOptions or str, optional
        The compression: "GZIP", "ZLIB" or "", or `TFRecordOptions`.

    Returns
    -------
    RecordWriter
        Unlike TensorFlow's, it publishes the file when it is closed, complete or not at all.
    """
    import tfrecord_io

    if not isinstance(options, TFRecordOptions):
        options = TFRecordOptions(options)
    compression = _COMPRESSIONS[options.compression_type or ""]
    return tfrecord_io.RecordWriter(path, compression=compression, compression_level=options.compression_level)
