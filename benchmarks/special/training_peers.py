"""Libraries that make shuffled batches for training, each from files of its own format."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.special.training import TASKS, Batches
from benchmarks.workload_files import make
from benchmarks.workloads import Workload, kind_of


def samples(task: Batches, rows: int) -> Iterator[dict[str, Any]]:
    """Rows as the libraries are given them: Python's numbers and text, and arrays."""
    table = task.workload.table(rows)
    columns = [_values(table[name].combine_chunks(), task.tensors.get(name)) for name in table.column_names]
    for row in zip(*columns, strict=True):
        yield dict(zip(table.column_names, row, strict=True))


def _values(column: pa.Array, tensor: tuple[str, tuple[int, ...]] | None) -> Iterable[Any]:
    if tensor is not None:
        return (np.frombuffer(row, tensor[0]).reshape(tensor[1]) for row in column.to_pylist())
    if pa.types.is_list(column.type):
        return np.split(column.values.to_numpy(), column.offsets.to_numpy()[1:-1])
    return column.cast(pa.string()).to_pylist() if pa.types.is_binary(column.type) else column.to_pylist()


class Peer:
    """A library with files of its own."""

    name = suffix = ""
    share = 0.1
    settings: ClassVar[Any] = ((),)

    def __init__(self, workload: Workload) -> None:
        self.task = TASKS[workload.name]
        self.padded = self.task.padded
        self.rows = round(workload.rows * self.share)
        self.path = workload.path.with_suffix(self.suffix)
        make(self.path, self.write)

    def write(self, path: Path) -> None:
        """Write the rows."""
        raise NotImplementedError

    def batches(self, setting: Any) -> Iterable[dict[str, Any]]:
        """An epoch."""
        raise NotImplementedError

    def stacked(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """The arrays of a batch."""
        return {name: self._array(name, [row[name] for row in rows]) for name in rows[0]}

    def _array(self, name: str, values: Any) -> Any:
        if name not in self.padded:
            return np.array(values, object if isinstance(values[0], str) else None)
        array = np.zeros((len(values), max(map(len, values))), values[0].dtype)
        for row, own in zip(array, values, strict=True):
            row[: len(own)] = own
        return array

    def run(self, setting: Any) -> int:
        return sum(len(next(iter(batch.values()))) for batch in self.batches(setting))

    @staticmethod
    def count(result: int) -> int:
        return result


class TfData(Peer):
    """TFRecordDataset → shuffle → batch → parse_example, decode_raw, to_tensor → as_numpy_iterator."""

    name, suffix, share = "tf.data", ".tfrecord", 1.0
    settings = (("serial",), ("parallel",), ("serial", "prefetch"), ("parallel", "prefetch"))

    def __init__(self, workload: Workload) -> None:
        import tensorflow as tf

        super().__init__(workload)
        self.tf, self.features = tf, dict[str, Any]()
        dtypes = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}
        for column in workload.table(8).schema:
            dtype, fixed = dtypes[kind_of(column.type)], workload.fixed.get(column.name)
            is_padded, shape = column.name in self.padded, [] if fixed is None else [fixed]
            form = tf.io.RaggedFeature(dtype) if is_padded else tf.io.FixedLenFeature(shape, dtype)
            self.features[column.name] = form

    def _parse(self, records: Any) -> dict[str, Any]:
        parsed = self.tf.io.parse_example(records, self.features)
        for name, (dtype, shape) in self.task.tensors.items():
            parsed[name] = self.tf.reshape(self.tf.io.decode_raw(parsed[name], dtype), (-1, *shape))
        lengths = {f"{name}/length": parsed[name].row_lengths() for name in self.padded}
        return parsed | {name: parsed[name].to_tensor() for name in self.padded} | lengths

    def batches(self, setting: tuple[str, ...]) -> Iterable[dict[str, Any]]:
        records = self.tf.data.TFRecordDataset(str(self.path), buffer_size=8 << 20)
        batches = records.shuffle(self.task.buffer, seed=0).batch(self.task.size)
        batches = batches.map(self._parse, -1 if "parallel" in setting else None)
        return (batches.prefetch(-1) if "prefetch" in setting else batches).as_numpy_iterator()


