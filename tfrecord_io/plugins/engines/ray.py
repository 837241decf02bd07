"""Ray Data: a dataset with a read task for each piece of the files, and a shard for each write task.

The datasource and the datasink are subclasses of Ray's classes, which are made when Ray is first used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.errors import EncodeError
from tfrecord_io.kit import (
    Column,
    Condition,
    DistributedWriter,
    LateTypes,
    Scan,
    WriteOptions,
    WrittenPart,
    condition_of,
    empty_batch,
    needs,
)
from tfrecord_io.typing import OpenedDataset, OutputPath, WriteReport

if TYPE_CHECKING:
    import ray.data as rd
else:
    rd = LateTypes("ray.data")


def to_ray(dataset: OpenedDataset, *, override_num_blocks: int | None = None) -> rd.Dataset:
    """A dataset of Ray, whose tasks read the pieces on any machine of the cluster.

    >>> import ray, tfrecord_io as tfr
    >>> _ = ray.init(num_cpus=1, include_dashboard=False, ignore_reinit_error=True)
    >>> _ = tfr.write_tfrecord({"label": [3, 1, 3]}, "letters.tfrecord")
    >>> tfr.dataset("letters.tfrecord").to_ray().sum("label")
    7

    Parameters
    ----------
    override_num_blocks : int, optional
        At most so many read tasks, of about the same number of bytes; by default, Ray chooses.

    Returns
    -------
    ray.data.Dataset
        Of Arrow blocks. ``select_columns`` and ``filter(expr=…)`` are pushed down: only the columns that are needed
        are decoded. Ray keeps the order of the records if
        ``ray.data.DataContext.get_current().execution_options.preserve_order`` is True.

    Raises
    ------
    MissingDependencyError
        ray is not installed.
    ValueError
        The dataset has an `offset`, a `limit` or ``on_error="stop"``: such a read cannot be split.
    SchemaError
        A column has a dtype of ml_dtypes, arrays of text, or times in units that Arrow does not have.
    """
    scan = Scan.of(dataset)
    with needs("ray"):
        import ray.data
    Column.check_dtypes(scan.schema, "Ray")
    scan.split(1)  # raises if it cannot be split
    return ray.data.read_datasource(_datasource_class()(scan), override_num_blocks=override_num_blocks)


def write_frame(dataset: rd.Dataset, path: OutputPath, options: WriteOptions) -> WriteReport:
    """Write a dataset of Ray, a shard for each write task, on the machines that have the blocks.

    The tasks write under hidden names; this process publishes the shards when all are written. ``repartition`` sets
    the number of shards. A task that Ray runs again, because a worker was lost, is in the dataset once.

    Examples
    --------
    >>> import ray, tfrecord_io as tfr
    >>> _ = ray.init(num_cpus=1, include_dashboard=False, ignore_reinit_error=True)
    >>> report = tfr.write_tfrecord(ray.data.range(100), "numbers/")
    >>> report.records, tfr.read_table("numbers/")["id"].to_numpy().sum()
    (100, np.int64(4950))
    """
    sink_class = _datasink_class()
    with DistributedWriter.begin(path, options) as writer:
        if writer.is_repeated:
            return writer.commit(())
        sink = sink_class(writer)
        dataset.write_datasink(sink)
    report: WriteReport = sink.report
    return report


# ---- reading


@cache
def _datasource_class() -> type[Any]:
    with needs("ray"):
        from ray.data.block import BlockMetadata
        from ray.data.datasource import Datasource, ReadTask

    class TFRecordDatasource(Datasource):  # type: ignore[misc]
        """The pieces of a query as read tasks; Ray sets the projection and the predicate before it asks for them."""

        def __init__(self, scan: Scan) -> None:
            super().__init__()
            self._scan = scan
            self._projection_map: dict[str, str] | None = None

        def get_name(self) -> str:
            return "TFRecord"

        def supports_projection_pushdown(self) -> bool:
            return True

        def supports_predicate_pushdown(self) -> bool:
            return True

        def estimate_inmemory_data_size(self) -> int | None:
            return self._scan.bytes

        def get_read_tasks(
            self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
        ) -> list[ReadTask]:
            scan = self._scan
            if self._predicate_expr is not None:
                floats = {(field.name,) for field in scan.schema if field.type == pa.float32()}
                scan = scan.filter(_widen_floats(condition_of(self._predicate_expr.to_pyarrow()), floats))
            names = self._projection_map or {}
            if self._projection_map is not None:
                scan = scan.only(list(names))
            # In older versions of Ray, such as 2.54, a projection also renames columns.
            schema = pa.schema([field.with_name(names.get(field.name, field.name)) for field in scan.schema])
            return [
                ReadTask(
                    partial(_blocks, limited, schema),
                    BlockMetadata(
                        num_rows=_stated_rows(limited), size_bytes=part.bytes, input_files=part.files, exec_stats=None
                    ),
                    schema=schema,
                    per_task_row_limit=per_task_row_limit,
                )
                for part in scan.tasks(parallelism)
                for limited in [part if per_task_row_limit is None else part.limit_rows(per_task_row_limit)]
            ]

    return TFRecordDatasource


def _stated_rows(scan: Scan) -> int | None:
    """The number of rows of a part, by which Ray counts without reading: of whole files, as the manifest states it.

    None of other parts, and where damaged records may be left out.
    """
    return scan.rows if scan.options.damage.counts_all else None


def _widen_floats(part: Condition, floats: Set[tuple[str, ...]]) -> Condition:
    """The condition with float32 columns, `floats`, as float64 where Ray compares them as such: there, none is 0.1."""
    import pyarrow.compute as pc

    arguments = [_widen_floats(argument, floats) for argument in part.arguments]
    literals = [argument.value.type for argument in arguments if argument.value is not None]
    if part.is_comparison and pa.float64() in literals:
        double = condition_of(pc.field("").cast(pa.float64()))
        arguments = [
            double.replace_arguments([argument]) if argument.path in floats else argument for argument in arguments
        ]
    return part.replace_arguments(arguments)


def _blocks(scan: Scan, schema: pa.Schema) -> Iterator[pa.Table]:
    """The blocks of a read task; at least one, so that the columns are known.

    `schema` has the names of the columns in Ray, and not what pandas stored: Ray would restore an index in each block.
    """
    empty = True
    with scan.open() as batches:
        for batch in batches:
            empty = False
            renamed = pa.Table.from_batches([batch]).rename_columns(schema.names)
            # Of a block without columns, Ray counts the rows of a column of this name, which no user sees.
            yield renamed.cast(schema) if batch.num_columns else pa.table({"__bsp_stub": pa.nulls(batch.num_rows)})
    if empty:
        yield pa.Table.from_batches([empty_batch(schema)])


# ---- writing


@cache
def _datasink_class() -> type[Any]:
    with needs("ray"):
        from ray.data.datasource import Datasink

    class TFRecordDatasink(Datasink[WrittenPart]):  # type: ignore[misc]
        """Stages a shard in each write task, and publishes those that Ray reports as written."""

        def __init__(self, writer: DistributedWriter) -> None:
            self._writer = writer
            self.report: WriteReport | None = None

        def get_name(self) -> str:
            return "TFRecord"

        def write(self, blocks: Iterable[Any], ctx: Any) -> WrittenPart:
            return self._writer.write_part(ctx.task_idx, map(_columns, blocks), finds_types=True)

        def on_write_complete(self, write_result: Any) -> None:
            self.report = self._writer.commit(write_result.write_returns)

        def on_write_failed(self, error: Exception) -> None:
            self._writer.abort()

        def __reduce__(self) -> tuple[Any, ...]:
            return _make_datasink, (self._writer,)

    return TFRecordDatasink


def _make_datasink(writer: DistributedWriter) -> Any:
    """Unpickle a datasink, whose class is defined once Ray is imported."""
    return _datasink_class()(writer)


def _columns(block: Any) -> Any:
    """A block with NumPy arrays instead of Ray's own tensor types."""
    if not isinstance(block, pa.Table):
        return block
    extension_columns = {field.name for field in block.schema if _extension_name(field.type).startswith("ray.")}
    if not extension_columns:
        return block
    from ray.data.block import BlockAccessor

    for name in extension_columns:
        if "object" in _extension_name(block.schema.field(name).type):
            reason = "Ray stores these values as pickled Python objects, which a TFRecord cannot hold"
            raise EncodeError(reason, feature=name, hint="map them to numbers, text, bytes or arrays")
    arrays = BlockAccessor.for_block(block.select(sorted(extension_columns))).to_numpy()
    return {name: arrays[name] if name in extension_columns else block[name] for name in block.column_names}


def _extension_name(type: pa.DataType) -> str:
    return type.extension_name if isinstance(type, pa.BaseExtensionType) else ""
