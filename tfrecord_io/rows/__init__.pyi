# Written by docs/reference/stub.py.

from tfrecord_io.rows.arrays.array_options import RepresentationOptions as RepresentationOptions
from tfrecord_io.rows.arrays.image_columns import ImageColumns as ImageColumns
from tfrecord_io.rows.arrays.list_layout import ListLengths as ListLengths
from tfrecord_io.rows.arrays.model_inputs import ModelInputs as ModelInputs
from tfrecord_io.rows.arrays.read_arrays import scan_arrays as scan_arrays
from tfrecord_io.rows.arrays.row_lookup import RowLookup as RowLookup
from tfrecord_io.rows.arrays.row_lookup import row_lookup as row_lookup
from tfrecord_io.rows.arrays.rows_by_number import ArraysByNumber as ArraysByNumber
from tfrecord_io.rows.arrays.stacked_or_ragged import ColumnRepresentation as ColumnRepresentation
from tfrecord_io.rows.arrays.stacked_or_ragged import TableRepresentation as TableRepresentation
from tfrecord_io.rows.training.batches_by_number import BatchesByNumber as BatchesByNumber
from tfrecord_io.rows.training.batches_by_number import open_by_number as open_by_number
from tfrecord_io.rows.training.iter_options import IterOptions as IterOptions
from tfrecord_io.rows.training.iterator import ArrayIterator as ArrayIterator
from tfrecord_io.rows.training.iterator import iterate as iterate
from tfrecord_io.rows.training.iterator_state import workers_in_state as workers_in_state
from tfrecord_io.rows.training.mixed_rows import BalancedEpochs as BalancedEpochs
from tfrecord_io.rows.training.mixed_rows import MixedEpochs as MixedEpochs
from tfrecord_io.rows.training.mixed_rows import SequenceEpochs as SequenceEpochs
from tfrecord_io.rows.training.mixture import Mixture as Mixture
from tfrecord_io.rows.training.row_source import RowSource as RowSource
from tfrecord_io.rows.training.scan_row_source import source_of as source_of
from tfrecord_io.rows.training.windows import Form as Form
from tfrecord_io.rows.training.windows import Windows as Windows

__all__ = [
    "ArrayIterator",
    "ArraysByNumber",
    "BalancedEpochs",
    "BatchesByNumber",
    "ColumnRepresentation",
    "Form",
    "ImageColumns",
    "IterOptions",
    "ListLengths",
    "MixedEpochs",
    "Mixture",
    "ModelInputs",
    "RepresentationOptions",
    "RowLookup",
    "RowSource",
    "SequenceEpochs",
    "TableRepresentation",
    "Windows",
    "iterate",
    "open_by_number",
    "row_lookup",
    "scan_arrays",
    "source_of",
    "workers_in_state",
]
