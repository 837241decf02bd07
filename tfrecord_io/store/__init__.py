"""Names, listings, reads, atomic publication and copies of datasets. Knows no content of records.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names

_HOMES = {
    "CopyReport": "copies.copy_files",  # The result of `copy`
    "FileCopyOptions": "copies.copy_files",  # How files are copied
    "Entry": "filesystem.interface",  # An existing file or directory
    "FileSystem": "filesystem.interface",  # A filesystem
    "Location": "filesystem.locate",  # A file or directory, by its name in a filesystem
    "ColumnFolder": "paths.column_folder",  # A partition column and its value, as the name of a folder states them
    "Directory": "paths.small_files",  # A directory, on disk or behind a URL, whose small files are read whole
    "FileName": "paths.file_names",  # A file's name in its directory, with what the name says
    "Kind": "paths.file_names",  # What a file of a directory is, by its name
    "ShardName": "paths.file_names",  # The parts of a shard's file name
    "ShardSpec": "paths.file_names",  # A dataset's name, with its suffix, and the number of its shards, None for any
    "Folder": "paths.files_below",  # The files below a folder, those of a wanted kind apart
    "Listing": "paths.listing",  # What a directory has, or what matches a pattern
    "Manifest": "paths.manifest",  # The content of a manifest
    "PackedSources": "paths.packed_sources",  # Sources without the state of this process
    "PathMatch": "paths.plain_files",  # The files that a path means
    "resolve_inputs": "paths.resolve",  # Find the files that a path means, at least one
    "Output": "paths.resolve_output",  # Where a writer writes
    "find_sidecars": "paths.sidecars",  # For each file, its existing sidecar with the first of these suffixes
    "Block": "read.block_reader",  # A piece of a file
    "BlockReader": "read.block_reader",  # Cuts a stream into blocks
    "RawFile": "read.file_object",  # A raw file, which has only readinto, tell, seek and close, as a Python file object
    "SourcePrefetcher": "read.files_ahead",  # Iterate over sources in order, each with the data prefetched for it
    "RandomAccessFile": "read.random_access_file",  # A file to read at any offset, from several threads at a time
    "ReadAhead": "read.blocks_ahead",  # Cuts a stream into blocks as `tfrecord_io.store.read.block_reader.BlockReader`
    "Sources": "read.source",  # The files of a read, in order: as a sequence, and as a whole
    "OpenPlainFile": "read.plain_file",  # A descriptor of a plain file, read at any offset by several threads
    "Origin": "read.source",  # Where a record comes from
    "RecordRef": "read.source",  # A record of a dataset, as messages name it
    "Source": "read.source",  # A file or a part of one: path, size, version, and how it is opened
    "named_temporary_folder": "operating_systems",  # Name the folder of temporary files in errors about a full disk
    "open_output": "write.atomic",  # Open one file for writing
    "clean": "write.cleaning",  # Find what killed writers left behind, and remove it
    "NewFolder": "write.new_folder",  # A folder being written
    "OutputFile": "write.output_file",  # A file being written
    "Publication": "write.publication",  # A sharded dataset being written to a `Place`
    "ReplaceableDataset": "write.replacement",  # A dataset some of whose shards are to be replaced
    "ResumeJournal": "write.resume_journal",  # The journal of a dataset, and the descriptions of finished parts
    "DistributedTarget": "write.sharded_dataset_distributed",  # Where the tasks of one writing put their shards
    "Attempt": "write.sharded_dataset_distributed",  # The files of an attempt at a task
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
