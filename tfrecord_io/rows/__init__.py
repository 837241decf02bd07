"""Columns as arrays: batches, order, position.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names

_HOMES = {
    "RepresentationOptions": "arrays.array_options",  # Keywords of the representation of columns as arrays
    "ImageColumns": "arrays.image_columns",  # The columns of images in tables of a schema
    "ListLengths": "arrays.list_layout",  # Truncates and pads the lists of tables
    "ModelInputs": "arrays.model_inputs",  # Form of batches, which are dicts by column
    "scan_arrays": "arrays.read_arrays",  # All rows of a scan
    "ColumnRepresentation": "arrays.stacked_or_ragged",  # How one column is represented
    "TableRepresentation": "arrays.stacked_or_ragged",  # How the columns of a schema are represented
    "row_lookup": "arrays.row_lookup",  # Look up rows of a scan
    "RowLookup": "arrays.row_lookup",  # Rows by number
    "ArraysByNumber": "arrays.rows_by_number",  # Rows by number as arrays
    "BatchesByNumber": "training.batches_by_number",  # Batches of a source by number
    "open_by_number": "training.batches_by_number",  # Give access by number
    "IterOptions": "training.iter_options",  # Keywords of `tfrecord_io.iter_arrays`
    "workers_in_state": "training.iterator_state",  # Number of workers among which the rows were split when a state was
    "source_of": "training.scan_row_source",  # Rows of a dataset, a mixture or windows as a source for training
    "ArrayIterator": "training.iterator",  # Batches of arrays
    "iterate": "training.iterator",  # Iterate over a scan or another source
    "BalancedEpochs": "training.mixed_rows",  # Rows of every epoch of a balanced mixture
    "MixedEpochs": "training.mixed_rows",  # Rows of every epoch of a mixture whose parts are read side by side
    "SequenceEpochs": "training.mixed_rows",  # Rows of every epoch of a mixture, in the order of its choices
    "Mixture": "training.mixture",  # Datasets to mix, and how
    "RowSource": "training.row_source",  # Rows for training
    "Form": "training.windows",  # Form of windows
    "Windows": "training.windows",  # Windows of the episodes of a scan
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
