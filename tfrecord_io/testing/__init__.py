"""Test suites of compressions, file formats, tensor encodings and adapters, for those of other packages, too.

They need pytest, hypothesis and ``tfrecord_io[zstd,lz4,bfloat16]``. A test class subclasses a suite, and says what
differs.
"""

from tfrecord_io.testing.adapter_suite import AdapterSuite
from tfrecord_io.testing.codec_suite import CodecSuite
from tfrecord_io.testing.format_suite import FormatSuite
from tfrecord_io.testing.tensor_encoding_suite import BytesEncodingSuite, TensorEncodingSuite

__all__ = ["AdapterSuite", "BytesEncodingSuite", "CodecSuite", "FormatSuite", "TensorEncodingSuite"]
