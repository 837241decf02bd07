"""The protobuf classes of tensorflow/core/example.

Tests: tests/apps/tf_compat/test_example.py and tests/bytes/engine/test_reference.py.
"""

from __future__ import annotations

from tfrecord_io.bytes.format.protobuf import message_classes

# tensorflow/core/example/feature.proto and example.proto
MESSAGES = {
    "BytesList": "value 1 *bytes",
    "FloatList": "value 1 *float",
    "Int64List": "value 1 *int64",
    "Feature": "bytes_list 1 BytesList|kind, float_list 2 FloatList|kind, int64_list 3 Int64List|kind",
    "Features": "feature 1 *Features.FeatureEntry",
    "Features.FeatureEntry": "key 1 string, value 2 Feature",
    "FeatureList": "feature 1 *Feature",
    "FeatureLists": "feature_list 1 *FeatureLists.FeatureListEntry",
    "FeatureLists.FeatureListEntry": "key 1 string, value 2 FeatureList",
    "Example": "features 1 Features",
    "SequenceExample": "context 1 Features, feature_lists 2 FeatureLists",
}

_classes = message_classes("tfrecord_io/example.proto", "tensorflow", MESSAGES)
for _class in _classes.values():
    _class.__module__ = __name__  # where pickle and help() find it

BytesList = _classes["BytesList"]
FloatList = _classes["FloatList"]
Int64List = _classes["Int64List"]
Feature = _classes["Feature"]
Features = _classes["Features"]
FeatureList = _classes["FeatureList"]
FeatureLists = _classes["FeatureLists"]
Example = _classes["Example"]
SequenceExample = _classes["SequenceExample"]
