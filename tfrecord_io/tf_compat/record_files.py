"""``TFRecordWriter`` and ``TFRecordOptions``, with TensorFlow's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfrecord_io.call_errors import check_keywords
from tfrecord_io.compression import CODECS
from tfrecord_io.typing import OutputPath
from tfrecord_io.write.record_writer import RecordWriter

_COMPRESSIONS: Any = {"": "none", "NONE": "none"} | {
    codec.name.upper(): codec.name for codec in CODECS.own if codec.tensorflow
}


@dataclass(frozen=True)
class TFRecordOptions:
    """How a file is compressed, as ``tf.io.TFRecordOptions``.

    Attributes
    ----------
    compression_type : {None, "", "NONE", "GZIP", "ZLIB"}

    Examples
    --------
    >>> TFRecordOptions("GZIP")
    TFRecordOptions(compression_type='GZIP')
    """

    compression_type: str | None = None

    def __post_init__(self) -> None:
        if (self.compression_type or "") not in _COMPRESSIONS:
            expected = ", ".join(map(repr, _COMPRESSIONS))
            raise ValueError(f"compression_type={self.compression_type!r}: expected None or one of {expected}")


@check_keywords
def TFRecordWriter(path: OutputPath, options: TFRecordOptions | str | None = None) -> RecordWriter:
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
    if not isinstance(options, TFRecordOptions):
        options = TFRecordOptions(options)
    return RecordWriter(path, compression=_COMPRESSIONS[options.compression_type or ""])
