# Written by docs/reference/stub.py.

from tfrecord_io import errors as errors
from tfrecord_io import formats as formats
from tfrecord_io import io as io
from tfrecord_io import train as train
from tfrecord_io import typing as typing
from tfrecord_io.apps.adapters.duckdb import register_duckdb as register_duckdb
from tfrecord_io.apps.adapters.pandas import register_pandas as register_pandas
from tfrecord_io.apps.adapters.polars import scan_polars as scan_polars
from tfrecord_io.apps.api import infer_schema as infer_schema
from tfrecord_io.apps.api import open_reader as open_reader
from tfrecord_io.apps.api import open_writer as open_writer
from tfrecord_io.apps.api import read_table as read_table
from tfrecord_io.apps.api import read_tfrecord as read_tfrecord
from tfrecord_io.apps.api import write_tfrecord as write_tfrecord
from tfrecord_io.apps.derived_datasets import mix as mix
from tfrecord_io.apps.derived_datasets import windows as windows
from tfrecord_io.apps.file_formats.convert import convert as convert
from tfrecord_io.apps.follow import follow as follow
from tfrecord_io.apps.lazy_dataset import Dataset as Dataset
from tfrecord_io.apps.lazy_dataset import dataset as dataset
from tfrecord_io.base.options.limits import Limits as Limits
from tfrecord_io.bytes.versions import show_versions as show_versions
from tfrecord_io.columns.example import decode_example as decode_example
from tfrecord_io.columns.example import encode_example as encode_example
from tfrecord_io.columns.schema.field_makers import image as image
from tfrecord_io.columns.schema.field_makers import list_ as list_
from tfrecord_io.columns.schema.field_makers import scalar as scalar
from tfrecord_io.columns.schema.field_makers import sequence as sequence
from tfrecord_io.columns.schema.field_makers import tensor as tensor
from tfrecord_io.columns.schema.schema import Schema as Schema
from tfrecord_io.errors import TFRecordError as TFRecordError
from tfrecord_io.plugins.browse.browse_server import browse as browse
from tfrecord_io.plugins.engines.spark import register_spark as register_spark
from tfrecord_io.plugins.report.dataset_report import report as report
from tfrecord_io.read.counting import count as count
from tfrecord_io.read.describe import describe as describe
from tfrecord_io.read.diff import diff as diff
from tfrecord_io.read.exploding import explode as explode
from tfrecord_io.read.file_indexes import build_index as build_index
from tfrecord_io.read.file_metadata import read_metadata as read_metadata
from tfrecord_io.read.join import join as join
from tfrecord_io.read.random_access import open_random as open_random
from tfrecord_io.read.record_reader import RecordReader as RecordReader
from tfrecord_io.read.verifying.verify import verify as verify
from tfrecord_io.rows.arrays.read_arrays import read_arrays as read_arrays
from tfrecord_io.rows.training.iterator import iter_arrays as iter_arrays
from tfrecord_io.write.adopting import adopt as adopt
from tfrecord_io.write.compacting import compact as compact
from tfrecord_io.write.copying import copy as copy
from tfrecord_io.write.deleting import delete as delete
from tfrecord_io.write.rearranging.dedupe import dedupe as dedupe
from tfrecord_io.write.rearranging.shuffle import sample as sample
from tfrecord_io.write.rearranging.shuffle import shuffle as shuffle
from tfrecord_io.write.rearranging.split import merge as merge
from tfrecord_io.write.rearranging.split import split as split
from tfrecord_io.write.record_writer import RecordWriter as RecordWriter
from tfrecord_io.write.salvaging import salvage as salvage

__version__: str

__all__ = [
    "Dataset",
    "Limits",
    "RecordReader",
    "RecordWriter",
    "Schema",
    "TFRecordError",
    "adopt",
    "browse",
    "build_index",
    "compact",
    "convert",
    "copy",
    "count",
    "dataset",
    "decode_example",
    "dedupe",
    "delete",
    "describe",
    "diff",
    "encode_example",
    "explode",
    "follow",
    "image",
    "infer_schema",
    "iter_arrays",
    "join",
    "list_",
    "merge",
    "mix",
    "open_random",
    "open_reader",
    "open_writer",
    "read_arrays",
    "read_metadata",
    "read_table",
    "read_tfrecord",
    "register_duckdb",
    "register_pandas",
    "register_spark",
    "report",
    "salvage",
    "sample",
    "scalar",
    "scan_polars",
    "sequence",
    "show_versions",
    "shuffle",
    "split",
    "tensor",
    "verify",
    "windows",
    "write_tfrecord",
]
