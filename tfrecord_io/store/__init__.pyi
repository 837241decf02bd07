# Written by docs/reference/stub.py.

from tfrecord_io.store.copies.copy_files import CopyReport as CopyReport
from tfrecord_io.store.copies.copy_files import FileCopyOptions as FileCopyOptions
from tfrecord_io.store.filesystem.interface import Entry as Entry
from tfrecord_io.store.filesystem.interface import FileSystem as FileSystem
from tfrecord_io.store.filesystem.locate import Location as Location
from tfrecord_io.store.operating_systems import named_temporary_folder as named_temporary_folder
from tfrecord_io.store.paths.column_folder import ColumnFolder as ColumnFolder
from tfrecord_io.store.paths.file_names import FileName as FileName
from tfrecord_io.store.paths.file_names import Kind as Kind
from tfrecord_io.store.paths.file_names import ShardName as ShardName
from tfrecord_io.store.paths.file_names import ShardSpec as ShardSpec
from tfrecord_io.store.paths.files_below import Folder as Folder
from tfrecord_io.store.paths.listing import Listing as Listing
from tfrecord_io.store.paths.manifest import Manifest as Manifest
from tfrecord_io.store.paths.packed_sources import PackedSources as PackedSources
from tfrecord_io.store.paths.plain_files import PathMatch as PathMatch
from tfrecord_io.store.paths.resolve import resolve_inputs as resolve_inputs
from tfrecord_io.store.paths.resolve_output import Output as Output
from tfrecord_io.store.paths.sidecars import find_sidecars as find_sidecars
from tfrecord_io.store.paths.small_files import Directory as Directory
from tfrecord_io.store.read.block_reader import Block as Block
from tfrecord_io.store.read.block_reader import BlockReader as BlockReader
from tfrecord_io.store.read.blocks_ahead import ReadAhead as ReadAhead
from tfrecord_io.store.read.file_object import RawFile as RawFile
from tfrecord_io.store.read.files_ahead import SourcePrefetcher as SourcePrefetcher
from tfrecord_io.store.read.plain_file import OpenPlainFile as OpenPlainFile
from tfrecord_io.store.read.random_access_file import RandomAccessFile as RandomAccessFile
from tfrecord_io.store.read.source import Origin as Origin
from tfrecord_io.store.read.source import RecordRef as RecordRef
from tfrecord_io.store.read.source import Source as Source
from tfrecord_io.store.read.source import Sources as Sources
from tfrecord_io.store.write.atomic import open_output as open_output
from tfrecord_io.store.write.cleaning import clean as clean
from tfrecord_io.store.write.new_folder import NewFolder as NewFolder
from tfrecord_io.store.write.output_file import OutputFile as OutputFile
from tfrecord_io.store.write.publication import Publication as Publication
from tfrecord_io.store.write.replacement import ReplaceableDataset as ReplaceableDataset
from tfrecord_io.store.write.resume_journal import ResumeJournal as ResumeJournal
from tfrecord_io.store.write.sharded_dataset_distributed import Attempt as Attempt
from tfrecord_io.store.write.sharded_dataset_distributed import DistributedTarget as DistributedTarget

__all__ = [
    "Attempt",
    "Block",
    "BlockReader",
    "ColumnFolder",
    "CopyReport",
    "Directory",
    "DistributedTarget",
    "Entry",
    "FileCopyOptions",
    "FileName",
    "FileSystem",
    "Folder",
    "Kind",
    "Listing",
    "Location",
    "Manifest",
    "NewFolder",
    "OpenPlainFile",
    "Origin",
    "Output",
    "OutputFile",
    "PackedSources",
    "PathMatch",
    "Publication",
    "RandomAccessFile",
    "RawFile",
    "ReadAhead",
    "RecordRef",
    "ReplaceableDataset",
    "ResumeJournal",
    "ShardName",
    "ShardSpec",
    "Source",
    "SourcePrefetcher",
    "Sources",
    "clean",
    "find_sidecars",
    "named_temporary_folder",
    "open_output",
    "resolve_inputs",
]
