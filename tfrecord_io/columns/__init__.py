"""Columns in features, in Arrow and in pandas: types, encodings, conditions.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names

_HOMES = {
    "arrow_file": "arrow.buffers",  # A copy of `data`, in memory of Arrow, as a file for its parsers
    "BatchStream": "arrow.buffers",  # Base class of streams of record batches, which can be read once
    "column_mask": "arrow.buffers",  # True for the rows of a column that are not null
    "cut_columns": "arrow.buffers",  # Rows [begin, end) of columns, each as `cut`
    "empty_batch": "arrow.buffers",  # A batch without rows
    "empty_table": "arrow.buffers",  # A table without rows, of any types
    "export_stream": "arrow.buffers",  # The capsule that ``__arrow_c_stream__`` returns, for batches of the schema
    "int64_array": "arrow.buffers",  # An int64 array over `values`, without the import of pandas by ``pa.array``
    "list_array": "arrow.buffers",  # An array of list or large_list that cuts `values` into rows
    "list_lengths": "arrow.buffers",  # Number of values of each list, of any layout, 0 where it is null
    "numpy_dtype": "arrow.buffers",  # The dtype of an Arrow type of fixed width
    "offset_dtype": "arrow.buffers",  # The dtype of the offsets of lists, maps, text or bytes
    "offset_view": "arrow.buffers",  # The offsets of a list or binary array, one more than it has slots
    "offsets_of": "arrow.buffers",  # Offsets from 0 on of runs of these lengths
    "refuse_nuls": "arrow.buffers",  # Refuse names with a NUL, which ends them in the C data interface of Arrow
    "runs_within": "arrow.buffers",  # Ranges of consecutive rows whose `sizes` are at most `most` in all
    "scatter": "arrow.buffers",  # Items of `values` in the rows where the mask is True, zeros in the others
    "selectable": "arrow.buffers",  # Prepare rows for ``take`` and ``filter``
    "struct_fields": "arrow.buffers",  # The fields of a struct, null where it is
    "typed_view": "arrow.buffers",  # Items [begin, begin + count) of a buffer of `dtype`
    "valid_mask": "arrow.buffers",  # One bool for each slot, None where there are no nulls
    "value_bytes": "arrow.buffers",  # The bytes of an array's values
    "variable_width": "arrow.buffers",  # An array of (large_)binary or (large_)string over `values`
    "writable": "arrow.buffers",  # Return the memory as writable
    "can_unify": "arrow.casts",  # True if Arrow (26.0) can make one dictionary of those of several arrays
    "has_all": "arrow.casts",  # True if all of `others` but nulls are in `categories`
    "one_dictionary": "arrow.casts",  # A dictionary column with one dictionary
    "plain_layout": "arrow.casts",  # The array without views and run-ends, for which Arrow (26.0) has few functions
    "batch_of": "arrow.decode.batch_builder",  # The batch of so many rows, also without a column to count them by
    "BatchBuilder": "arrow.decode.batch_builder",  # Makes record batches of one schema
    "Columns": "arrow.decode.batch_builder",  # Arrow arrays of columns, by name
    "to_table": "arrow.decode.batch_builder",  # The table of batches of `schema`
    "other_part": "arrow.decode.decode_plan",  # Columns for what the declared `schema` has under the names of
    "plan_columns": "arrow.decode.decode_plan",  # Compile a declared schema
    "reads_companions": "arrow.decode.decode_plan",  # True if the companions are read too
    "candidates": "arrow.decode.inferred_column",  # The features that may be tensors, by kinds and numbers of values
    "count_kinds": "arrow.decode.inferred_column",  # Count the records of each kind of values of a feature
    "fold": "arrow.decode.inferred_column",  # Common facts of the tensors of feature `name`
    "FoldedTensor": "arrow.decode.inferred_column",  # Common facts of the tensors of a feature
    "SeenColumns": "arrow.decode.inferred_column",  # Evidence of the columns of chunks, added in the order of reading
    "absent": "arrow.decode.lists",  # A column of `rows` nulls
    "is_nothing": "arrow.decode.lists",  # True if no row has a value
    "widen": "arrow.decode.lists",  # Turn rows into a column of `kind` and `layout`
    "dtype_of": "arrow.decode.stated_shapes",  # The name of the dtype that a feature states by TensorFlow's number
    "stated_dtypes": "arrow.decode.stated_shapes",  # The distinct values of a dtype feature
    "text_of": "arrow.decode.stated_shapes",  # A value of a dtype feature as text, for messages
    "component_columns": "arrow.encode.composite_columns",  # The columns of the features
    "component_fields": "arrow.encode.composite_columns",  # The fields of the features that a column is written as
    "written_composite": "arrow.encode.composite_columns",  # The composite of a field whose column is written as its
    "dictionaries": "arrow.encode.encode_columns",  # The categories of a batch's dictionary columns by feature
    "encode_columns": "arrow.encode.encode_columns",  # Convert the columns of a batch into the columns that an
    "plan_writing": "arrow.encode.encode_plan",  # Decide how each column of the batches to come is written
    "Rounding": "arrow.encode.encode_plan",  # Counts, over all batches of a write
    "WritePlan": "arrow.encode.encode_plan",  # A schema compiled for writing
    "tensor_encoding": "arrow.encodings.tensor_encoding",  # Find an encoding by its name
    "TensorEncoding": "arrow.encodings.tensor_encoding",  # A tensor encoding
    "COMPARISONS": "arrow.evaluate_condition",  # Functions of Arrow that compare a column with a literal
    "cast_comparable_columns": "arrow.evaluate_condition",  # Turn columns of float16 into float32
    "is_compared_as_storage": "arrow.evaluate_condition",  # True for an extension type of single values that Arrow
    "values_of": "arrow.evaluate_condition",  # The values of a simple condition for the rows of a batch
    "arrays_schema": "arrow.image_encoding",  # Schema that data is cast to before it is encoded
    "BITS_PER_SAMPLE": "arrow.image_header",  # tags of TIFF and of EXIF data
    "DEPTH": "arrow.image_header",  # the offset of a PNG's bit depth
    "EXIF_FIRST": "arrow.image_header",  # formats whose orientation is known before pixels are loaded
    "IMAGE_FORMATS": "arrow.image_header",  # a closed list: some of Pillow's formats run other programs
    "KNOWN_FORMATS": "arrow.image_header",  # Formats of images that headers tell
    "ORIENTATION": "arrow.image_header",  # The tag of EXIF for the orientation
    "PNG": "arrow.image_header",  # The first bytes of a PNG image
    "QUARTER_TURNED": "arrow.image_header",  # orientations that swap height and width
    "TURNS": "arrow.image_header",  # what undoes an orientation, as a name in PIL.Image.Transpose
    "bits_of": "arrow.image_header",  # Bits of a value of an opened image, as the header states
    "image_header": "arrow.image_header",  # The header of an image
    "ImageHeader": "arrow.image_header",  # The form of an encoded image, as stored
    "is_turned": "arrow.image_header",  # True if a height and width are those of the turned picture
    "orientation_of": "arrow.image_header",  # 1 to 8, as the EXIF data or XMP states
    "pillow": "arrow.image_header",  # The module PIL.Image
    "png_chunks": "arrow.image_header",  # The type of each chunk of a PNG, and where type and content begin and end
    "tiff_form": "arrow.image_header",  # The height, width, channels and bits that the header of a TIFF states
    "BatchSource": "arrow.input.batch_source",  # A schema and its batches, which can be iterated over once
    "open_input": "arrow.input.batch_source",  # Open any tabular input
    "use_plain_layouts": "arrow.input.batch_source",  # Replace views and run-ends of data by plain layouts
    "check_name": "arrow.input.from_arrays",  # Refuse a column's name that has a lone surrogate
    "fields_of": "arrow.input.from_arrays",  # The columns of a structured array
    "map_types": "arrow.input.from_arrays",  # The types of the columns that have maps, by name, with floats of 64 bits
    "refuse_duckdb_types": "arrow.input.from_arrays",  # Refuse columns of DuckDB whose values would change in Arrow
    "table_of_rows": "arrow.input.from_arrays",  # The columns of dicts, one for each row
    "record_dimension": "arrow.input.from_xarray",  # The dimension whose positions are the rows
    "row_batches": "arrow.input.row_batches",  # Group rows, given with their sizes in bytes, into batches
    "cast_columns": "arrow.input.schema_cast",  # The columns of a batch, which follows `row_base` rows
    "native": "arrow.input.tensor_cast",  # The array in this machine's byte order, the only one that Arrow supports
    "tensor_cast": "arrow.input.tensor_cast",  # A column of the field `source` cast to the type of `target`
    "encoded_fields": "arrow.messages.encode_messages",  # The fields that the columns of a schema become
    "MessageEncoder": "arrow.messages.encode_messages",  # Encodes rows as framed messages
    "PayloadEncoder": "arrow.messages.encode_messages",  # Frames the values of a binary column
    "AnyBatchBuilder": "arrow.messages.message_batches",  # A builder of batches of Examples or of other messages
    "MessageBatchBuilder": "arrow.messages.message_batches",  # Makes batches of the one column with payloads
    "message_tree": "arrow.messages.message_tree",  # The tree of a message type
    "MessageField": "arrow.messages.message_tree",  # A field of a message
    "HEADINGS": "arrow.output.column_statistics",  # Headings of a table of column statistics
    "ColumnAccumulator": "arrow.output.column_statistics",  # Accumulates the arrays of a column and returns its
    "ColumnSummary": "arrow.output.column_statistics",  # One column of a description
    "is_ordered": "arrow.output.column_statistics",  # True if values are ordered like numbers
    "lengths_of": "arrow.output.column_statistics",  # Count the characters of texts, or the bytes of bytes
    "temporal_value": "arrow.output.column_statistics",  # Convert an integer from `times_to_integers` back to a date
    "times_to_integers": "arrow.output.column_statistics",  # View dates and times as integers
    "PayloadDicts": "arrow.output.python_rows",  # Dicts of records that are read as bytes
    "RecordDicts": "arrow.output.python_rows",  # Makes dicts of records, by the plan of the decoder
    "bytes_rows": "arrow.output.to_numpy",  # The rows of arrays of bytes, as objects
    "declared_shape": "arrow.output.to_numpy",  # The shape that a schema declares for the values of each list
    "Dense": "arrow.output.to_numpy",  # Rows of one shape
    "is_plain": "arrow.output.to_numpy",  # True if an array is of one dimension, contiguous, and of numbers
    "join_rows": "arrow.output.to_numpy",  # Join the rows of several arrays of one column, in memory of the caller
    "joined_objects": "arrow.output.to_numpy",  # An object array of the rows of several
    "leaf_arrays": "arrow.output.to_numpy",  # The arrays of `leaf_fields`
    "leaf_fields": "arrow.output.to_numpy",  # The columns that arrays are made of
    "memory_errors": "arrow.output.to_numpy",  # Raise MemoryError where pyarrow fails to make an object of a value
    "missing_step": "arrow.output.to_numpy",  # The first row whose list lacks a value for which NumPy has no None
    "number_dtype": "arrow.output.to_numpy",  # The dtype of integers and floats of a common width
    "number_items": "arrow.output.to_numpy",  # The numbers of an array as a view
    "Ragged": "arrow.output.to_numpy",  # Rows of values, one after another
    "Rows": "arrow.output.to_numpy",  # Rows of a column as arrays: dense, or ragged
    "rows_of_equal_tensors": "arrow.output.to_numpy",  # The rows of lists of tensors whose shapes vary by their type
    "shape_of_all": "arrow.output.to_numpy",  # The shape of every row of several that is not missing
    "to_rows": "arrow.output.to_numpy",  # The rows of a column
    "to_pandas": "arrow.output.to_pandas",  # The DataFrame of a table
    "BYTES_KEY": "arrow.output.to_python",  # bytes are an object with this key alone
    "cell": "arrow.output.to_python",  # The value of one row
    "json_line": "arrow.output.to_python",  # A record as JSON, in one line
    "json_lines": "arrow.output.to_python",  # The rows of a table, each as `json_line`, column by column
    "json_value": "arrow.output.to_python",  # Convert a value to what JSON supports
    "python_columns": "arrow.output.to_python",  # The rows of each column as Python values
    "python_values": "arrow.output.to_python",  # All values of an array, as ``to_pylist`` returns them if it can
    "record_dicts": "arrow.output.to_python",  # The rows of a table as dicts
    "rows_of": "arrow.output.to_python",  # The rows of a column as Python values
    "from_plain_form": "arrow.plain_forms",  # The array of a type whose `plain_form` an array has
    "plain_form": "arrow.plain_forms",  # The type of lists and structs in which there is no map, union or interval
    "to_plain_form": "arrow.plain_forms",  # The values of an array as its `plain_form`
    "COLOUR_TYPES": "arrow.raw_images",  # of PNG, by number of channels: grey, grey and alpha, RGB, RGBA
    "encode_png": "arrow.raw_images",  # A PNG of uint8 or uint16 pixels [height, width, channels] of 1 to 4 channels
    "RawImages": "arrow.raw_images",  # A column of raw pixels, or of lists of them
    "faults_of_lists": "arrow.row_fault",  # Turn the index of a RowFault, which counts values
    "first_refused": "arrow.row_fault",  # The position of the first refused value of `count` values
    "RowFault": "arrow.row_fault",  # A row whose value does not fit its column, or the array for the column
    "array_to_tensors": "arrow.tensor_values",  # The bytes of a column's tensors in their logical order
    "cells_to_column": "arrow.tensor_values",  # A column of the arrays of a sequence
    "column_to_cells": "arrow.tensor_values",  # The tensors of a column as an object array of ndarrays, None where null
    "column_to_tensors": "arrow.tensor_values",  # `array_to_tensors` for an array and its field
    "element_of_dtype": "arrow.tensor_values",  # The element of a NumPy dtype
    "flat_values": "arrow.tensor_values",  # All values of a column of tensors without nulls
    "plain_array": "arrow.tensor_values",  # Values of an array of one axis
    "shape_of_cells": "arrow.tensor_values",  # The dtype of a sequence of arrays, and their shape
    "shapes_of_counts": "arrow.tensor_values",  # The shapes of tensors with these numbers of values
    "tensors_to_cells": "arrow.tensor_values",  # The tensors one by one
    "tensors_to_column": "arrow.tensor_values",  # A column of all rows from the bytes of its tensors
    "tensors_to_values": "arrow.tensor_values",  # The values of all tensors
    "TensorValues": "arrow.tensor_values",  # The tensors of a column, one after another, null rows left out
    "type_literals": "arrow.type_literals",  # Give literals the type of the column that they are compared with
    "RECORD": "schema.array_attributes",  # the dimension of the rows, in what is made of columns
    "TYPE": "schema.array_attributes",  # attribute of times that NumPy has as another type
    "add_attributes": "schema.array_attributes",  # Add attributes to the metadata of columns
    "add_dimensions": "schema.array_attributes",  # Add the names of dimensions to the metadata of columns
    "attributes_of": "schema.array_attributes",  # The attributes of a column
    "dimension_names": "schema.array_attributes",  # The names of a variable's dimensions without that of the rows
    "dimensions_of": "schema.array_attributes",  # The names of a column's dimensions, without that of the rows
    "is_other_time": "schema.array_attributes",  # True if NumPy has values of this type as those of another one
    "declaration": "schema.column_advice",  # How to declare the type of a column
    "BY_WIRE": "schema.column_features",  # of a declared tensor: RAW where a record has bytes
    "ENCODING_KEY": "schema.column_features",  # field metadata; absent means LIST
    "FEATURE_LIST": "schema.column_features",  # The part of a SequenceExample with steps
    "LIST": "schema.column_features",  # the values themselves
    "RAW": "schema.column_features",  # the values' bytes, C order, little-endian, with companion features
    "encoding_of": "schema.column_features",  # The encoding in a field's metadata, or None
    "fixed_part": "schema.column_features",  # The product of the known dimensions
    "leaves": "schema.column_features",  # List the features that a column is written as
    "nested_handed": "schema.column_features",  # The type of a declared nested column in a result
    "set_encoding": "schema.column_features",  # Set the encoding in the metadata of a field
    "shown_type": "schema.column_features",  # The name of a column's type for display
    "stored_as": "schema.column_features",  # The type in which a record has the numbers of a column
    "apply_overrides": "schema.column_selection",  # Replace columns of an inferred schema
    "as_stored": "schema.column_selection",  # The declared schema
    "entries_of": "schema.column_selection",  # The entries of ``columns=``
    "is_glob": "schema.column_selection",  # True if an entry is a pattern
    "matches": "schema.column_selection",  # True if the whole name fits the pattern
    "matches_any": "schema.column_selection",  # True if an entry is among the names
    "overridden_by": "schema.column_selection",  # True if a key of `overrides`, as those of `apply_overrides`
    "Projection": "schema.column_selection",  # The ``columns=`` of a call
    "refuse_other_features": "schema.column_selection",  # Raise SchemaError where no feature of a stored column is
    "VALUES": "schema.composite",  # each bytes value is a value; arrow.decode.composite_decoder has the other encodings
    "Composite": "schema.composite",  # How a column is built
    "composite_of": "schema.composite",  # How a field's column is built, None where it is one plain feature
    "embedded_content": "schema.embedded",  # The content of the embedded schema of a framed record
    "embedded_dictionaries": "schema.embedded",  # The categories, by feature name, for which `pack` has room
    "embedded_schema": "schema.embedded",  # Make the schema to embed in a file
    "EmbeddedSchema": "schema.embedded",  # An embedded schema, of one file or united from several files
    "EmbeddedSchemaUnreadable": "schema.embedded",  # The field's content is not a schema that this version reads
    "equal_types": "schema.embedded",  # True if two schemas have the same names in the same order, types
    "field_bytes": "schema.embedded",  # The field as it is stored in a record
    "pack": "schema.embedded",  # The content of the field for a schema from `embedded_schema`
    "unpack": "schema.embedded",  # Read the content of the field
    "BOXES_KEY": "schema.field",  # of TFDS: the order and unit of a box's numbers, if that is not "REL_YXYX"
    "COMPOSITE_KEY": "schema.field",  # JSON: a `schema.composite.Composite`
    "CONTEXT": "schema.field",  # The part of a SequenceExample without steps
    "CONVERSION_ERRORS": "schema.field",  # Exceptions of a conversion that does not fit
    "IMAGE_KEY": "schema.field",  # JSON: the arguments of tfrecord_io.image
    "PARTS": "schema.field",  # The parts of a SequenceExample
    "RAW_IMAGE_KEY": "schema.field",  # JSON: those for raw pixels, in a column of tensors
    "check_names": "schema.field",  # See `check_columns`
    "Field": "schema.field",  # A column and the feature that it is read from
    "as_field": "schema.field_makers",  # The field of a column
    "is_call": "schema.field_makers",  # True if a type is the text of a call of `tensor` or `image`
    "list_": "schema.field_makers",  # A column of lists
    "scalar": "schema.field_makers",  # A column of single values
    "sequence": "schema.field_makers",  # A column read from a feature list of a SequenceExample
    "tensor": "schema.field_makers",  # A column of arrays
    "from_json": "schema.formats.text_forms",  # Fields and metadata of the schema in a document
    "to_json": "schema.formats.text_forms",  # The document of a schema with these fields and metadata
    "DTYPES": "schema.formats.tf_features",  # TensorFlow's dtypes by name
    "KINDS": "schema.formats.tf_features",  # the dtypes that TensorFlow parses
    "as_description": "schema.formats.tf_features",  # A feature description in the classes of this module
    "Feature": "schema.formats.tf_features",  # Any feature description of TensorFlow
    "FixedLenFeature": "schema.formats.tf_features",  # A feature with a fixed number of values
    "FixedLenSequenceFeature": "schema.formats.tf_features",  # A feature with any number of values
    "Partition": "schema.formats.tf_features",  # A partition of a ragged feature
    "RaggedFeature": "schema.formats.tf_features",  # A feature with any number of values, in rows
    "RowLengths": "schema.formats.tf_features",  # Rows by their numbers of values
    "RowLimits": "schema.formats.tf_features",  # Rows by the offset at which each ends
    "RowSplits": "schema.formats.tf_features",  # Rows by the offset at which each begins, and the end of the last one
    "RowStarts": "schema.formats.tf_features",  # Rows by the offset at which each begins
    "SparseFeature": "schema.formats.tf_features",  # A sparse tensor whose indices and values are features of their own
    "UniformRowLength": "schema.formats.tf_features",  # Rows of one length
    "ValueRowIds": "schema.formats.tf_features",  # Rows by the row number of each value
    "VarLenFeature": "schema.formats.tf_features",  # A feature with any number of values
    "FEATURES": "schema.formats.tfds_info",  # The file in which TFDS describes features
    "FILE_NAME": "schema.formats.tfds_info",  # where dataset_info.json has no filepathTemplate
    "INFO": "schema.formats.tfds_info",  # The file in which TFDS describes a dataset
    "check_length": "schema.formats.tfds_info",  # Raise CorruptRecordError if a file has another number of records
    "dataset_directory": "schema.formats.tfds_info",  # The directory of a dataset
    "read_info": "schema.formats.tfds_info",  # The ``dataset_info.json`` of a directory
    "shard_lengths": "schema.formats.tfds_info",  # The number of records of each file by its path in the directory
    "TfdsInfo": "schema.formats.tfds_info",  # Facts of ``dataset_info.json``
    "TfdsSplit": "schema.formats.tfds_info",  # A split
    "CHANNELS": "schema.image_form",  # Channels of an image by mode
    "CHW": "schema.image_form",  # The layout with channels first
    "CONTAIN": "schema.image_form",  # Resizing that keeps the whole image
    "CROP": "schema.image_form",  # Resizing that crops
    "HWC": "schema.image_form",  # orders of the axes of raw pixels
    "INDEX": "schema.image_form",  # the numbers of a palette's colours
    "MODE_OF": "schema.image_form",  # Pillow's mode by number of channels
    "NEAREST": "schema.image_form",  # Interpolation by the nearest pixel
    "PAD": "schema.image_form",  # Resizing that pads
    "ImageForm": "schema.image_form",  # The arguments of `tfrecord_io.image` about pixels
    "is_image": "schema.image_form",  # True if `tfrecord_io.image` made the field, or its items, for encoded images
    "RawImageForm": "schema.image_form",  # The arguments of `tfrecord_io.image` about raw pixels
    "Evidence": "schema.inferred_schema",  # Evidence of records about one feature
    "InferredSchema": "schema.inferred_schema",  # A `Schema` and the evidence for it
    "arrow_type": "schema.inferred_type",  # The Arrow type of a column for which `seen` was observed
    "contradiction": "schema.inferred_type",  # The error for a column that differs between two records
    "join": "schema.inferred_type",  # The least observation that covers both
    "join_columns": "schema.inferred_type",  # Join column by column, where a missing column is null
    "KindCount": "schema.inferred_type",  # How many records have values of one feature type in a feature
    "Observation": "schema.inferred_type",  # Evidence of some records about one column
    "RecordRef": "schema.inferred_type",  # A record of a dataset, as evidence for an observation
    "common_field": "schema.merged_schema",  # The field for a column that is `a` in one file and `b` in another
    "fill_in_types": "schema.merged_schema",  # Give the columns without a type the type that they have in another
    "lacks_only_values": "schema.merged_schema",  # True if a type is `type_`, or would be if its columns
    "lacks_type": "schema.merged_schema",  # True if a column of this type is null throughout
    "merge": "schema.merged_schema",  # The schema that covers both
    "prefer_read_files": "schema.merged_schema",  # Resolve conflicts between the types of all files by the types of
    "copy_index": "schema.pandas_metadata",  # Copy the index of `known` into the metadata
    "drop_index": "schema.pandas_metadata",  # Remove the index from the metadata
    "drop_range_index": "schema.pandas_metadata",  # Remove a RangeIndex from the metadata
    "feature_descriptions": "schema.pandas_metadata",  # The features that Hugging Face datasets describe in a
    "stored_index": "schema.pandas_metadata",  # Names of the columns of a schema that are levels of the frame's index
    "Schema": "schema.schema",  # The columns to read, in order, with their types
    "SparseColumn": "schema.sparse_column",  # A sparse tensor for each row
    "JSON": "schema.tensor_types",  # The format of JSON lines
    "NESTED": "schema.tensor_types",  # The name of the encoding of nested types
    "TENSOR_ENCODINGS": "schema.tensor_types",  # The table of encodings of tensors
    "axes_of": "schema.tensor_types",  # The axes of a shape with free dimensions
    "check_column_encodings": "schema.tensor_types",  # Raise ValueError for an unknown or adaptive encoding in a
    "dtype_metadata": "schema.tensor_types",  # The field metadata from which `element_of` reads the dtype
    "element_and_shape": "schema.tensor_types",  # The dtype and the shape of a column of tensors, as NumPy has them
    "encoding_rules": "schema.tensor_types",  # Find an encoding by its name
    "image_encodings": "schema.tensor_types",  # Columns that ``column_encoding=`` stores as images
    "is_any_tensor": "schema.tensor_types",  # True if `type_` is one of the two types of tensors
    "is_composed": "schema.tensor_types",  # True if an encoding makes several plain columns of a column, or JSON
    "is_fixed_shape_tensor": "schema.tensor_types",  # True if `type_` is Arrow's type of tensors of one shape
    "is_variable_shape_tensor": "schema.tensor_types",  # True if `type_` is Arrow's type of tensors of shapes that vary
    "permutation_of": "schema.tensor_types",  # The stored axis of each logical axis
    "refuse_unknown_dtypes": "schema.tensor_types",  # Raise SchemaError for a column of an `unknown_dtype`
    "register_variable_shape_tensor": "schema.tensor_types",  # Register the type of tensors whose shapes vary
    "Shape": "schema.tensor_types",  # A shape of a tensor, None for a free dimension
    "tensor_field": "schema.tensor_types",  # The field of a column of tensors
    "tensor_type": "schema.tensor_types",  # The type of a column of tensors of this shape
    "tensor_value_type": "schema.tensor_types",  # The type of one value of a type of tensors
    "unknown_dtype": "schema.tensor_types",  # The dtype of a column of which a library that takes Arrow's storage
    "written_encodings": "schema.tensor_types",  # The names of the encodings that columns can be written with
    "as_arrow_type": "schema.type_names",  # The Arrow type for a type, its name
    "logical_name": "schema.type_names",  # The name of a field's type
    "short_type_name": "schema.type_names",  # The name of a type in tables and reports
    "summary_of": "schema.type_names",  # The first columns of a schema and their types as `shown_type` has them
    "type_name": "schema.type_names",  # The name of an Arrow type, as `type_from_name` parses it
    "has_dictionary": "schema.types",  # True if a dictionary is in a type, whose order counts if `ordered`
    "hashable": "schema.types",  # The values as a type that Arrow (26.0) has a hash of, none of them changed
    "is_bytes": "schema.types",  # True if values of `type` are bytes of any number, with offsets of 32 or 64 bits
    "is_list_like": "schema.types",  # True if `type` is a list of any layout
    "is_number": "schema.types",  # True if values of `type` are plain NumPy numbers, so that "raw" applies
    "is_text": "schema.types",  # True if values of `type` are text, with offsets of 32 or 64 bits
    "is_text_or_bytes": "schema.types",  # True if values of `type` are text or bytes, of any layout
    "kind_of": "schema.types",  # The feature type of one value of `type`, which is neither a list nor a struct
    "map_fields": "schema.types",  # Change the fields of a list, struct, map or union
    "plain_kind": "schema.types",  # The feature type of the most common types
    "relist": "schema.types",  # The list type `outer` with other values
    "replace_fields": "schema.types",  # Replace fields of a schema, by number
    "types_within": "schema.types",  # The type and all those nested in it
    "uncommon": "schema.types",  # The positions of the columns whose types are not of the most common ones
    "UnsupportedType": "schema.types",  # A type that cannot be stored in a TFRecord
    "value_type": "schema.types",  # The type of one value
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
