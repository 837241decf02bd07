# Written by docs/reference/stub.py.

from tfrecord_io.base.background import BackgroundThread as BackgroundThread
from tfrecord_io.base.background import Flag as Flag
from tfrecord_io.base.background import Task as Task
from tfrecord_io.base.background import WorkerPool as WorkerPool
from tfrecord_io.base.background import ordered as ordered
from tfrecord_io.base.closing import Closing as Closing
from tfrecord_io.base.closing import ConsumedOnce as ConsumedOnce
from tfrecord_io.base.closing import NotCopied as NotCopied
from tfrecord_io.base.closing import Remark as Remark
from tfrecord_io.base.closing import Shared as Shared
from tfrecord_io.base.closing import cached_property as cached_property
from tfrecord_io.base.closing import quiet_at_exit as quiet_at_exit
from tfrecord_io.base.closing import undo_after as undo_after
from tfrecord_io.base.libraries import Adapter as Adapter
from tfrecord_io.base.libraries import AdapterMethod as AdapterMethod
from tfrecord_io.base.messages.caller_warnings import warn as warn
from tfrecord_io.base.messages.display import and_more as and_more
from tfrecord_io.base.messages.display import byte_size as byte_size
from tfrecord_io.base.messages.display import column_list as column_list
from tfrecord_io.base.messages.display import counted as counted
from tfrecord_io.base.messages.display import for_cli as for_cli
from tfrecord_io.base.messages.display import printable as printable
from tfrecord_io.base.messages.display import short as short
from tfrecord_io.base.messages.log import logger as logger
from tfrecord_io.base.messages.printed_results import Report as Report
from tfrecord_io.base.messages.printed_results import Summary as Summary
from tfrecord_io.base.messages.similar_names import did_you_mean as did_you_mean
from tfrecord_io.base.messages.url_secrets import hide_secrets as hide_secrets
from tfrecord_io.base.messages.url_secrets import secret_url as secret_url
from tfrecord_io.base.options.call_errors import check_keywords as check_keywords
from tfrecord_io.base.options.condition import Condition as Condition
from tfrecord_io.base.options.filters import condition_of as condition_of
from tfrecord_io.base.options.limits import Expansion as Expansion
from tfrecord_io.base.options.limits import Limits as Limits
from tfrecord_io.base.options.on_damage import OnDamage as OnDamage
from tfrecord_io.base.options.operators import Operator as Operator
from tfrecord_io.base.options.options_base import MIB as MIB
from tfrecord_io.base.options.options_base import Options as Options
from tfrecord_io.base.options.options_base import StorageOptions as StorageOptions
from tfrecord_io.base.options.options_base import TransferOptions as TransferOptions
from tfrecord_io.base.options.options_base import check_choice as check_choice
from tfrecord_io.base.options.options_base import check_integer as check_integer
from tfrecord_io.base.options.options_base import cpu_count as cpu_count
from tfrecord_io.base.options.other_names import OTHER_NAMES as OTHER_NAMES
from tfrecord_io.base.options.read import DatasetOptions as DatasetOptions
from tfrecord_io.base.options.read import FrameOptions as FrameOptions
from tfrecord_io.base.options.read import ReadOptions as ReadOptions
from tfrecord_io.base.options.read import ScanOptions as ScanOptions
from tfrecord_io.base.options.record_types import MessageType as MessageType
from tfrecord_io.base.options.selection import Selection as Selection
from tfrecord_io.base.options.transfer import CopyOptions as CopyOptions
from tfrecord_io.base.options.transfer import ExportOptions as ExportOptions
from tfrecord_io.base.options.tuned_limits import LIMITS as LIMITS
from tfrecord_io.base.options.write import WriteOptions as WriteOptions
from tfrecord_io.base.progress import ProgressMeter as ProgressMeter
from tfrecord_io.base.public_names import LateTypes as LateTypes
from tfrecord_io.base.registry import Point as Point
from tfrecord_io.base.registry import Registry as Registry
from tfrecord_io.base.registry import listed as listed
from tfrecord_io.base.registry import needs as needs

__all__ = [
    "Adapter",
    "AdapterMethod",
    "BackgroundThread",
    "Closing",
    "Condition",
    "ConsumedOnce",
    "CopyOptions",
    "DatasetOptions",
    "Expansion",
    "ExportOptions",
    "Flag",
    "FrameOptions",
    "LIMITS",
    "LateTypes",
    "Limits",
    "MIB",
    "MessageType",
    "NotCopied",
    "OTHER_NAMES",
    "OnDamage",
    "Operator",
    "Options",
    "Point",
    "ProgressMeter",
    "ReadOptions",
    "Registry",
    "Remark",
    "Report",
    "ScanOptions",
    "Selection",
    "Shared",
    "StorageOptions",
    "Summary",
    "Task",
    "TransferOptions",
    "WorkerPool",
    "WriteOptions",
    "and_more",
    "byte_size",
    "cached_property",
    "check_choice",
    "check_integer",
    "check_keywords",
    "column_list",
    "condition_of",
    "counted",
    "cpu_count",
    "did_you_mean",
    "for_cli",
    "hide_secrets",
    "listed",
    "logger",
    "needs",
    "ordered",
    "printable",
    "quiet_at_exit",
    "secret_url",
    "short",
    "undo_after",
    "warn",
]
