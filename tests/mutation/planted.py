"""Plants small faults, one at a time, in a copy of the tree, and prints which test finds each of them:

``python tests/mutation/planted.py [ROOM …] [--set 3] [--tier full] [--build]``. The tests near the fault run first,
then those of its folder and the laws. dev/reliability.md has the results. Faults in the kernel need ``--build``, which
compiles it in the copy with CMake and Ninja.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = Path("tfrecord_io")


class Fault(NamedTuple):
    """A slip in a file of the package: `old`, which the file has once, is replaced by `new`."""

    file: str
    what: str
    old: str
    new: str
    tests: tuple[str, ...] = ()  # instead of those that tests/near.py names


FAULTS = [
    Fault(
        "bytes/format/serialized_tensor.py",
        "a byte of 2 is accepted as a bool",
        "largest := int(values.view(np.uint8).max(initial=0))) > 1:",
        "largest := int(values.view(np.uint8).max(initial=0))) > 2:",
    ),
    Fault(
        "bytes/compression/framed.py",
        "of several skippable frames, only the first is skipped",
        "            begin += 8 + int.from_bytes(",
        "            begin = 8 + int.from_bytes(",
        ("tests/bytes/compression/test_compression.py", "tests/store/read/test_open_stream.py"),
    ),
    Fault(
        "read/chunks/filtering_decoder.py",
        "rows that are appended from the middle of a part have the numbers of its start",
        "kept[first:last] + (self.rows - begin)",
        "kept[first:last] + self.rows",
    ),
    Fault(
        "bytes/_native/column_append.cc",
        "the first missing values of a column that come in an appended part are not nulls",
        "  if (part.null_count > 0 && !has_validity) make_validity();\n  if (last > room_)",
        "  if (last > room_)",
        ("tests/bytes/engine/test_equivalence.py", "tests/bytes/engine", "tests/laws"),
    ),
    Fault(
        "bytes/_native/decoder_slow.cc",
        "an empty step of a feature list is dropped on the slow way",
        "    steps.fill_nulls(row + 1);",
        "    steps.fill_nulls(row);",
        ("tests/bytes/engine", "tests/laws"),
    ),
    Fault(
        "columns/schema/merged_schema.py",
        "a column is nullable only if it is in both files",
        "nullable = a.nullable or b.nullable",
        "nullable = a.nullable and b.nullable",
        ("tests/laws/test_united_schemas.py", "tests/read/chunks/test_embedded_schemas.py", "tests/columns/schema"),
    ),
    Fault(
        "columns/arrow/decode/inferred_column.py",
        "the first record of a kind is that of the last chunk",
        "first[kind] = earliest(first.get(kind), record_of(int(rows[0])))",
        "first[kind] = record_of(int(rows[0]))",
    ),
    Fault(
        "columns/arrow/encode/encode_plan.py",
        "the encoding of a column goes before that of its field",
        "encoding = encoding or encoding_of(field) or above",
        "encoding = encoding or above or encoding_of(field)",
        ("tests/columns/arrow/encode", "tests/laws"),
    ),
    Fault(
        "columns/arrow/input/schema_cast.py",
        "an infinity is refused where the schema declares a narrower float",
        "np.any(np.isinf(cast) & np.isfinite(exact))",
        "np.any(np.isinf(cast))",
    ),
    Fault(
        "columns/arrow/output/to_numpy.py",
        "rows that are a multiple long already are padded by one more",
        "length = -(-longest // multiple) * multiple if length is None else length",
        "length = (longest // multiple + 1) * multiple if length is None else length",
    ),
    Fault(
        "base/options/split_slices.py",
        "a slice without rows is refused",
        "        if first > last:",
        "        if first >= last:",
    ),
    Fault(
        "store/paths/file_names.py",
        "claims are recognized in the working directory only",
        'return cls(name, folder.rpartition("/")[2])',
        "return cls(name, folder)",
    ),
    Fault(
        "store/read/blocks_ahead.py",
        "a stream ends silently where an error follows a whole record",
        "0, last.ended, last.error)",
        "0, last.ended)",
    ),
    Fault(
        "store/write/old_files.py",
        "the indexes of shards in partition folders stay",
        "beside = self._beside.get(os.path.dirname(name), ())",
        'beside = self._beside.get("", ())',
        ("tests/write/test_partition_folders.py", "tests/store/write"),
    ),
    Fault(
        "read/exploding.py",
        "episodes are numbered from 0 again where a batch is cut",
        "begin=begin + first)",
        "begin=begin)",
    ),
    Fault(
        "read/index/column_search.py",
        "of the batches of a column index, all are compared with the first rows",
        "                passing[begin : begin + len(batch)] &= mask\n            begin += len(batch)",
        "                passing[begin : begin + len(batch)] &= mask",
    ),
    Fault(
        "write/sharded_sink.py",
        "rows of a partition folder are not kept in their order",
        'order = np.argsort(numbers, kind="stable")',
        "order = np.argsort(numbers)",
        ("tests/write/test_sharded_sink.py", "tests/write/test_partition_folders.py"),
    ),
    Fault(
        "rows/arrays/rows_by_number.py",
        "a limit counts from the first record instead of the offset",
        "stop = len(self._files) if selection.limit is None else selection.offset + selection.limit",
        "stop = len(self._files) if selection.limit is None else selection.limit",
    ),
    Fault(
        "rows/training/windows.py",
        "the first windows of a file are counted for the file before it",
        'ends.searchsorted(batch.numbers, side="right"), of_episodes)',
        'ends.searchsorted(batch.numbers, side="left"), of_episodes)',
    ),
    Fault(
        "read/join.py",
        "all batches that are searched together get the matches of the first",
        "rows, first = table_rows.slice(first, len(batch)), first + len(batch)",
        "rows = table_rows.slice(first, len(batch))",
    ),
    Fault(
        "apps/file_formats/tables/csv_files.py",
        "the record of a number that is too large is counted from the start of its block",
        "            row += len(batch)\n\n\ndef _texts",
        "            row = len(batch)\n\n\ndef _texts",
        ("tests/apps/file_formats/tables/test_csv_files.py", "tests/apps/file_formats/tables/test_untyped_columns.py"),
    ),
    Fault(
        "apps/adapters/duckdb.py",
        "NaN does not pass >= of DuckDB",
        "if operator is None or not operator.finds_nan:",
        'if operator is None or operator.symbol != ">":',
    ),
    Fault(
        "apps/cli/commands.py",
        "the last records that pass a filter are too few where they are of several batches",
        "while sum(map(len, batches[1:])) >= count and len(batches) > 1:",
        "while sum(map(len, batches)) >= count and len(batches) > 1:",
    ),
    Fault(
        "apps/views/number_statistics.py",
        "a value on an edge counts for the bin below it",
        'positions = np.searchsorted(kept, edges[1:-1], side="left")',
        'positions = np.searchsorted(kept, edges[1:-1], side="right")',
    ),
    Fault(
        "plugins/vision/yolo.py",
        "empty lines at the end of classes.txt are refused",
        "for line in text.rstrip().splitlines()]",
        "for line in text.splitlines()]",
    ),
    Fault(
        "plugins/tensorflow/event_files.py",
        "a run within a run has the name of the outer one",
        '    for file in event_files:\n        yield file.name.rpartition("/")[0] or "."',
        '    for file in event_files:\n        yield (file.name.partition("/")[0] if "/" in file.name else ".")',
    ),
    Fault(
        "plugins/engines/dask.py",
        "unsigned integers that Dask announces are written as floats where some are null",
        'type_.kind in "iu"}',
        'type_.kind in "i"}',
    ),
]

SECOND_FAULTS = [  # planted later, at random functions
    Fault(
        "base/options/split_slices.py",
        "the parts of a sum of ReadInstructions are in the other order",
        "Split(parse_split(value.left).parts + parse_split(value.right).parts)",
        "Split(parse_split(value.right).parts + parse_split(value.left).parts)",
    ),
    Fault(
        "bytes/compression/stream.py",
        "two bytes are enough to tell the magic bytes of a member",
        "while len(self._data) < 4 and",
        "while len(self._data) < 2 and",
    ),
    Fault(
        "read/chunks/filtering_decoder.py",
        "each step of a call may take as many records as the whole call",
        "max_records if max_records < 0 else max_records - records",
        "max_records",
    ),
    Fault(
        "store/write/publication.py",
        "a manifest forgets the source of a copied shard",
        "staged=staged, source=shard.source)",
        "staged=staged)",
    ),
    Fault(
        "store/paths/path_search.py",
        "hidden files are left out of a pattern that names them",
        "and (is_hidden or not file.is_hidden):",
        "and not file.is_hidden:",
    ),
    Fault(
        "store/paths/manifest.py",
        "the entries that a file was joined of are dropped when a manifest is read",
        "            joined=joined,\n",
        "",
    ),
    Fault(
        "columns/arrow/messages/encode_messages.py",
        "messages that are stored as JSON have a size where they are null",
        "np.uint8), lengths), mask)",
        "np.uint8), lengths), None)",
    ),
    Fault(
        "columns/schema/column_features.py",
        "the values of a map have no nulls of their own",
        "filled=filled and not at)",
        "filled=filled)",
    ),
    Fault(
        "columns/schema/pandas_metadata.py",
        "labels of columns replace what else is known of their level",
        '{**(level.get("metadata") or {}), _LABELS:',
        "{_LABELS:",
    ),
    Fault(
        "read/added_columns.py",
        "partition columns are added in the order of their names, not of the schema",
        "for index, name in sorted((schema.get_field_index(name), name) for name in added):",
        "for index, name in ((schema.get_field_index(name), name) for name in added):",
    ),
    Fault(
        "read/row_filter.py",
        "rows whose evaluation is an error do not pass",
        "may_pass = np.ones(rows, bool)",
        "may_pass = np.zeros(rows, bool)",
    ),
    Fault(
        "read/index/fingerprint.py",
        "a file that has grown fits its index",
        "if (chosen[-1][0] if chosen else 0) != file.size:",
        "if (chosen[-1][0] if chosen else 0) > file.size:",
    ),
    Fault(
        "write/sharded_sink.py",
        "the rows left in a shard are counted from the first row",
        "count = min(count, self.ranges[self.current].stop - self._row)",
        "count = min(count, self.ranges[self.current].stop)",
    ),
    Fault(
        "write/writer.py",
        "the rows of a second write are numbered from 0 in errors",
        "row_base=self._rows,",
        "row_base=0,",
    ),
    Fault(
        "rows/training/mixed_rows.py",
        "a mixture that goes on takes too many rows of a member",
        "self.take(min(begin - self.taken, _MOST_BLOCK))",
        "self.take(min(begin, _MOST_BLOCK))",
    ),
    Fault(
        "rows/training/batching.py",
        "the last batch ends behind the rows",
        "np.minimum(np.arange(size, count + size, size), count)",
        "np.arange(size, count + size, size)",
    ),
    Fault(
        "rows/arrays/stacked_or_ragged.py",
        "lists of tensors of several shapes are packed",
        "layout.packed and has_tensor_lists(field)",
        "False",
    ),
    Fault(
        "write/salvage_writer.py",
        "whether the first record was lost is forgotten at the next frames",
        "self.lost_first |= not",
        "self.lost_first = not",
    ),
    Fault(
        "read/diff.py",
        "rows of later batches are taken by their number in the file",
        "take(pa.array(numbers_of_batch - begin))",
        "take(pa.array(numbers_of_batch))",
    ),
    Fault(
        "write/copied_records.py",
        "features that end with their record are none",
        "ended[2 + position + values[ended] <= lengths[ended]]",
        "ended[2 + position + values[ended] < lengths[ended]]",
    ),
    Fault(
        "apps/adapters/polars.py",
        "a filter of polars excludes rows before a number of them is taken",
        "if predicate is not None and rows is None and scan.limit is None:",
        "if predicate is not None and scan.limit is None:",
    ),
    Fault(
        "apps/file_formats/array_files/zarr_folders.py",
        "the fill value of zarr replaces the one of the attributes",
        'attributes.setdefault("_FillValue", array.fill_value)',
        'attributes["_FillValue"] = array.fill_value',
    ),
    Fault(
        "read/example_lists/list_block.py",
        "the numbers of later pieces are those of the first piece",
        "number_starts = np.arange(begin, end) * width",
        "number_starts = np.arange(end - begin) * width",
    ),
    Fault(
        "apps/cli/common_options.py",
        "a dry run refuses a target that a glob may have expanded to",
        'may_be_source and mode is None and not options.get("dry_run") and',
        "may_be_source and mode is None and",
    ),
]

# Each in one of three functions of its folder that were drawn at random.
THIRD_FAULTS = [
    Fault(
        "apps/adapters/duckdb.py",
        "a common table of a query is visible to itself only, not to later ones",
        '        yield cte["value"], ctes\n        ctes |= {_fold_case(cte["key"])}',
        '        yield cte["value"], ctes | {_fold_case(cte["key"])}',
    ),
    Fault(
        "rows/arrays/array_budget.py",
        "the row of an error is counted from its batch",
        "        row += batch * self._batch_rows\n",
        "",
    ),
    Fault(
        "columns/arrow/nested_from_features.py",
        "the categories of nested values are taken as if no row were null",
        "first if valid is None else np.flatnonzero(valid)[first]",
        "first",
    ),
    Fault(
        "columns/arrow/encode/encode_plan.py",
        "the encoding of a column's metadata goes before that of the call",
        "form = asked.get(column.name) or encoding_of(column)",
        "form = encoding_of(column) or asked.get(column.name)",
    ),
    Fault(
        "columns/arrow/encodings/npy.py",
        "an error of a later cell names the first row",
        "_cell(values[offsets[row] : offsets[row + 1]], row, element, shape) for row",
        "_cell(values[offsets[row] : offsets[row + 1]], 0, element, shape) for row",
    ),
    Fault(
        "columns/arrow/messages/message_batches.py",
        "unknown fields are counted in the first part only",
        "        for part in parts:\n            self.unknown.update(part[1])",
        "        for part in parts[:1]:\n            self.unknown.update(part[1])",
    ),
    Fault(
        "columns/arrow/output/to_pandas.py",
        "a null struct with values that pyarrow would change becomes a dict of None",
        "    if array.null_count:\n        values = [value if valid",
        "    if array.null_count and not t.is_struct(type_):\n        values = [value if valid",
    ),
    Fault(
        "apps/cli/commands.py",
        "float64 of a query becomes float32 on its way to another format",
        'write_tfrecord(rows, f"{folder}/", float64="raw")',
        'write_tfrecord(rows, f"{folder}/")',
    ),
    Fault(
        "bytes/compression/recovering_stream.py",
        "a gap that ends a refused file has no place in the content",
        "begin, end, offset=self.offset, reason=error.reason",
        "begin, end, offset=begin, reason=error.reason",
    ),
    Fault(
        "bytes/engine/numpy_output.py",
        "runs of items of several numbers are copied as if each were one number",
        "item_size = int(inner) * values.itemsize\n        if values.dtype.kind not in",
        "item_size = min(int(inner), 1) * values.itemsize\n        if values.dtype.kind not in",
    ),
    Fault(
        "apps/file_formats/tables/libsvm_files.py",
        "a row without labels has one",
        'label.count(b",") + 1 if label else 0 for label',
        'label.count(b",") + 1 for label',
    ),
    Fault(
        "read/index/record_index.py",
        "a last line without a newline is lost",
        "    if partial_line:\n        yield partial_line\n",
        "",
    ),
    Fault(
        "rows/training/iter_options.py",
        "two equal sizes of buckets are accepted",
        "any(size >= after for size, after",
        "any(size > after for size, after",
    ),
    Fault(
        "apps/views/feature_statistics.py",
        "timestamps are numbers",
        "if t.is_date(type_) or t.is_timestamp(type_):",
        "if t.is_date(type_):",
    ),
    Fault(
        "plugins/vision/pascal_voc.py",
        "an optional element that is 0 everywhere has no column",
        "any(row[width + at] is not None for row in rows)",
        "any(row[width + at] for row in rows)",
    ),
    Fault(
        "read/reader.py",
        "a report counts the rows that an offset leaves out",
        "self.report.records += intact - dropped",
        "self.report.records += intact",
    ),
    Fault(
        "columns/schema/column_features.py",
        "other metadata of a field are lost when its encoding is set",
        "    metadata = {k: v for k, v in (field.metadata or {}).items() if k != ENCODING_KEY}\n    if encoding not in",
        "    metadata = {}\n    if encoding not in",
    ),
    Fault(
        "store/filesystem/os_errors.py",
        "a server that asks for credentials is an input or output error",
        "http_status(error) in (401, 403)",
        "http_status(error) == 403",
    ),
    Fault(
        "store/paths/expand_braces.py",
        "braces from a number to the same one expand to nothing",
        "b + (1 if b >= a else -1)",
        "b + (1 if b > a else -1)",
    ),
    Fault(
        "store/read/file_object.py",
        "a file object is read again from its start, not from its first position",
        "self.file.seek(self._begin)",
        "self.file.seek(0)",
    ),
    Fault(
        "apps/tf_compat/parse_example.py",
        "of several faulty records, the one of the first feature is named",
        "min(raised, key=lambda fault: fault.record or 0)",
        "raised[0]",
    ),
    Fault(
        "read/join.py",
        "a key of -0.0 does not match 0.0",
        "return pc.add(plain, pa.scalar(0.0).cast(type_))",
        "return plain",
    ),
    Fault(
        "rows/training/buckets_and_packing.py",
        "buckets come in the order in which they began to fill",
        "batches += [(int(part[-1]) + 1, bucket, part)",
        "batches += [(int(part[0]) + 1, bucket, part)",
    ),
    Fault(
        "write/writer.py",
        "a partition folder is counted once a file",
        '[*dict.fromkeys(printable(path.rpartition("/")[0]) for path in below if "/" in path)]',
        '[printable(path.rpartition("/")[0]) for path in below if "/" in path]',
    ),
]


def copy_of_tree(folder: Path) -> None:
    """Copy the files of the working tree that git knows, and the compiled kernel."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    copy_of_kernel(folder)


