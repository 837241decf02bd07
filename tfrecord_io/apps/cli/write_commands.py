"""Commands that copy files or records, or change datasets: ``tfr copy``, ``delete``, ``split``, …."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import click

from tfrecord_io.apps.cli.command_group import tfr
from tfrecord_io.apps.cli.common_options import (
    EXAMPLES,
    SourcesArgument,
    compression_option,
    keyword,
    modes,
    number,
    options,
    read_from,
    replace_dash,
    sources,
    target,
    target_path,
    type_option,
    where_option,
)
from tfrecord_io.apps.cli.process import output_path
from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import counted, printable

if TYPE_CHECKING:
    from tfrecord_io.typing import WriteReport


def _files(ctx: click.Context, argument: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    if "-" in paths:
        raise click.BadParameter("standard input cannot be copied: pass the path of a file")
    return replace_dash(ctx, argument, paths)


@tfr.declare("Write")
@options(
    click.argument("sources", cls=SourcesArgument, metavar="SOURCE...", nargs=-1, required=True, callback=_files),
    target_path,
    click.option(
        "--verify",
        type=click.Choice(["records", "bytes"]),
        default="records",
        show_default=True,
        help="Verify the checksums of all records, or only those of the files.",
    ),
    click.option(
        "--update",
        is_flag=True,
        help="Copy files that differ, by checksum, and remove those that SOURCE no longer has.",
    ),
    partial(modes, default="that is an error"),
    click.option("--all-files", is_flag=True, help="Copy all files of a directory, not only TFRecord files."),
    where_option(
        'Only partition folders (day=1/) that meet a condition, such as "day >= 5" or "day in [1, 2]". With --update, '
        "the other folders of TARGET are kept."
    ),
    click.option("--dry-run", is_flag=True, help="Write nothing; print what would be copied and removed."),
    click.option("--limit-rate", metavar="RATE", help="Maximum bytes per second, such as 100MB."),
    number(
        "--threads",
        least=1,
        help="Number of files copied at a time; by default, one per CPU core, from or to a store up to 32.",
    ),
    "storage_options",
    "source_storage",
    "target_storage",
    "json",
)
def copy(sources: tuple[str, ...], target: str, as_json: bool, **keywords: Any) -> None:
    """Copy files or whole datasets, and check every record on the way.

    Files are copied unchanged. A dataset appears in one step, as one version; the same command continues a copy that
    was killed. Within one store, such as S3, the store copies the files.
    """
    import tfrecord_io
    from tfrecord_io.apps.cli import output

    source = read_from(list(sources), keywords, record_type="bytes")
    report = tfrecord_io.copy(source, target, progress=True, **keywords)
    names = {"copied": list(report.copied), "removed": list(report.removed)} if report.dry_run else {}
    output.print_result(as_json, {**report.to_dict(), **names}, report.title(), lines=report.lines())


@tfr.declare("Write")
@options(
    click.argument("path", metavar="PATH"),
    where_option(f"Remove rows that meet a condition, such as {EXAMPLES}"),
    click.option("--dry-run", is_flag=True, help="Change nothing; report what would be removed."),
    type_option("in the condition", "user=string"),
    "storage_options",
    "json",
)
def delete(path: str, filters: Any, as_json: bool, **keywords: Any) -> None:
    """Remove the rows that meet all conditions of --where.

    PATH is a dataset with a manifest, one of its folders, or a single file. Shards with such rows are dropped or
    rewritten in one step; other shards are left alone. Rows where a condition is null are kept.
    """
    import tfrecord_io
    from tfrecord_io.apps.cli import output

    if filters is None:
        raise click.UsageError("--where is required: it selects the rows to remove")
    source = read_from(path, keywords, tfrecord_io.delete)
    report = tfrecord_io.delete(source, filters=filters, progress=True, **keywords)
    output.print_result(as_json, asdict(report), report._summary().text())


@tfr.declare("Write")
@options(click.argument("path", metavar="PATH"), "storage_options", "json")
def adopt(path: str, as_json: bool, **keywords: Any) -> None:
    """Write a manifest for files written by another tool.

    PATH is a directory, with or without partition folders (day=1/). The files are read, but not changed. Afterwards,
    rows can be appended, deleted and replaced.
    """
    import tfrecord_io
    from tfrecord_io.apps.cli import output

    report = tfrecord_io.adopt(path, progress=True, **keywords)
    value = {name: getattr(report, name) for name in ("path", "records", "bytes", "columns")}
    line = report._line(counted(report.bytes, "byte"))
    output.print_result(as_json, {**value, "files": len(report.files)}, line)


def _schema(ctx: click.Context, option: click.Parameter, file: IO[bytes] | None) -> Any:
    """Read a schema from a file of JSON."""
    if file is None:
        return None
    import tfrecord_io

    try:
        return tfrecord_io.Schema.from_json(file.read())
    except SchemaError as error:
        raise click.BadParameter(f"'{file.name}': {error}; tfr schema --as json prints one") from None


_OPTIONS = (
    "shards",
    "max_shard_bytes",
    compression_option(help="NAMES; by default, as the name of TARGET says."),
    keyword("compression_level", type=click.IntRange(min=0)),
    "write_index",
    modes,
    "partitions",
    click.option(
        "--schema",
        type=click.File("rb"),
        metavar="FILE",
        callback=_schema,
        help="Schema to store in the output, in the form of tfr schema --as json.",
    ),
    type_option("in the stored schema", "n=int64"),
    "split",
    "allow_missing_shards",
    "storage_options",
    "source_storage",
    "target_storage",
    "json",
)


def _fractions(ctx: click.Context, option: click.Parameter, text: str | None) -> list[float] | dict[str, float] | None:
    """Parse fractions: 0.8,0.2 is a list, train=0.9,eval=0.1 a dict."""
    if text is None:
        return None
    pairs = [part.strip().rpartition("=") for part in text.split(",")]
    try:
        numbers = [float(number) for _, _, number in pairs]
    except ValueError:
        raise click.BadParameter(f"'{text}': expected 0.8,0.1,0.1 or train=0.9,eval=0.1") from None
    names = [name for name, separator, _ in pairs if separator]
    if names and (len(set(names)) < len(pairs) or not all(names)):
        raise click.BadParameter(f"'{text}': expected a different name for each part, or none")
    return dict(zip(names, numbers, strict=True)) if names else numbers


_seed = number("--seed", default=0, help="Seed of the random numbers.")


def _record_command(*items: Callable[[Any], Any]) -> Callable[[Any], click.Command]:
    """Declare a command that copies records: SOURCE, TARGET, the options of `items`, and those of all such commands."""
    declared = options(sources, target, *items, *_OPTIONS)
    return lambda function: tfr.declare("Write")(declared(function))


@_record_command()
def merge(sources: tuple[str, ...], target: str, as_json: bool, **keywords: Any) -> None:
    """Write the records of several files to one file, or to shards.

    Records are copied as bytes, in their order. Use - as SOURCE or TARGET for standard input or output.
    """
    import tfrecord_io

    _copy(tfrecord_io.merge, sources, target=target, as_json=as_json, keywords=keywords)


@_record_command(
    click.option("--by", metavar="COLUMN", help="Write one file for each value of a column, VALUE.tfrecord in TARGET."),
    click.option(
        "--fractions",
        metavar="PARTS",
        callback=_fractions,
        help="Random parts, such as 0.8,0.1,0.1 (train, validation and test) or train=0.9,eval=0.1.",
    ),
    click.option(
        "--group",
        metavar="COLUMN",
        help="With --fractions: keep all records with one value, such as a user, in one part.",
    ),
    click.option(
        "--stratify",
        metavar="COLUMN",
        help="With --fractions: give each part the same share of the records of each value.",
    ),
    _seed,
)
def split(sources: tuple[str, ...], target: str, as_json: bool, **keywords: Any) -> None:
    """Split records into shards, by a column, or into random parts.

    Records are copied as bytes, in their order. With --by or --fractions, TARGET is a directory.
    """
    import tfrecord_io

    if target == "-":
        raise click.UsageError("TARGET is several files: pass a path, not -")
    _copy(tfrecord_io.split, sources, target=target, as_json=as_json, keywords=keywords)


@_record_command(
    _seed, number("--memory-bytes", least=1, help="Bytes of records to keep in memory; by default, 256 MiB.")
)
def shuffle(sources: tuple[str, ...], target: str, as_json: bool, **keywords: Any) -> None:
    """Write the records of files in a random order.

    Records are copied as bytes. Data that does not fit into memory goes through temporary files. Use - as SOURCE or
    TARGET for standard input or output.
    """
    import tfrecord_io

    _copy(tfrecord_io.shuffle, sources, target=target, as_json=as_json, keywords=keywords)


@_record_command(
    number("-n", "n", help="Number of records."),
    click.option("--fraction", type=float, metavar="PART", help="Fraction of the records, from 0 to 1."),
    _seed,
)
def sample(sources: tuple[str, ...], target: str, as_json: bool, **keywords: Any) -> None:
    """Write a random sample of the records, in their order.

    Records are copied as bytes. Pass -n or --fraction. Use - as SOURCE or TARGET for standard input or output.
    """
    import tfrecord_io

    _copy(tfrecord_io.sample, sources, target=target, as_json=as_json, keywords=keywords)


@_record_command(
    click.option("--by", required=True, multiple=True, metavar="COLUMN", help="Column of the key; may be repeated."),
    click.option(
        "--keep", type=click.Choice(["first", "last"]), default="first", show_default=True, help="Which record to keep."
    ),
    number("--memory-bytes", least=1, help="Bytes of keys to keep in memory; by default, 256 MiB."),
)
def dedupe(sources: tuple[str, ...], target: str, as_json: bool, **keywords: Any) -> None:
    """Write one record for each key.

    Records are copied as bytes, in their order. Use - as TARGET for standard output.
    """
    import tfrecord_io

    _copy(tfrecord_io.dedupe, sources, target=target, as_json=as_json, keywords=keywords)


@tfr.declare("Write")
@options(
    click.argument("path", metavar="PATH"),
    number(
        "--max-shard-bytes", least=1, help="Join files as long as they have this size together; by default, 256 MiB."
    ),
    "write_index",
    "storage_options",
    "json",
)
def compact(path: str, as_json: bool, **keywords: Any) -> None:
    """Join small neighbouring shards of a dataset.

    Records are copied as bytes, in their order. The new shards replace the small ones in one step.
    """
    import tfrecord_io
    from tfrecord_io.apps.cli import output

    stated = {name: value for name, value in keywords.items() if value is not None}
    report: Any = tfrecord_io.compact(path, progress=True, **stated)  # it also has the number of files it joined
    value = {**_report_json(report), "files": len(report.files), "joined": report.joined}
    output.print_result(as_json, value, report._line(counted(report.bytes, "byte")))


def _copy(
    function: Callable[..., Any], sources: tuple[str, ...], target: str, as_json: bool, keywords: Mapping[str, Any]
) -> None:
    """Call `function`, and print a summary: on stderr if stdout gets the records."""
    from tfrecord_io.apps.cli import output

    options = {name: value for name, value in keywords.items() if value is not None}
    if target == "-" and options.get("partitions") == "folders":
        raise click.UsageError("TARGET is a directory: pass a path, not -")
    target, on_stderr = output_path(target)
    source = read_from(list(sources), options, function)
    report = function(source, target, progress=True, **options)
    reports = report if isinstance(report, dict) else {None: report}
    text = "\n".join(_summary_line(part) for part in reports.values())
    values: Any = {name: _report_json(part) for name, part in reports.items()}
    output.print_result(as_json, values if isinstance(report, dict) else values[None], text, err=on_stderr)


def _report_json(report: WriteReport) -> dict[str, Any]:
    return {name: getattr(report, name) for name in ("path", "records", "bytes")}


def _summary_line(report: WriteReport) -> str:
    files = f"{len(report.files):,} files, " if len(report.files) > 1 else ""
    size = f"{counted(report.records, 'record')}, {counted(report.bytes, 'byte')}"
    return f"{printable(report.path)}: {files}{size}"
