"""Records to column buffers and back: frames, compressions, the engine. Knows no file and no Arrow.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names

_HOMES = {
    "CODECS": "compression",  # The table of compressions
    "Codec": "compression.codec",  # A compression
    "Damage": "compression.codec",  # A member is damaged where its decompressor has arrived
    "RecoveringStream": "compression.recovering_stream",  # The uncompressed bytes of a file that can be read
    "open_decompressed": "compression.stream",  # Open the uncompressed bytes of a file as a stream
    "PlainStream": "compression.stream",  # The bytes of a file, including a head that was read before
    "Raw": "compression.stream",  # A raw binary file
    "Stream": "compression.stream",  # Protocol of a stream that knows its offset
    "Checks": "engine.contract",  # Which checksums of frames are compared
    "ColumnBuffers": "engine.contract",  # One column in Arrow's layout
    "Decoder": "engine.contract",  # Appends records to columns until they are taken
    "Engine": "engine.contract",  # The functions of an engine, and what they take and return
    "FeatureColumns": "engine.contract",  # Decoded columns by feature, in an engine
    "Frames": "engine.contract",  # Extents of the payloads in a block
    "Fault": "engine.faults",  # A problem with its record and byte
    "FaultCode": "engine.faults",  # The kind of a fault
    "Plan": "engine.faults",  # A schema compiled for a decoder
    "PlanColumn": "engine.faults",  # One column for a decoder to fill, and the checks of its values
    "RecordCounts": "engine.faults",  # Numbers of records that tell whether these are Examples
    "NumberColumn": "engine.numpy_output",  # A column of batches, and arrays with an item for each row of all batches
    "Runs": "engine.numpy_output",  # Rows of numbers or bytes: values and offsets
    "get_engine": "engine.select",  # The engine to use, looked up at each call
    "ShapeSource": "format.companions",  # Where the shape and the dtype of the arrays of a column stand
    "Array": "format.feature_types",  # Any NumPy array
    "Dtype": "format.dtypes",  # A row of the table of dtypes
    "Kind": "format.feature_types",  # The feature type
    "Layout": "format.feature_types",  # How many values a row of a column has
    "RecordType": "format.feature_types",  # Which message a payload is parsed as
    "Text": "format.feature_types",  # The requirement of a plan on the bytes values of a column
    "ForeignFile": "format.foreign_files",  # What files of other formats are recognized by
    "FORMATS": "format.known_formats",  # The table of file formats
    "Format": "format.known_formats",  # A row of the table of file formats
    "format_option": "format.known_formats",  # A field of a dataclass that is an option of ``tfr convert``
    "crc32c": "format.framing",  # The CRC-32C of `data`, appended to what gave `value`
    "FrameHeader": "format.framing",  # The length before a payload, and sizes of a frame
    "NestedValues": "format.missing_values",  # Values of Python, some of which may be masked
    "NpyHeader": "format.npy_header",  # What the header of an .npy file states
    "MessageClasses": "format.protobuf",  # Message classes, by name, in a private pool
    "ParsedTensor": "format.serialized_tensor",  # The name of a tensor's dtype, its shape
    "FieldTag": "format.varint",  # The tag of a field in a message
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
