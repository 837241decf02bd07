"""The commands of ``tfr``: each calls one function of the library, with options named like its keywords.

The library is imported inside the commands, so that ``tfr --help`` starts quickly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

import click

from tfrecord_io.apps.cli.command_group import error_line, print_error, tfr
from tfrecord_io.apps.cli.common_options import (
    SCHEMA_FORMATS,
    STDIN,
    duration,
    indexed_columns,
    inspection,
    not_stdin,
    number,
    options,
    read_from,
    type_option,
    write_modes,
)
from tfrecord_io.apps.cli.exit_codes import INVALID_DATA
from tfrecord_io.apps.cli.process import echo, output_path
from tfrecord_io.kit import ReadOptions, counted, printable
from tfrecord_io.typing import FileMode

_FEW_VALUES = 4  # of a list that `--short` shows whole
_OF_RECORDS = ("columns", "schema", "schema_overrides", "record_type", "compression", "on_error", "filters")


@inspection(*_OF_RECORDS, number("-n", "limit", default=5, help="Number of records."))
def head(path: str | list[str], as_json: bool, **keywords: Any) -> None:
    """Show the first records."""
    from tfrecord_io.apps.api import read_table
    from tfrecord_io.apps.cli import output

    options = ReadOptions(**{name: keywords[name] for name in ("on_error", "schema", "schema_overrides")})
    if not options.declares_schema:  # else the records may be right, and the declared type is not
        keywords["on_error"] = options.for_inspection().on_error
    records = read_table(read_from(path, keywords, read_table), **keywords)
    value = output.record_dicts(records) if as_json else None
    output.print_result(as_json, value, table=lambda: output.records_table(records))


@inspection(
    *_OF_RECORDS,
    number("-n", "count", default=5, help="Number of records."),
    click.option("--follow", "-f", is_flag=True, help="Then show the records that appends add, until Ctrl-C."),
    click.option(
        "--since",
        metavar="VERSION",
        help="Show the records that appends added since this version of a dataset, which a call before has printed.",
    ),
)
def tail(path: str | list[str], as_json: bool, count: int, follow: bool, since: str | None, **keywords: Any) -> None:
    """Show the last records, or those that appends add to a dataset.

    With --follow and --since, JSON is a record a line, and the version of the dataset follows on stderr.
    """
    from tfrecord_io.apps.cli import output

    if follow or since is not None:
        _follow(path, count, since, keywords, as_json=as_json, waits=follow)
        return
    records = _last_records(path, count, keywords)
    value = output.record_dicts(records) if as_json else None
    output.print_result(as_json, value, table=lambda: output.records_table(records))


def _follow(
    path: str | list[str], count: int, since: str | None, keywords: dict[str, Any], *, as_json: bool, waits: bool
) -> None:
    """Show the last records, or the records since a version, then the records of appends."""
    import tfrecord_io
    from tfrecord_io.apps.cli import output
    from tfrecord_io.kit import json_value

    def show(records: Any) -> None:
        if not as_json:
            output.show(output.records_table(records))
            return
        for record in output.record_dicts(records):
            echo(json.dumps(json_value(record)))

    dataset = tfrecord_io.dataset(read_from(path, keywords, tfrecord_io.dataset), **keywords)
    rows = tfrecord_io.follow(dataset, since or dataset.version, every=1.0 if waits else None)
    if since is None:
        show(_end_of(dataset.to_batches(), count))
    echo(f"version {rows.version}", err=True)
    for added in rows:
        show(added.to_table())
        echo(f"version {rows.version}", err=True)


def _last_records(path: str | list[str], count: int, keywords: dict[str, Any]) -> Any:
    """The last records as a table."""
    import tfrecord_io
    from tfrecord_io.apps.api import open_reader, read_table

    is_read_twice = not keywords["filters"] and keywords["on_error"] == "raise" and STDIN not in path
    if not is_read_twice:
        return _end_of(open_reader(read_from(path, keywords, open_reader), **keywords), count)
    names = ("compression", "split", "allow_missing_shards", "storage_options")
    counting = {name: keywords[name] for name in names}
    source = read_from(path, counting, tfrecord_io.count)
    number = tfrecord_io.count(source, progress=True, **counting)
    keywords["offset"] = max(number - count, 0)
    return read_table(read_from(path, keywords, read_table), **keywords)


def _end_of(reader: Any, count: int) -> Any:
    """The last rows of a reader as a table."""
    import pyarrow as pa

    with reader:
        batches: list[pa.RecordBatch] = []
        for batch in reader:
            batches.append(batch)
            while sum(map(len, batches[1:])) >= count and len(batches) > 1:
                del batches[0]
        records = pa.Table.from_batches(batches, reader.schema)
    return records[max(len(records) - count, 0) :]


@inspection(
    *("record_type", "compression", "on_error"),
    click.option(
        "--as",
        "format",
        type=click.Choice(SCHEMA_FORMATS),
        help="Print the schema as JSON, or as code or text for pyarrow, TFX, TensorFlow or Python.",
    ),
    click.option("--save", is_flag=True, help="Save the schema beside files that carry none."),
    type_option("in the saved schema", "n=int8"),
)
def schema(path: str | list[str], as_json: bool, format: str | None, save: bool, **keywords: Any) -> None:
    """Show the columns and their types.

    They come from the schema in the file or its manifest, else from the one saved next to it, else from a
    features.json of TFDS; else they are inferred from its first records.

    With --save, they are written to a file that all commands and calls read from then on: _SCHEMA.json in a
    directory, _SCHEMA-NAME.json for one file or the shards of a name. It is not used, with a warning, once the
    first records have other features. --type states what inference cannot know:
    tfr schema a.tfrecord --save --type "image_raw=tensor(uint8, (height, width, 3))"
    """
    from tfrecord_io.apps.cli import output, schema_text
    from tfrecord_io.columns import Column

    if save:
        _save_schema(path, as_json, format, keywords)
        return
    if keywords.pop("schema_overrides") is not None:
        raise click.UsageError("--type is for the saved schema: pass --save too")
    resolved, source, suggestions = schema_text.resolve_schema(path, format, keywords)
    if format is not None:
        echo(schema_text.schema_text(resolved, format))
    else:
        schema = resolved.to_arrow()
        fields = [
            {"name": f.name, "type": Column(f.type, f.metadata).short_name} | ({"stored": stored} if stored else {})
            for f in schema
            for stored in [Column(f).stored_as]
        ]
        text, value = f"{counted(len(schema), 'column')}, {source}", {"source": source, "fields": fields}
        value["suggestions"] = [suggestion.to_dict() for suggestion in suggestions]
        lines = [line for suggestion in suggestions for line in suggestion.lines()]
        output.print_result(as_json, value, text=text, table=lambda: output.schema_table(schema), lines=lines)


def _save_schema(path: str | list[str], as_json: bool, format: str | None, keywords: dict[str, Any]) -> None:
    from tfrecord_io.apps.cli import output, schema_text

    if not isinstance(path, str) or path == STDIN:
        raise click.UsageError("--save takes one PATH: a file, a directory or the shards of a name")
    for name, value in (("--as", format), ("--split", keywords["split"])):
        if value is not None:
            raise click.UsageError(f"--save saves the schema of whole files for all calls: it takes no {name}")
    saved, target = schema_text.save_overridden_schema(path, keywords)
    text = f"{counted(len(saved), 'column')} saved: {printable(target, 1024)}"
    output.print_result(as_json, {"path": target, "columns": saved.names}, text=text)


@inspection(
    *("filters", "compression", "max_decompression_ratio", "on_error", "threads"),
    click.option("--index", multiple=True, metavar="FILE", help="Index file of PATH; repeat it for several files."),
)
def count(path: str | list[str], as_json: bool, index: tuple[str, ...], **keywords: Any) -> None:
    """Count the records in total, and in each of several PATHs.

    The number comes from a manifest, an index or the headers of records: payloads are not checked, as by tfr verify.
    With --where, the columns of the condition are read.
    """
    import tfrecord_io
    from tfrecord_io.apps.cli import output

    is_list = isinstance(path, list)
    paths = path if isinstance(path, list) else [path]
    if index and keywords["filters"]:
        raise click.UsageError("--index has the number of all records: omit it, or --where")
    if is_list and index and len(index) != len(paths):
        raise click.UsageError(f"--index is given {len(index)} times for {len(paths)} PATHs: pass it once for each")
    indexes = [[file] for file in index] if is_list and index else [list(index) or None] * len(paths)
    counts = []
    for single_path, files in zip(paths, indexes, strict=True):
        options = dict(keywords)
        if (filters := options.pop("filters")) is None:
            source = read_from(single_path, options, tfrecord_io.count)
            counts.append(tfrecord_io.count(source, index=files, progress=True, **options))
        else:
            rows = tfrecord_io.dataset(read_from(single_path, options, tfrecord_io.dataset), **options)
            counts.append(tfrecord_io.count(rows.filter(filters), progress=True))
    total = sum(counts)
    value = {"records": total, "paths": [{"path": p, "records": n} for p, n in zip(paths, counts, strict=True)]}
    lines = [(n, printable(p, 1024)) for n, p in zip(counts, paths, strict=True)]
    width = len(str(total))
    text = "\n".join(f"{n:>{width}}  {name}" for n, name in [*lines, (total, "total")])
    output.print_result(as_json, value, text if is_list else total)


@inspection(
    click.option("--check", is_flag=True, help="Write nothing; check the existing indexes."),
    indexed_columns("-c", "--columns", text="Write the offsets and the values"),
    section="Write",
)
def index(path: str | list[str], as_json: bool, check: bool, columns: list[str], **keywords: Any) -> None:
    """Write an index of record offsets for each file, FILE.index.

    Random access and counting use the index. With --columns, filters also use it, as do reads of only these
    columns.
    """
    import tfrecord_io
    from tfrecord_io.apps.cli import output
    from tfrecord_io.read import check_indexes, write_indexes

    if STDIN in ([path] if isinstance(path, str) else path):
        raise click.UsageError("an index is written next to its file: pass the path of a file, not standard input")
    if check and columns:
        raise click.UsageError("--check compares the offsets in an index with its file: it takes no --columns")
    if columns:
        source = read_from(path, keywords, tfrecord_io.build_index)
        indexes = tfrecord_io.build_index(source, columns=columns, progress=True, **keywords)
    else:
        verb = check_indexes if check else write_indexes
        indexes = verb(read_from(path, keywords, verb), progress=True, **keywords)
    value = [index.to_dict() for index in indexes]
    output.print_result(as_json, value, table=lambda: output.indexes_table(indexes))
    errors = [index.error for index in indexes if index.error is not None]
    for error in errors:
        print_error(f"tfr: {error_line(error)}")
    if errors:
        click.get_current_context().exit(INVALID_DATA)


@inspection(
    *_OF_RECORDS,
    number("-n", "--limit", least=1, help="Describe the first N records; by default, all."),
    click.option("--explain", is_flag=True, help="Show which files and columns would be read, without reading them."),
)
def describe(path: str | list[str], as_json: bool, explain: bool, **keywords: Any) -> None:
    """Show the type, missing values, range and lengths of each column.

    All records are read; of a large dataset, --limit describes the first ones.
    """
    import tfrecord_io
    from tfrecord_io.apps.cli import output

    if explain:
        explanation = tfrecord_io.dataset(path, **keywords).explain()
        output.print_result(as_json, explanation.to_dict(), explanation)
        return
    source = read_from(path, keywords, tfrecord_io.describe)
    description = tfrecord_io.describe(source, progress=True, **keywords)
    lines = [line for suggestion in description.suggestions for line in suggestion.lines()]
    table = output.TextTable(description.headings, description.rows())
    output.print_result(as_json, description.to_dict(), text=description.title, table=lambda: table, lines=lines)


@tfr.declare("Show")
@click.argument("query", metavar="QUERY")
@click.option(
    "-o",
    "--output",
    metavar="TARGET",
    help="Write the result to a file of any format that tfr convert writes, instead of printing it.",
)
@write_modes
@options("compression", "split", "allow_missing_shards", "storage_options", "json")
def sql(query: str, as_json: bool, output: str | None, **keywords: Any) -> None:
    """Run an SQL query with DuckDB; its tables are quoted PATHs.

    Only the columns and rows that the query needs are decoded: tfr sql "SELECT count(*) FROM 'train-*.tfrecord'"
    """
    import pyarrow as pa

    from tfrecord_io.apps.adapters.duckdb import open_query
    from tfrecord_io.apps.cli import output as printed
    from tfrecord_io.kit import open_input
    from tfrecord_io.store import Location

    names = ("mode", "partition_by", "overwrite_where", "evolve", "metadata", "txn")
    writing = {name: value for name in names if (value := keywords.pop(name)) is not None}
    _check_target(output, writing)
    output, on_stderr = (None, False) if output is None else output_path(output)
    with open_query(query, target=output, **keywords) as stream:
        if output is not None:
            report = _write_rows(
                stream, output, writing, keywords["storage_options"] if Location.is_url(output) else None
            )
            written = {name: getattr(report, name) for name in ("path", "records", "bytes")}
            done = " appended" if writing.get("mode") == "append" else ""
            text = f"{printable(report.path)}: {counted(report.records, 'record')}{done}"
            printed.print_result(as_json, written, text, err=on_stderr)
            return
        rows = stream.read_all()
    whole = [field.name for field in rows.schema if pa.types.is_decimal(field.type) and field.type.scale == 0]
    if as_json:
        open_input(rows)  # refuses columns of one name, all but the last of which an object would leave out
    value = printed.record_dicts(rows) if as_json else []
    for record in value:  # sums of integers have 38 digits in DuckDB
        record.update({name: int(record[name]) for name in whole if record[name] is not None})
    printed.print_result(as_json, value, table=lambda: printed.records_table(rows))


def _check_target(target: str | None, writing: Mapping[str, Any]) -> None:
    """Raise UsageError for options of writing without a target, or with a target that is not TFRecord."""
    from tfrecord_io.apps.file_formats.choose_formats import format_of_target

    if writing and target is None:
        raise click.UsageError(
            "--mode, --partition-by, --evolve, --metadata and --txn are for -o TARGET, which is missing"
        )
    of_files = {**writing, "mode": None} if writing.get("mode") in get_args(FileMode) else writing
    if target is not None and any(of_files.values()) and format_of_target(target) is not None:
        options = "--append, --partition-by, --evolve, --metadata and --txn"
        text = f"{options} are only for TFRecord, and '{target}' is another format"
        raise click.UsageError(text)


def _write_rows(rows: Any, target: str, writing: dict[str, Any], storage_options: dict[str, Any] | None) -> Any:
    """Write a stream to any target of ``tfr convert``: TFRecord at once, other formats by way of temporary files."""
    from tempfile import TemporaryDirectory

    from tfrecord_io.apps.api import write_tfrecord
    from tfrecord_io.apps.file_formats.choose_formats import format_of_target
    from tfrecord_io.apps.file_formats.convert import convert

    if format_of_target(target) is None:
        return write_tfrecord(rows, target, float64="raw", storage_options=storage_options, **writing)
    with TemporaryDirectory(prefix="tfrecord_io-") as folder:
        write_tfrecord(rows, f"{folder}/", float64="raw")
        return convert(folder, target, storage_options=storage_options, **writing)


@tfr.declare("Check and repair")
@click.argument("path", metavar="PATH")
@click.option(
    "--older-than",
    default="1d",
    show_default=True,
    metavar="TIME",
    callback=duration,
    help="Minimum age, such as 30m, 12h or 2d.",
)
@click.option("--yes", "remove", is_flag=True, help="Remove the leftovers; by default, they are only listed.")
@options("storage_options", "json")
def clean(path: str, as_json: bool, **keywords: Any) -> None:
    """List or remove the leftovers of killed writers.

    Leftovers are unfinished uploads to S3 and temporary files below PATH. Unfinished uploads of other programs are
    listed, too, as S3 does not tell which program started an upload.
    """
    from tfrecord_io.apps.cli import output
    from tfrecord_io.store import clean as find_leftovers

    leftovers = find_leftovers(path, **keywords)
    names = ("path", "upload", "started", "bytes")
    lines = []
    for leftover in leftovers:
        size = "" if leftover.bytes is None else f"  {leftover.bytes:,} bytes"
        upload = "" if leftover.upload is None else f"  upload {leftover.upload}"
        lines.append(printable(f"{leftover.path}{upload}  {leftover.started:%Y-%m-%d %H:%M:%S}{size}", 1024))
    action = "removed" if keywords["remove"] else "found; use --yes to remove them"
    lines.append(f"{len(leftovers):,} {action}" if leftovers else "no leftovers found")
    value = [{name: getattr(leftover, name) for name in names} for leftover in leftovers]
    output.print_result(as_json, value, "\n".join(lines))


@inspection(
    *_OF_RECORDS,
    number("-n", "limit", help="Number of records; by default, all."),
    click.option("--short", is_flag=True, help="Abbreviate bytes and long lists."),
)
def cat(path: str | list[str], as_json: bool, short: bool, **keywords: Any) -> None:
    """Print records as JSON lines.

    Bytes are written as base64. --json has no effect.
    """
    import pyarrow as pa

    from tfrecord_io.apps.api import open_reader
    from tfrecord_io.apps.cli import output
    from tfrecord_io.kit import json_value
    from tfrecord_io.kit import short as shortened

    def value(record: dict[str, Any]) -> dict[str, Any]:
        if not short:
            return record
        is_long = {k: isinstance(v, bytes) or (isinstance(v, list) and len(v) > _FEW_VALUES) for k, v in record.items()}
        return {name: shortened(item) if is_long[name] else item for name, item in record.items()}

    # As text, records take many times as much memory.
    with open_reader(read_from(path, keywords, open_reader), **keywords, batch_bytes=4 << 20) as reader:
        for batch in reader:
            records = output.record_dicts(pa.Table.from_batches([batch], reader.schema))
            lines = [json.dumps(json_value(value(record))) for record in records]
            if lines:
                echo("\n".join(lines))


@tfr.declare("Show", context_settings={"ignore_unknown_options": True})
@click.argument("path", metavar="PATH", callback=not_stdin)
@click.argument("wanted", metavar="N...", nargs=-1, required=True)
@click.option(
    "--key",
    metavar="COLUMN",
    help="Look up records by this column; N are its values. An index (tfr index -c COLUMN) makes it faster.",
)
@click.option("--keep", type=click.Choice(["first"]), help="Which record to show if several have the same key.")
@options("columns", "schema", "schema_overrides", "record_type", "storage_options", "json")
def get(path: str, wanted: tuple[str, ...], as_json: bool, **keywords: Any) -> None:
    """Show records by number, from 0 (-1 is the last), or by key.

    PATH must not be compressed. With an index (tfr index), the record headers are not read.
    """
    import tfrecord_io
    from tfrecord_io.apps.cli import output

    source = read_from(path, keywords, tfrecord_io.open_random)
    with tfrecord_io.open_random(source, **keywords) as records:
        try:
            by_key = keywords["key"] is not None
            table = _lookup(records, wanted) if by_key else records[list(map(_number, wanted))]
        except IndexError as error:
            raise click.UsageError(str(error)) from None
        except KeyError as error:
            raise click.UsageError(str(error.args[0])) from None
    output.print_result(as_json, output.record_dicts(table), table=lambda: output.records_table(table))


def _number(text: str, expected: str = "the number of a record; --key takes keys") -> int:
    try:
        return int(text)
    except ValueError:
        raise click.UsageError(f"'{printable(text)}' is not {expected}") from None


def _lookup(records: Any, texts: tuple[str, ...]) -> Any:
    """Look up records by keys, converted from text to the type of the column."""
    for convert in (str, str.encode):
        try:
            return records.lookup(list(map(convert, texts)))
        except TypeError:
            continue
    return records.lookup([_number(text, "an integer, as the keys of this column are") for text in texts])
