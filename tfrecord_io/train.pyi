# Written by docs/reference/stub.py.

from tfrecord_io.bytes.format.example_messages import BytesList as BytesList
from tfrecord_io.bytes.format.example_messages import Example as Example
from tfrecord_io.bytes.format.example_messages import Feature as Feature
from tfrecord_io.bytes.format.example_messages import FeatureList as FeatureList
from tfrecord_io.bytes.format.example_messages import FeatureLists as FeatureLists
from tfrecord_io.bytes.format.example_messages import Features as Features
from tfrecord_io.bytes.format.example_messages import FloatList as FloatList
from tfrecord_io.bytes.format.example_messages import Int64List as Int64List
from tfrecord_io.bytes.format.example_messages import SequenceExample as SequenceExample

__all__ = [
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
]