class WebDataset(Peer):
    """A tar file, with an .npy file for each array and else a .json file for each row; a shuffle buffer."""

    name, suffix = "webdataset", ".tar"

    def write(self, path: Path) -> None:
        import webdataset

        with webdataset.TarWriter(str(path)) as writer:
            for number, row in enumerate(samples(self.task, self.rows)):
                arrays = {f"{name}.npy": value for name, value in row.items() if isinstance(value, np.ndarray)}
                writer.write({"__key__": f"{number:08}", **(arrays or {"json": row})})

    def batches(self, setting: Any) -> Iterable[dict[str, Any]]:
        import webdataset

        rows = webdataset.WebDataset(str(self.path), shardshuffle=False, seed=0)
        rows = rows.shuffle(self.task.buffer, initial=self.task.buffer).decode().map(self._row)
        return rows.batched(self.task.size, collation_fn=self.stacked)

    @staticmethod
    def _row(files: dict[str, Any]) -> dict[str, Any]:
        arrays = {name.removesuffix(".npy"): array for name, array in files.items() if name.endswith(".npy")}
        return arrays or files["json"]


class Grain(Peer):
    """ArrayRecord with pickled rows, read in a random order by some threads."""

    name, suffix = "Grain, ArrayRecord", ".array_record"
    settings = ((0,), (2,), (16,))

    def write(self, path: Path) -> None:
        from array_record.python.array_record_module import ArrayRecordWriter

        writer = ArrayRecordWriter(str(path), "group_size:1")
        for row in samples(self.task, self.rows):
            writer.write(pickle.dumps(row, 5))
        writer.close()

    def batches(self, setting: tuple[int]) -> Iterable[dict[str, Any]]:
        import grain

        source: Any = grain.sources.ArrayRecordDataSource(str(self.path))
        rows: Any = grain.MapDataset.source(source).seed(0).shuffle().map(pickle.loads)
        options = grain.ReadOptions(num_threads=setting[0], prefetch_buffer_size=16 * bool(setting[0]))
        return rows.to_iter_dataset(options).batch(self.task.size, batch_fn=self.stacked)  # type: ignore[no-any-return]


class HfDatasets(Peer):
    """An Arrow dataset, in a random order, or as a stream through a shuffle buffer."""

    name, suffix = "HF datasets", ".hf"
    settings = ("in a random order", "shuffle buffer")

    def write(self, path: Path) -> None:
        import datasets

        rows = list(samples(self.task, self.rows))
        columns: Any = {name: [row[name] for row in rows] for name in rows[0]}
        data = datasets.Dataset.from_dict(columns)
        shapes = {name: values[0].shape for name, values in columns.items() if name in self.task.tensors}
        for name, shape in shapes.items():
            dtype = self.task.tensors[name][0]
            is_cube = len(shape) == 3
            form = datasets.Array3D(shape, dtype) if is_cube else datasets.List(datasets.Value(dtype), shape[0])
            data = data.cast_column(name, form)
        data.save_to_disk(str(path))

    def batches(self, setting: str) -> Iterable[dict[str, Any]]:
        import datasets

        data: Any = datasets.load_from_disk(str(self.path))
        if setting == "shuffle buffer":
            shuffled = data.to_iterable_dataset().shuffle(seed=0, buffer_size=self.task.buffer)
        else:
            shuffled = data.shuffle(seed=0)
        for batch in shuffled.with_format("numpy").iter(self.task.size):
            yield batch | {name: self._array(name, batch[name]) for name in self.padded}


_NOT_USED = {
    **dict.fromkeys(("streaming.vision", "streaming.text", "transformers"), ()),
    "transformers.feature_extraction_utils": ("BatchFeature",),
    "transformers.tokenization_utils_base": ("BatchEncoding",),
}


class Streaming(Peer):
    """MDS shards, in the order of StreamingDataset, in a DataLoader without workers."""

    name, suffix = "mosaicml-streaming", ".mds"

    def __init__(self, workload: Workload) -> None:
        # Its datasets of images and texts, which are not used here, import torchvision, whose wheels need torch with
        # CUDA, and a version of transformers that HF datasets does not work with.
        for name, shown in _NOT_USED.items():
            sys.modules[name] = ModuleType(name)
            vars(sys.modules[name]).update({each: type(each, (), {}) for each in shown})
        super().__init__(workload)

    def write(self, path: Path) -> None:
        from streaming import MDSWriter

        kinds = {int: "int64", float: "float32", str: "str"}
        first = next(samples(self.task, 8))
        forms = {name: kinds.get(type(value)) or f"ndarray:{value.dtype}" for name, value in first.items()}
        with MDSWriter(out=str(path), columns=forms) as writer:
            for row in samples(self.task, self.rows):
                writer.write(row)

    def batches(self, setting: Any) -> Iterable[dict[str, Any]]:
        from streaming import StreamingDataset
        from torch.utils.data import DataLoader

        if not hasattr(self, "data"):
            size = self.task.size
            self.data = StreamingDataset(local=str(self.path), shuffle=True, shuffle_seed=0, batch_size=size)
        return DataLoader(self.data, self.task.size, collate_fn=self.stacked)