def copy_of_kernel(folder: Path) -> None:
    for path in (ROOT / PACKAGE / "_native").glob("_kernel*"):
        shutil.copy2(path, folder / PACKAGE / "_native")


def build_kernel(folder: Path) -> None:
    """Compile the kernel of a copy; again only what changed."""
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
    for command in (["cmake", "-S", ".", "-B", "build/k", *options], ["cmake", "--build", "build/k"]):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    for kernel in (folder / "build/k").glob("_kernel*.so"):
        shutil.copy2(kernel, folder / PACKAGE / "_native")


class Tests:
    """The tests of a copy of the tree; those that fail without a fault, too, are left out once they are met."""

    def __init__(self, folder: Path, tier: str) -> None:
        self._folder, self._tier = folder, tier
        self._left_out: list[str] = []

    def failing(self, tests: list[str], seconds: float) -> str | None:
        """The first test that fails; None if all pass. TimeoutExpired if that is not known in time."""
        env = os.environ | {"PYTHONPATH": str(self._folder), "PYTHONSAFEPATH": "1", "TFRECORD_IO_TESTS": self._tier}
        left_out = [f"--deselect={name}" for name in self._left_out]
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *left_out, *tests]
        run = subprocess.run(
            command, cwd=self._folder, env=env, capture_output=True, text=True, timeout=max(seconds, 1)
        )
        if run.returncode in (0, 5):  # 5: none is of the tier
            return None
        found = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", run.stdout, re.MULTILINE)
        if found is None:
            raise SystemExit(run.stdout[-2000:] + run.stderr[-2000:])
        return found[1]

    def finding(self, path: Path, planted: str, tests: list[str], seconds: float) -> str | None:
        """The first test that fails while a file has the text `planted`, but not without."""
        text, end = path.read_text(encoding="utf-8"), time.monotonic() + seconds
        while True:
            path.write_text(planted, encoding="utf-8")
            try:
                found = self.failing(tests, end - time.monotonic())
            finally:
                path.write_text(text, encoding="utf-8")
            function = found and found.split("[")[0]
            if function is None or path.suffix == ".cc" or self.failing([function], 300) is None:
                return found
            self._left_out.append(function)


