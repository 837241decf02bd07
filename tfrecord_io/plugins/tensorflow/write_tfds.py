"""Write a dataset as TFDS (tensorflow_datasets) does: shards of splits, ``features.json``, ``dataset_info.json``."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io import write_tfrecord
from tfrecord_io.base import ExportOptions, StorageOptions
from tfrecord_io.columns import TfdsInfo
from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import (
    WriteOptions,
    check_choice,
    check_integer,
    check_keywords,
    empty_batch,
    open_input,
    open_output,
    printable,
)
from tfrecord_io.plugins.tensorflow.copied_tfds_features import SourceFeatures
from tfrecord_io.plugins.tensorflow.tfds import label_names, label_text, leaves_of, read_leaves
from tfrecord_io.plugins.tensorflow.tfds_columns import Json, TfdsColumns
from tfrecord_io.read import CallSource
from tfrecord_io.store import Directory, Location, Source
from tfrecord_io.typing import (
    FileMode,
    FilesLike,
    Float64,
    Path,
    ProgressLike,
    SchemaLike,
    StorageLike,
    TableLike,
    WriteReport,
)

_VERSION = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SPLIT = re.compile(r"\w[\w-]*")


@check_keywords
def write_tfds(
    data: TableLike,
    path: Path,
    *,
    split: str = "train",
    name: str | None = None,
    shards: int = 1,
    images: Sequence[str] | Mapping[str, str | None] = (),
    class_names: Mapping[str, Sequence[str]] | None = None,
    prefix: str | None = None,
    mode: FileMode | None = None,
    schema: SchemaLike | None = None,
    float64: Float64 | None = None,
    nan_to_null: bool = True,
    threads: int | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike = False,
) -> WriteReport:
    """Write a table as a split of a dataset of TFDS, which ``tfds.builder_from_directory(path)`` reads.

    >>> import tfrecord_io as tfr
    >>> labels = {"label": ["cat", "dog"]}
    >>> _ = tfr.formats.write_tfds(
    ...     {"n": [1, 2, 3], "label": [0, 1, 0]}, "out/mine/1.0.0", class_names=labels
    ... )
    >>> _ = tfr.formats.write_tfds(
    ...     {"n": [4], "label": [1]}, "out/mine/1.0.0", split="test", class_names=labels
    ... )
    >>> tfr.read_table(tfr.dataset("out/mine", split="train[1:]+test"))["n"].to_pylist()
    [2, 3, 4]

    Parameters
    ----------
    data : DataFrame, Table, Reader, Dataset or any other table
        As for `write_tfrecord`. Of a Reader or Dataset of a dataset of TFDS, columns keep the features that they have
        there, and the names of classes. A name ``a/b`` is that of a feature ``b`` in a dict ``a``; structs are dicts,
        too. Lists are sequences, also inside lists; tensors and lists of a fixed length are tensors, categories are
        class labels, text is text. Numbers and text may be missing in some rows: their features are then optional
        (texts are bytes), and TFDS reads its own value for None.
    path : str or PathLike
        The directory of a version, ``data_dir/name/1.0.0``. Splits that are there stay; their features have to be the
        same.
    split : str, default "train"
        The name of the split.
    name : str, optional
        Of the dataset; by default that of the directory above the version. If it is another one, that directory is a
        configuration.
    shards : int, default 1
        The number of files, at most 99,999.
    images : sequence of str, or dict of str to {"RGB", "L", "RGBA", None}
        Columns of encoded images, which TFDS decodes to pixels of a mode. By default they have the channels of all
        images of the column; grey beside colour is colour. Pixels are uint16 if those of the PNGs are. The package
        pillow reads the headers.
    class_names : dict of str to sequence of str, optional
        The names of the classes of columns with their numbers; −1 and missing values are not a class.
    prefix : str, optional
        The columns ``<prefix>/…`` are steps of episodes, lists with a value for each step: a nested dataset, as in RLDS
        with ``prefix="steps"``.
    mode : {"error", "overwrite"}, optional
        "overwrite" replaces a split of this name, which otherwise is an error.
    schema, float64, nan_to_null, threads, storage_options, progress
        As in `write_tfrecord`.

    Returns
    -------
    WriteReport

    Raises
    ------
    SchemaError
        TFDS has no feature for a column, the other splits have other features, or `images` or `class_names` name a
        column of another type.
    EncodeError
        A value is missing where TFDS can store none: in a list, an image, a tensor, a bool or an unsigned number. Or a
        column with missing numbers has the least one of its type, by which TFDS marks them. Or TFDS cannot decode an
        image to what the others are, or replaces the numbers of its palette by colours. Or columns of steps have
        different lengths in an episode.
    FileExistsError
        The split exists.
    ValueError
        `path`, ``split`` or `name` is not a name that TFDS has.
    """
    check_choice("mode", mode, (None, *get_args(FileMode)))
    options = WriteOptions(
        shards=shards,
        mode=mode,
        schema=schema,
        float64=float64,
        nan_to_null=nan_to_null,
        threads=threads,
        storage_options=storage_options,
        progress=progress,
        embed_schema=False,
        compression=None,
    )
    if options.float64 == "raw":
        raise ValueError("float64='raw' cannot be used: TFDS stores it as float32")
    shards = check_integer("shards", shards, 1, 99_999)  # beyond, TFDS gives an index six digits
    directory = _Version(path, options.storage, name)
    if not _SPLIT.fullmatch(split) or split == "all":
        raise ValueError(f"split={split!r}: expected the name of a split, such as 'train'")
    if directory.info is not None and split in directory.info.splits and mode != "overwrite":
        raise FileExistsError(17, f"the split '{split}' exists; mode='overwrite' replaces it", directory.path)
    source = open_input(data, index=False, nan_to_null=options.nan_to_null).with_plain_layouts()
    modes = images if isinstance(images, Mapping) else dict.fromkeys(images)
    described = SourceFeatures.from_data(data)
    columns = TfdsColumns(source.schema, prefix, images=modes, class_names=class_names or {}, source=described)
    directory.take_labels(columns)
    if described is not None:
        directory.take_source(described, columns)
    rows = _StoredColumns(columns, source.schema, source.batches)
    target = f"{directory.path}/{directory.name}-{split}.tfrecord@{shards}"
    directory.check_features(columns, split)
    with Location.of(target, options.storage).new_parent():
        report = write_tfrecord(
            pa.RecordBatchReader.from_batches(rows.schema, rows.batches()), target, **options.changes
        )
        directory.publish(columns, split, report, rows.statistics())
    return replace(report, path=directory.path, columns=tuple(source.schema.names))


def convert_to_tfds(
    source: FilesLike,
    target: Path,
    *,
    target_split: str = "train",
    shards: int = 1,
    mode: FileMode | None = None,
    float64: Float64 | None = None,
    **keywords: Any,
) -> WriteReport:
    """Write TFRecord files as a split of a dataset of TFDS; the other keywords are those of `open_reader`."""
    options = CallSource(source).options(ExportOptions, **keywords)
    written: dict[str, Any] = {"shards": shards, "mode": mode, "float64": float64}
    written["storage_options"] = options.target.given
    with CallSource(source).open(options) as reader:
        return write_tfds(reader, target, split=target_split, **written)


class _Version:
    """The directory of a version of a dataset, and what is there."""

    def __init__(self, path: Path, storage: StorageOptions, name: str | None) -> None:
        self.path = os.fspath(path).rstrip("/")
        *_, above, version = ["", "", *self.path.replace(os.sep, "/").split("/")]
        if not _VERSION.fullmatch(version):
            raise ValueError(f"'{printable(self.path)}': the last directory is a version, as in 'out/mine/1.0.0'")
        self.name, self.version, self._storage = name or above, version, storage
        self._config = above if name not in (None, above) else None
        if not _NAME.fullmatch(self.name):
            expected = "expected letters, digits and underscores, beginning with a letter; pass name="
            raise ValueError(f"'{printable(self.name)}' is not a name of a dataset of TFDS: {expected}")
        self._folder = Directory(self.path, storage)
        self._copied: dict[str, bytes] = {}  # the names of classes of a dataset that is copied
        self._about: Json = {}
        self.info: TfdsInfo | None = TfdsInfo.read(self._folder)
        text = None if self.info is None else self._folder.read(Source.TFDS_FEATURES)
        self._features = None if text is None else {leaf.name: leaf for leaf in read_leaves(self._folder, text)}
        if self.info is not None and self.info.document.get("name") != self.name:
            got = printable(str(self.info.document.get("name")), 60)
            raise SchemaError(f"it describes the dataset '{got}'", path=self.info.path, expected=self.name, got=got)

    def take_labels(self, columns: TfdsColumns) -> None:
        """Let the classes of the splits that are there come first."""
        for number, leaf in enumerate(columns.leaves):
            source_feature = None if leaf.names is None or self._features is None else self._features.get(leaf.name)
            names = None if source_feature is None else label_names(self._folder, source_feature)
            if names is not None:
                if t.is_integer(leaf.type) and list(leaf.names or ()) != names:
                    raise SchemaError("other splits have other class names", feature=leaf.name, expected=names)
                columns.leaves[number] = replace(leaf, names={name: at for at, name in enumerate(names)})

    def take_source(self, source: SourceFeatures, columns: TfdsColumns) -> None:
        """Take over what is in the files of the dataset that is copied."""
        named = [source.leaves.get(leaf.name) for leaf in columns.leaves if leaf.names is None]
        names = [f"{leaf.labels}.labels.txt" for leaf in named if leaf is not None and leaf.labels is not None]
        contents = {name: source.folder.read(name) for name in names}
        self._copied = {name: content for name, content in contents.items() if content is not None}
        for name, content in self._copied.items():
            if self._folder.read(name) not in (None, content):
                raise SchemaError("other splits have other class names", path=self._folder.display_path(name))
        self._about = source.about(leaf.name for leaf in columns.leaves)

    def check_features(self, columns: TfdsColumns, split: str) -> None:
        """Make features optional that other splits have as optional; SchemaError if the features differ."""
        other_splits = [] if self.info is None else [name for name in self.info.splits if name != split]
        if not other_splits or self._features is None:
            return
        old, new = self._features, {leaf.name: leaf for leaf in leaves_of(columns.features())}
        for name in {**old, **new}:
            then, now = (
                replace(features[name], is_text=False, optional=False) if name in features else None
                for features in (old, new)
            )
            if then and now and then.pixels and now.pixels:
                now = replace(now, pixels=then.pixels)  # compared image by image
            if then != now:
                reason = f"the splits {', '.join(other_splits)} have another feature here"
                raise SchemaError(
                    reason, feature=name, path=self._folder.display_path(Source.TFDS_FEATURES), expected=then, got=now
                )
        for leaf in columns.leaves:
            leaf.optional |= old[leaf.name].optional
            if leaf.image is not None:
                leaf.image.of_other_splits = old[leaf.name].pixels

    def publish(self, columns: TfdsColumns, split: str, report: WriteReport, statistics: Json) -> None:
        """Write the files of the dataset's description; the file that names the split is last."""
        features = columns.features()
        stems = {leaf.name: leaf.labels for leaf in leaves_of(features)}
        for leaf in columns.leaves:
            if leaf.names is not None:
                self._write(f"{stems[leaf.name]}.labels.txt", "".join(f"{name}\n" for name in leaf.names))
        for name, content in self._copied.items():
            self._write(name, label_text(content, name))
        self._write(Source.TFDS_FEATURES, json.dumps(features, indent=4, sort_keys=True))
        old = self._about if self.info is None else dict(self.info.document)
        described = {
            "filepathTemplate": TfdsInfo.FILE_NAME,
            "name": split,
            "numBytes": str(sum(file.bytes for file in report.files)),
            "shardLengths": [str(file.records) for file in report.files],
            "statistics": statistics,
        }
        splits = [old_split for old_split in old.get("splits", []) if old_split["name"] != split]
        document = {"fileFormat": "tfrecord", "moduleName": "tfrecord_io", **old}
        document |= {"name": self.name, "version": self.version, "splits": [*splits, described]}
        if self._config is not None:
            document["configName"] = self._config
        self._write(Source.TFDS_INFO, json.dumps(document, indent=2, sort_keys=True))

    def _write(self, name: str, text: str) -> None:
        with open_output(f"{self.path}/{name}", self._storage) as file:
            file.write(text.encode())


