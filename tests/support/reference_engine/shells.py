"""Shells of the messages of tensorflow/core/example, by which records are read.

Python's protobuf (upb) drops a map entry that holds an unknown field, C++ protobuf keeps it. In a shell, a map is what
it is on the wire: a repeated message with a key and a value. Values stay bytes there, so that a feature that is left
out is never parsed.
"""

from __future__ import annotations

from tfrecord_io.bytes.format.protobuf import EXAMPLE_MESSAGES, MessageClasses
from tfrecord_io.columns.schema.embedded import FIELD

# A value is parsed inside as many messages as in a record, since those count towards protobuf's nesting limit.
_SHELLS = {
    "EntryShell": "key 1 *string, value 2 *bytes",
    "MapShell": "entry 1 *EntryShell",
    "ExampleShell": f"features 1 *MapShell, embedded {FIELD} *bytes",
    "SequenceShell": f"features 1 *MapShell, lists 2 *MapShell, embedded {FIELD} *bytes",
    "MembersShell": "",
    "FeatureDepth2": "value 1 Feature",
    "FeatureDepth1": "inner 1 FeatureDepth2",
    "FeatureDepth0": "inner 1 FeatureDepth1",
    "FeatureListDepth2": "value 1 FeatureList",
    "FeatureListDepth1": "inner 1 FeatureListDepth2",
    "FeatureListDepth0": "inner 1 FeatureListDepth1",
}

_classes = MessageClasses("reference_engine/shells.proto", "tensorflow", {**EXAMPLE_MESSAGES, **_SHELLS})

EntryShell = _classes["EntryShell"]
MapShell = _classes["MapShell"]
MembersShell = _classes["MembersShell"]
ExampleShell = _classes["ExampleShell"]
SequenceShell = _classes["SequenceShell"]
FeatureDepth0 = _classes["FeatureDepth0"]
FeatureListDepth0 = _classes["FeatureListDepth0"]