def tests_of(folder: Path, fault: Fault) -> list[list[str]]:
    """The tests that may find a fault: those of its name first, then others near it, those of its folder and laws."""
    if fault.tests:
        return [[test] for test in fault.tests]
    near = [sys.executable, "tests/near.py", fault.file.removesuffix(".py")]
    names = subprocess.run(near, cwd=folder, check=True, capture_output=True, text=True).stdout.split()
    named = [name for name in names if Path(name).name.startswith(f"test_{Path(fault.file).stem}")]
    others = [name for name in names if name not in named]
    return [*filter(None, [named, others, [f"tests/{Path(fault.file).parent}", "tests/laws"]])]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rooms", nargs="*", help="parts of the files' names; by default all")
    parser.add_argument("--set", type=int, choices=[1, 2, 3], default=1, help="the list of faults")
    parser.add_argument("--tier", choices=["near", "fast", "full", "storm"], default="fast")
    parser.add_argument("--build", action="store_true", help="plant faults of the kernel, too")
    parser.add_argument("--named", action="store_true", help="run only the tests of the same name as the file")
    parser.add_argument("--seconds", type=float, default=180, help="at most so many for each fault")
    parser.add_argument("--tree", type=Path, help="where the copy is made; by default a temporary folder")
    options = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.tree or Path(temporary)
        copy_of_tree(folder)
        tests = Tests(folder, options.tier)
        for fault in (FAULTS, SECOND_FAULTS, THIRD_FAULTS)[options.set - 1]:
            is_kernel = fault.file.endswith(".cc")
            if (is_kernel and not options.build) or not any(part in fault.file for part in options.rooms or [""]):
                continue
            path = folder / PACKAGE / fault.file
            text = path.read_text(encoding="utf-8")
            if text.count(fault.old) != 1:
                raise SystemExit(f"{fault.file} has {text.count(fault.old)} times: {fault.old}")
            planted = text.replace(fault.old, fault.new)
            if is_kernel:
                path.write_text(planted, encoding="utf-8")
                build_kernel(folder)
            found, begin = None, time.monotonic()
            try:
                for step in tests_of(folder, fault)[: 1 if options.named else None]:
                    left = options.seconds - (time.monotonic() - begin)
                    found = found or tests.finding(path, planted, step, left)
            except subprocess.TimeoutExpired:
                found = "NOT FOUND IN TIME"
            if is_kernel:
                path.write_text(text, encoding="utf-8")
                copy_of_kernel(folder)
            missed += found is None or found.startswith("NOT")
            print(f"{time.monotonic() - begin:5.0f} s  {fault.file}: {fault.what}: {found or 'NOT FOUND'}", flush=True)
    print(f"not found: {missed}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
