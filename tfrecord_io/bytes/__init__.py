"""Records to column buffers and back: frames, compressions, the engine. Knows no file and no Arrow.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names

_HOMES = {
    "CODECS": "compression",  # The table of compressions
    "Codec": "compression.codec",  # A compression
    "Gap": "compression.recovering_stream",  # Bytes of a compressed file that are not read
    "RecoveringStream": "compression.recovering_stream",  # The uncompressed bytes of a file that can be read
    "DecompressedStream": "compression.stream",  # The uncompressed bytes of the members of a file, one after the other
    "open_decompressed": "compression.stream",  # Open the uncompressed bytes of a file as a stream
    "PlainStream": "compression.stream",  # The bytes of a file, including a head that was read before
    "Raw": "compression.stream",  # A raw binary file
    "Stream": "compression.stream",  # See the module's docstring
    "LIST_MARK": "engine.contract",  # not part of any name: names are UTF-8
    "MAX_RECORD_BYTES": "engine.contract",  # The most bytes of a record
    "PAGE": "engine.contract",  # of memory and files; the kernel's FileWindows have the same
    "ArrowReader": "engine.contract",  # Takes columns from the batches of one schema
    "Checks": "engine.contract",  # Which checksums of frames are compared
    "ColumnBuffers": "engine.contract",  # One column in Arrow's layout
    "Decoder": "engine.contract",  # Appends records to columns until they are taken
    "Encoder": "engine.contract",  # Encodes rows of columns as framed records
    "Engine": "engine.contract",  # The functions of an engine
    "Fact": "engine.contract",  # The properties of a column as numbers
    "facts_of": "engine.contract",  # The facts of columns by feature
    "Fault": "engine.contract",  # A problem with its record and byte
    "FaultCode": "engine.contract",  # The kind of a fault
    "FeatureColumns": "engine.contract",  # Decoded columns by feature, in an engine
    "FeatureName": "engine.contract",  # The name of a feature: bytes of UTF-8
    "FieldForm": "engine.contract",  # A field of a message, and how it is read
    "FieldValues": "engine.contract",  # The values of a field in messages
    "FileView": "engine.contract",  # An open file, and memory for windows of it
    "Frames": "engine.contract",  # Extents of the payloads in a block
    "Members": "engine.contract",  # Fields of messages
    "ObjectDecoder": "engine.contract",  # Decodes single records as Python objects
    "ObjectForm": "engine.contract",  # How the value of a column in one record becomes a Python object
    "PlainForm": "engine.contract",  # The form of an Arrow array with one value in each row, and of its feature
    "PlainValue": "engine.contract",  # The type of value in a plain Arrow array
    "Plan": "engine.contract",  # A schema compiled for a decoder
    "PlanColumn": "engine.contract",  # One column for a decoder to fill, and the checks of its values
    "Progress": "engine.contract",  # The result of one `Decoder.feed`
    "RecordCounts": "engine.contract",  # Numbers of records that tell whether these are Examples
    "OTHER_MESSAGE": "engine.fault_messages",  # Advice about messages of another type
    "is_about_no_examples": "engine.fault_messages",  # True for an error of `no_examples`, which is not about damage
    "is_other_format": "engine.fault_messages",  # True if an error of `record_error` is about the first bytes of a
    "is_wire_fault": "engine.fault_messages",  # True if a payload is not a message of its expected type
    "no_examples": "engine.fault_messages",  # The error for a file whose records are intact and none of which is an
    "not_examples": "engine.fault_messages",  # The error for records that are not Examples or SequenceExamples
    "other_kind_hint": "engine.fault_messages",  # The hint where a feature of a layout has another type than its column
    "record_error": "engine.fault_messages",  # Build the exception for a fault in `data`
    "to_error": "engine.fault_messages",  # The exception for a fault
    "wire_reason": "engine.fault_messages",  # The fault in the bytes of a message
    "DecodingChoice": "engine.filtering_decoder",  # Choose between decoding the next records in one go and in two steps
    "FilteringDecoder": "engine.filtering_decoder",  # A `tfrecord_io.bytes.engine.contract.Decoder` that leaves out
    "Prefilter": "engine.filtering_decoder",  # A condition on records that needs some of the columns of a plan
    "bytes_objects": "engine.numpy_output",  # An array of ``bytes`` objects of the slots of all parts
    "BytesSlots": "engine.numpy_output",  # Bytes, their offsets, and which are valid
    "chosen_offsets": "engine.numpy_output",  # The offsets of chosen rows one after the other
    "copy_runs": "engine.numpy_output",  # Copy runs of items
    "first_fit": "engine.numpy_output",  # Assign rows, in order, to the first of some bins that has room
    "gather_objects": "engine.numpy_output",  # The values of an array of objects, if all have one type
    "gather_runs": "engine.numpy_output",  # Copy chosen rows to where their `chosen_offsets` say
    "GatheredValues": "engine.numpy_output",  # The values of cells that are ``bytes``
    "join_numbers": "engine.numpy_output",  # Fill arrays with columns of ``pyarrow.RecordBatch``es
    "NumberColumn": "engine.numpy_output",  # A column of batches, and arrays with an item for each row of all batches
    "padded_rows": "engine.numpy_output",  # Rows of `length` items
    "row_views": "engine.numpy_output",  # An object array
    "RunArray": "engine.numpy_output",  # Rows of numbers: values and offsets
    "text": "engine.numpy_output",  # An array of `text_dtype`
    "get_engine": "engine.select",  # The engine to use, looked up at each call
    "SHAPE_SOURCE_KEY": "format.companions",  # field metadata
    "companions": "format.companions",  # Names of the shape and the dtype companion of a raw feature
    "feature_of_companion": "format.companions",  # The feature with the companion `name`
    "ShapeSource": "format.companions",  # Where the shape and the dtype of the arrays of a column stand
    "stated_by": "format.companions",  # The features that state shape and dtype of the arrays in `feature`
    "Array": "format.dtypes",  # Any NumPy array
    "Dtype": "format.dtypes",  # A row of the table of dtypes
    "Feature": "format.example_messages",  # A ProtocolMessage
    "EMBEDDED_FIELD": "format.feature_types",  # number of the unknown field that carries an embedded schema
    "RECORD_TYPES": "format.feature_types",  # by the value of record_type=; "bytes" records are not parsed
    "image_advice": "format.feature_types",  # How to store an image of Pillow, which no feature type holds
    "Kind": "format.feature_types",  # The feature type
    "Layout": "format.feature_types",  # How many values a row of a column has
    "RecordType": "format.feature_types",  # Which message a payload is parsed as
    "Text": "format.feature_types",  # The requirement of a plan on the bytes values of a column
    "IMAGES": "format.foreign_files",  # the formats of images that are imported and decoded, by name
    "TIFF_MAGIC": "format.foreign_files",  # the last two are of BigTIFF
    "ZEROS": "format.foreign_files",  # Text about a file of zeros
    "looks_like": "format.foreign_files",  # Name the format of a file by its first `HEAD_BYTES` bytes
    "FORMATS": "format.format_registry",  # The table of file formats
    "Format": "format.format_registry",  # A file format
    "format_option": "format.format_registry",  # A field of a dataclass that is an option of ``tfr convert``
    "crc32c": "format.framing",  # The CRC-32C of `data`, appended to what gave `value`
    "FrameHeader": "format.framing",  # The length before a payload, and sizes of a frame
    "check_nesting_level": "format.missing_values",  # Refuse values that are nested deeper than those of any column
    "has_inner": "format.missing_values",  # True if a cell may hold other values
    "has_missing": "format.missing_values",  # True if an array of NumPy, pandas
    "holds_masked": "format.missing_values",  # True if a cell is a masked array or holds one
    "header": "format.npy_header",  # The header of an array in C order
    "read_header": "format.npy_header",  # Dtype, whether the order is Fortran's, and shape
    "drop_unknown_fields": "format.protobuf",  # Drop the unknown fields of a message
    "is_closed": "format.protobuf",  # True if an enum, by its descriptor, has the values of its definition alone
    "is_packed": "format.protobuf",  # True if the numbers of a repeated field, by its descriptor
    "message_classes": "format.protobuf",  # Build message classes, by name, in a private pool
    "parse_message": "format.protobuf",  # A message
    "STORAGE": "format.serialized_tensor",  # The field of a TensorProto that holds each dtype
    "dtype_of_number": "format.serialized_tensor",  # The name of the dtype that TensorFlow's ``types.proto`` gives a
    "parse_tensor": "format.serialized_tensor",  # Parse a serialized TensorProto, as ``tf.io.parse_tensor`` does
    "parse_tensor_proto": "format.serialized_tensor",  # Parse `data`
    "ParsedTensor": "format.serialized_tensor",  # The name of a tensor's dtype, its shape
    "proto_prefix": "format.serialized_tensor",  # The bytes of a TensorProto before its content
    "serialize_tensor": "format.serialized_tensor",  # Serialize an array as a TensorProto
    "delimited_field": "format.varint",  # A field of bytes or of a message
    "varint": "format.varint",  # The bytes of an unsigned varint
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
