# Written by docs/reference/stub.py.

from tfrecord_io.base import OPERATORS as OPERATORS
from tfrecord_io.base import Adapter as Adapter
from tfrecord_io.base import Condition as Condition
from tfrecord_io.base import LateTypes as LateTypes
from tfrecord_io.base import Operator as Operator
from tfrecord_io.base import ReadOptions as ReadOptions
from tfrecord_io.base import WriteOptions as WriteOptions
from tfrecord_io.base import check_integer as check_integer
from tfrecord_io.base import check_keywords as check_keywords
from tfrecord_io.bytes import Dtype as Dtype
from tfrecord_io.columns import RowFault as RowFault
from tfrecord_io.columns import empty_batch as empty_batch
from tfrecord_io.columns import to_pandas as to_pandas
from tfrecord_io.errors import needs as needs
from tfrecord_io.errors import printable as printable
from tfrecord_io.errors import warn as warn
from tfrecord_io.kit.column_facade import Column as Column
from tfrecord_io.kit.scan_facade import LiveScan as LiveScan
from tfrecord_io.kit.scan_facade import Scan as Scan
from tfrecord_io.kit.scan_facade import condition_of as condition_of
from tfrecord_io.write import DistributedWriter as DistributedWriter
from tfrecord_io.write import OpenPart as OpenPart
from tfrecord_io.write import WrittenPart as WrittenPart

__all__ = [
    "Adapter",
    "Column",
    "Condition",
    "DistributedWriter",
    "Dtype",
    "LateTypes",
    "LiveScan",
    "OPERATORS",
    "OpenPart",
    "Operator",
    "ReadOptions",
    "RowFault",
    "Scan",
    "WriteOptions",
    "WrittenPart",
    "check_integer",
    "check_keywords",
    "condition_of",
    "empty_batch",
    "needs",
    "printable",
    "to_pandas",
    "warn",
]