class _StoredColumns:
    """The stored columns of a stream, and the statistics of what went through."""

    def __init__(self, columns: TfdsColumns, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self._columns, self._batches = columns, batches
        self._rows = 0
        self._numbers: dict[str, _NumberStatistics] = {}  # by column
        self.schema = columns.batch(empty_batch(schema), 0).schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            stored = self._columns.batch(batch, self._rows)
            self._rows += len(batch)
            for name, column in zip(stored.schema.names, stored.columns, strict=True):
                values = column.flatten() if t.is_list(column.type) else column
                is_number = t.is_integer(values.type) or t.is_floating(values.type) or t.is_boolean(values.type)
                if is_number and values.null_count < len(values):
                    self._numbers.setdefault(name, _NumberStatistics()).add(values)
            yield stored

    def statistics(self) -> Json:
        """A message DatasetFeatureStatistics as JSON: the number of rows, and the extent and mean of numbers."""
        features = [
            {"name": name, "numStats": numbers.message(), "type": "FLOAT"}
            for name, numbers in sorted(self._numbers.items())
        ]
        return {"numExamples": str(self._rows), "features": features}


@dataclass(slots=True)
class _NumberStatistics:
    """The extent and mean of the numbers of a column."""

    count: int = 0  # of values that are not missing
    total: float = 0.0
    least: float = math.inf
    greatest: float = -math.inf

    def add(self, values: pa.Array) -> None:
        """Count the values of a batch, one of which at least is not missing."""
        import pyarrow.compute as pc

        numbers = values.cast(pa.float64(), safe=False)
        extent = pc.min_max(numbers).as_py()
        self.count += len(values) - values.null_count
        self.total += pc.sum(numbers).as_py()
        self.least, self.greatest = min(self.least, extent["min"]), max(self.greatest, extent["max"])

    def message(self) -> Json:
        """A message NumericStatistics as JSON, which has no infinite numbers."""
        numbers = {"max": self.greatest, "mean": self.total / self.count, "min": self.least}
        finite = {key: value for key, value in numbers.items() if math.isfinite(value)}
        return {"commonStats": {"numNonMissing": str(self.count)}, **finite}
