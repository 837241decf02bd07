"""The protobuf classes of tensorflow/core/example.

Tests: tests/columns/test_example.py and tests/bytes/engine/test_reference.py.
"""

from __future__ import annotations

from tfrecord_io.bytes.format.protobuf import MessageClasses

_classes = MessageClasses.from_examples()

BytesList = _classes["BytesList"]
FloatList = _classes["FloatList"]
Int64List = _classes["Int64List"]
Feature = _classes["Feature"]
Features = _classes["Features"]
FeatureList = _classes["FeatureList"]
FeatureLists = _classes["FeatureLists"]
Example = _classes["Example"]
SequenceExample = _classes["SequenceExample"]
