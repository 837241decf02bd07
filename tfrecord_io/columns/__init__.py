"""Columns in features, in Arrow and in pandas: types, encodings, conditions.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names

_HOMES = {
    "ArrayBuffers": "arrow.buffers",  # The buffers of an Arrow array as NumPy arrays
    "arrow_file": "arrow.buffers",  # A copy of `data`, in memory of Arrow, as a file for its parsers
    "BatchStream": "arrow.buffers",  # Base class of streams of record batches, which can be read once
    "empty_batch": "arrow.buffers",  # A batch without rows
    "int64_array": "arrow.buffers",  # An int64 array over `values`, without the import of pandas by ``pa.array``
    "offsets_of": "arrow.buffers",  # Offsets from 0 on of runs of these lengths
    "runs_within": "arrow.buffers",  # Ranges of consecutive rows whose `sizes` are at most `most` in all
    "selectable": "arrow.buffers",  # Prepare rows for ``take`` and ``filter``
    "value_bytes": "arrow.buffers",  # The bytes of an array's values
    "plain_layout": "arrow.casts",  # The array without views and run-ends, for which Arrow (26.0) has few functions
    "BatchBuilder": "arrow.decode.batch_builder",  # Makes record batches of one schema
    "plan_columns": "arrow.decode.decode_plan",  # Compile a declared schema
    "reads_companions": "arrow.decode.decode_plan",  # True if the companions are read too
    "SeenColumns": "arrow.decode.inferred_column",  # Evidence of the columns of chunks, added in the order of reading
    "Observations": "arrow.decode.observations",  # What records show of each feature, by name
    "OpenShapes": "arrow.decode.resolve_shapes",  # Columns to which the first records give a type
    "Rounding": "arrow.encode.lossless_values",  # Counts, over all batches of a write
    "EncodedPiece": "arrow.encode.slice_encoder",  # A piece of frames with its memory
    "PieceMemory": "arrow.encode.slice_encoder",  # Memory for pieces, used again and again
    "SliceEncoder": "arrow.encode.slice_encoder",  # Splits batches of one schema into tasks that encode pieces
    "DecodedCells": "arrow.encodings.tensor_encoding",  # Cells of a column, decoded
    "TensorEncoding": "arrow.encodings.tensor_encoding",  # A tensor encoding
    "cast_comparable_columns": "arrow.evaluate_condition",  # Turn float16, decimal32 and decimal64 into wider types
    "evaluate_simple": "arrow.evaluate_condition",  # The values of a simple condition, None of others
    "ImageHeader": "arrow.image_header",  # The form of an encoded image, as stored
    "pillow": "arrow.image_header",  # The module PIL.Image
    "BatchSource": "arrow.input.batch_source",  # A schema and its batches, which can be iterated over once
    "open_input": "arrow.input.batch_source",  # Open any tabular input
    "Conforming": "arrow.input.conforming",  # Conforms input to a schema, without loss
    "refuse_duckdb_types": "arrow.input.from_arrays",  # Refuse columns of DuckDB whose values would change in Arrow
    "structured_columns": "arrow.input.from_arrays",  # The columns of a structured array
    "table_of_rows": "arrow.input.from_arrays",  # The columns of dicts, one for each row
    "record_dimension": "arrow.input.from_xarray",  # The dimension whose positions are the rows
    "row_batches": "arrow.input.row_batches",  # Group rows, given with their sizes in bytes, into batches
    "MessageBatchBuilder": "arrow.messages.message_batches",  # Makes batches of the one column with payloads
    "ColumnAccumulator": "arrow.output.column_statistics",  # Accumulates the arrays of a column and returns its
    "ColumnSummary": "arrow.output.column_statistics",  # One column of a description
    "RecordDicts": "arrow.output.python_rows",  # Makes dicts of records, by the plan of the decoder
    "Dense": "arrow.output.to_numpy",  # Rows of one shape
    "Ragged": "arrow.output.to_numpy",  # Rows of values, one after another
    "TensorLists": "arrow.output.to_numpy",  # Rows of lists of tensors of several shapes
    "to_pandas": "arrow.output.to_pandas",  # The DataFrame of a table
    "JsonRows": "arrow.output.to_python",  # The rows of a table as lines of JSON
    "json_value": "arrow.output.to_python",  # Convert a value to what JSON supports
    "python_values": "arrow.output.to_python",  # All values of an array for Python, none of them changed
    "PixelReader": "arrow.image_decoder",  # Decodes images of a column, or a small copy of one
    "RawImages": "arrow.raw_images",  # A column of raw pixels, or of lists of them
    "RowHashes": "row_hashes",  # Hashes of rows, of 128 bits each
    "RowFault": "arrow.row_fault",  # A row whose value does not fit its column, or the array for the column
    "plain_array": "arrow.plain_values",  # Values of an array of one axis
    "TensorValues": "arrow.tensor_values",  # The tensors of a column, one after another, null rows left out
    "type_literals": "arrow.type_literals",  # Give literals the type of the column that they are compared with
    "Column": "column",  # A column of Arrow, or a type of its values: what its type and its metadata say
    "Overrides": "schema.column_selection",  # The ``schema_overrides=`` of a call
    "as_stored": "schema.column_selection",  # The declared schema
    "has_open_shapes": "schema.column_selection",  # True if the shape of a declared column is stored in other features
    "NamePattern": "schema.column_selection",  # An entry of ``columns=``: a name, or a glob
    "Projection": "schema.column_selection",  # The ``columns=`` of a call
    "Composite": "schema.composite",  # How a column is built
    "EmbeddedSchema": "schema.embedded",  # An embedded schema, of one file or united from several files
    "CONVERSION_ERRORS": "schema.field",  # Exceptions of a conversion that does not fit
    "FeatureBatch": "feature_values",  # Features of serialized records as arrays of values
    "FeatureValues": "feature_values",  # Values of one feature in all records
    "Field": "schema.field",  # A column and the feature that it is read from
    "TfdsInfo": "schema.formats.tfds_info",  # Facts of ``dataset_info.json``
    "ImageForm": "schema.image_form",  # Form that the decoded images of a column get: mode, size, fit
    "RawImageForm": "schema.image_form",  # Form of raw pixels: layout, mode, size
    "InferredSchema": "schema.inferred_schema",  # A `Schema` and the evidence for it
    "KindCount": "schema.inferred_type",  # How many records have values of one feature type in a feature
    "Observation": "schema.inferred_type",  # Evidence of some records about one column
    "fill_in_types": "schema.merged_schema",  # Give the columns without a type the type that they have in another
    "feature_descriptions": "schema.pandas_metadata",  # The features that Hugging Face datasets describe in a schema
    "Schema": "schema.schema",  # The columns to read, in order, with their types
    "SparseColumn": "schema.sparse_column",  # A sparse tensor for each row
    "uncommon_columns": "schema.types",  # The positions of the columns whose types are not the most common ones
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
