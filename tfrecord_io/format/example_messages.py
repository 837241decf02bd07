"""The protobuf classes of tensorflow/core/example, and shells of them, by which the reference engine reads records.

Python's protobuf (upb) drops a map entry that holds an unknown field, C++ protobuf keeps it. So that engine reads with
shells, in which a map is what it is on the wire: a repeated message with a key and a value. Values stay bytes there,
so that a feature that is left out is never parsed.
"""

from __future__ import annotations

from tfrecord_io.format.kinds import EMBEDDED_FIELD
from tfrecord_io.format.protobuf import message_classes

# tensorflow/core/example/feature.proto and example.proto
_MESSAGES = {
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

# A value is parsed inside as many messages as in a record, since those count towards protobuf's nesting limit.
_SHELLS = {
    "EntryShell": "key 1 *string, value 2 *bytes",
    "MapShell": "entry 1 *EntryShell",
    "ExampleShell": f"features 1 *MapShell, embedded {EMBEDDED_FIELD} *bytes",
    "SequenceShell": f"features 1 *MapShell, lists 2 *MapShell, embedded {EMBEDDED_FIELD} *bytes",
    "MembersShell": "",
    "FeatureDepth2": "value 1 Feature",
    "FeatureDepth1": "inner 1 FeatureDepth2",
    "FeatureDepth0": "inner 1 FeatureDepth1",
    "FeatureListDepth2": "value 1 FeatureList",
    "FeatureListDepth1": "inner 1 FeatureListDepth2",
    "FeatureListDepth0": "inner 1 FeatureListDepth1",
}

_classes = message_classes("tfrecord_io/example.proto", "tensorflow", {**_MESSAGES, **_SHELLS})
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

EntryShell = _classes["EntryShell"]
MapShell = _classes["MapShell"]
MembersShell = _classes["MembersShell"]
ExampleShell = _classes["ExampleShell"]
SequenceShell = _classes["SequenceShell"]
FeatureDepth0 = _classes["FeatureDepth0"]
FeatureListDepth0 = _classes["FeatureListDepth0"]
