"""Test suites for other packages: a compression, file format or adapter that they add inherits the tests of those here.

They need pytest and hypothesis. A test class subclasses a suite, and says what differs.
"""

from tfrecord_io.testing.adapter_suite import AdapterSuite
from tfrecord_io.testing.codec_suite import CodecSuite
from tfrecord_io.testing.format_suite import FormatSuite

__all__ = ["AdapterSuite", "CodecSuite", "FormatSuite"]
