"""Commands that turn rows into another format or other rows: ``tfr convert``, ``tfr explode`` and ``tfr implode``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, get_args

import click

from tfrecord_io.apps.cli.command_group import tfr
from tfrecord_io.apps.cli.common_options import (
    ListingOption,
    compression_option,
    field_option,
    keyword,
    modes,
    names_or_none,
    options,
    pairs,
    read_from,
    sources,
    target,
    type_hints,
    type_option,
    write_index,
    write_modes,
)
from tfrecord_io.apps.cli.process import output_path
from tfrecord_io.kit import FORMATS, Format, Summary, counted, listed, printable
from tfrecord_io.typing import OnErrorNameCollecting

_SIDES = ("source", "target")


def _encoding_names() -> list[str]:
    from tfrecord_io.kit import TensorEncoding

    return TensorEncoding.written_names()


class _Convert(click.Command):
    """Command with the options of all formats; options of other packages are added when they are needed."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._add(*FORMATS.own_options())

    def _add(self, *options: type[Any] | None) -> bool:
        """Add the options of fields, unless present; True if there were new ones."""
        present = {parameter.name for parameter in self.params}
        added = {
            field.name: (field, type_hints(cls)[field.name])
            for cls in filter(None, reversed(options))  # of formats that share an option, the first has its help
            for field in fields(cls)
            if field.metadata and field.name not in present
        }
        self.params.extend(field_option(*option) for option in added.values())
        return bool(added)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, [*args])
        except click.NoSuchOption:
            if not self._add(*(row.options for row in FORMATS)):
                raise
            return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._add(*(row.options for row in FORMATS))
        of_formats = {name for row in FORMATS for name in row.option_names}
        params = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]  # no arguments
        shared = [param.get_help_record(ctx) for param in params if param.name not in of_formats]
        with formatter.section("Options"):
            formatter.write_dl([record for record in shared if record is not None])
        formats: dict[str, list[tuple[str, str]]] = {}
        for param in params:
            titles = dict.fromkeys(row.title for row in FORMATS if param.name in row.option_names)
            if titles and (record := param.get_help_record(ctx)) is not None:
                formats.setdefault(listed("and", *titles), []).append(record)
        for title, records in formats.items():
            with formatter.section(f"Options of {title}"):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Formats"):
            formatter.write_dl([(", ".join(row.keys), _format_help(row)) for row in FORMATS])


def _format_help(format: Format) -> str:
    """Help text of a format: its suffixes, its description as plain text, and its direction if there is only one."""
    text = re.sub(r"`+(tfrecord_io\.)?([^`]*)`+", r"\2", format.help)
    return "; ".join(filter(None, (" ".join(format.suffixes), text, format.one_way)))


@tfr.declare("Write", cls=_Convert)
@sources
@target
@click.option(
    "--from",
    "source_format",
    metavar="FORMAT",
    shell_complete=lambda _ctx, _param, text: [key for key in FORMATS.choices() if key.startswith(text)],
    help="Format of SOURCE, one of those below; by default, its name decides.",
)
@click.option(
    "--to",
    "target_format",
    metavar="FORMAT",
    shell_complete=lambda _ctx, _param, text: [key for key in FORMATS.choices(written=True) if key.startswith(text)],
    help="Format of TARGET, one of those below; by default, its name decides.",
)
@options("columns")
@click.option(
    "--rename",
    multiple=True,
    metavar="NAME=NEW",
    callback=pairs("image/encoded=jpg"),
    help="Give a column another name; may be repeated. Other options of SOURCE take the old name.",
)
@click.option(
    "--float64",
    type=click.Choice(["round", "error", "raw"]),
    help="How to store float64, which TFRecord lacks; by default, it is rounded to float32.",
)
@click.option(
    "--column-encoding",
    cls=ListingOption,
    names=_encoding_names,
    multiple=True,
    metavar="NAME=ENCODING",
    callback=pairs("x=raw"),
    help="How to store a column: NAMES; may be repeated.",
)
@compression_option(help="NAMES; by default, from the name or content of the TFRecord file.")
@keyword("compression_level", type=click.IntRange(min=0))
@write_modes
@options("shards")
@click.option(
    "--resume",
    is_flag=True,
    default=None,
    help="Write a shard for each file of SOURCE, and continue where the same command was stopped.",
)
@options("max_shard_bytes")
@click.option(
    "--embed-schema/--no-embed-schema",
    default=None,
    help="Whether to store the schema in TFRecord files; by default, it is stored.",
)
@options(
    "record_type",
    keyword(
        "on_error",
        default=None,
        type=click.Choice(get_args(OnErrorNameCollecting)),
        help="On damaged data: fail (the default), stop and keep the records before it, skip it, or skip it and list "
        "what was left out (collect).",
    ),
)
@click.option(
    "--sample",
    type=click.UNPROCESSED,
    callback=lambda _ctx, _param, text: int(text) if text and text.isdigit() else text,
    metavar="N|all",
    help="Number of records from which types are inferred; by default, 10000.",
)
@click.option(
    "--on-new",
    type=click.Choice(["raise", "ignore"]),
    help="On a feature that is not in the sample: fail (the default), or ignore it.",
)
@options("schema")
@type_option("of CSV, JSON lines or TFRecord", "zip=string")
@click.option(
    "--files",
    metavar="images|all|COLUMN",
    shell_complete=lambda _ctx, _param, text: [key for key in FORMATS.FOLDERS if key.startswith(text)],
    help="Write the images, all files, or the bytes of a column to the folder TARGET. With a folder as SOURCE: read "
    "images or all files.",
)
@options("filters", partial(write_index, default=None), "split", "allow_missing_shards", "storage_options")
@options("source_storage", "target_storage", "json")
def convert(sources: tuple[str, ...], target: str, as_json: bool, **keywords: Any) -> None:
    """Convert from TFRecord to other file formats, and back.

    One of SOURCE and TARGET is TFRecord. Formats are detected from the suffixes listed below, also before the suffix of
    a compression (.csv.gz). A SOURCE with another suffix is TFRecord, and so is a TARGET with a suffix of TFRecord or
    none; --to tfrecord writes to other names.

    A folder of images, with a subfolder for each class, is read as images; --files images writes one. --from and --to
    coco, voc and yolo read and write images with annotated boxes. Several .npy or IDX files become columns; in a
    directory of .npy or .npz files, each file becomes one record.

    Use - as SOURCE or TARGET for standard input or output: TFRecord data, unless --from or --to names another format.
    The summary is then printed to stderr.
    """
    from tfrecord_io.apps.cli import output
    from tfrecord_io.apps.file_formats.convert import Sides, convert_given
    from tfrecord_io.read import SkippedRegions

    options = {name: value for name, value in keywords.items() if value is not None}
    to_stdout = target == "-"
    if to_stdout and "resume" in options:
        raise click.UsageError("--resume needs a path as TARGET, not -")
    if to_stdout and not {"mode", "partition_by"}.isdisjoint(options):
        raise click.UsageError("--append, --mode and --partition-by need a path as TARGET, not -")
    if to_stdout and not {"shards", "max_shard_bytes", "max_file_bytes"}.isdisjoint(options):
        raise click.UsageError("--shards, --max-shard-bytes and --max-file-bytes need a path as TARGET, not -")
    row = FORMATS.get(options.get("target_format", ""))
    if to_stdout and row is not None and row.write and not row.suffixes:
        raise click.UsageError("a folder needs a path as TARGET, not -")
    target, summary_on_stderr = output_path(target)
    places = {"storage_options": options.pop("storage_options", None)}
    of_sides = [
        {"storage_options": options.pop(f"{side}_storage")} if f"{side}_storage" in options else {} for side in _SIDES
    ]
    sides = Sides(options.pop("source_format", None), options.pop("target_format", None), *of_sides)
    whole = {name: options.pop(name, None) for name in ("columns", "files")} | {"resume": options.pop("resume", False)}
    if "rename" in options:
        sides.target_options["rename"] = options.pop("rename")
    path = sources[0] if len(sources) == 1 else list(sources)
    report = convert_given(path, target, sides=sides, places=places, keywords={**options, "progress": True}, **whole)
    value = {name: getattr(report, name) for name in ("path", "records", "bytes", "columns")}
    line = report._line(counted(report.bytes, "byte"), "appended" if options.get("mode") == "append" else "")
    if report.skipped:
        skipped = SkippedRegions.texts(report.skipped)
        line += "\n" + Summary("", SkippedRegions.HEADINGS, skipped, paths=("file",)).text()
    if isinstance(report.skipped, SkippedRegions):  # by an on_error that hands them over
        value["skipped"] = report.skipped_table().to_pylist()
    output.print_result(as_json, value, line, err=summary_on_stderr)


_OF_ROWS = (
    "columns",
    "filters",
    "shards",
    "max_shard_bytes",
    compression_option(help="NAMES; by default, as the name of TARGET says."),
    keyword("compression_level", type=click.IntRange(min=0)),
    "write_index",
    modes,
    "split",
    "allow_missing_shards",
    "storage_options",
    "source_storage",
    "target_storage",
    "json",
)


@tfr.declare("Write")
@sources
@target
@click.option(
    "--prefix",
    default="steps",
    show_default=True,
    metavar="NAME",
    help="Prefix of the columns with steps, NAME/...: lists with one value per step, or tensors.",
)
@click.option(
    "--lists",
    multiple=True,
    metavar="NAME,...",
    callback=names_or_none,
    help="These columns instead: names or globs, or !NAME to exclude a column; may be repeated.",
)
@click.option("--keep-empty", is_flag=True, help="Write a record without values for an episode without steps.")
@options(*_OF_ROWS)
def explode(
    sources: tuple[str, ...],
    target: str,
    prefix: str,
    lists: list[str] | None,
    keep_empty: bool,
    as_json: bool,
    **keywords: Any,
) -> None:
    """Write a record for each step of episodes, or item of lists.

    Lists that are named by --lists are taken side by side, as the boxes of an image. Each record has the columns of its
    episode, with the values of the step, and two more: the number of the episode (record) and of the step (step).
    TARGET may be a CSV, JSON, Parquet or Arrow file. Use - as SOURCE or TARGET for standard input or output.
    """
    import tfrecord_io

    made = partial(tfrecord_io.explode, prefix=prefix, lists=lists, keep_empty=keep_empty)
    _write_other_rows(made, sources, target, "row" if lists else "step", as_json=as_json, keywords=keywords)


@tfr.declare("Write")
@sources
@target
@click.option(
    "--lists",
    multiple=True,
    metavar="NAME,...",
    callback=names_or_none,
    help="Columns that become lists: names or globs, or !NAME for all others; by default steps/*; may be repeated.",
)
@options(*_OF_ROWS)
def implode(sources: tuple[str, ...], target: str, lists: list[str] | None, as_json: bool, **keywords: Any) -> None:
    """Gather consecutive records into lists: undo explode.

    Records that differ in the columns of the lists only become one record. The columns record and step, which explode
    adds, are left out. TARGET may be a JSON, Parquet or Arrow file. Use - as SOURCE or TARGET for standard input or
    output.
    """
    import tfrecord_io

    rows_of = tfrecord_io.formats.implode
    made = rows_of if lists is None else partial(rows_of, lists=lists)
    _write_other_rows(made, sources, target, "row", as_json=as_json, keywords=keywords)


def _write_other_rows(
    made: Callable[[Any], Any],
    sources: tuple[str, ...],
    target: str,
    noun: str,
    *,
    as_json: bool,
    keywords: dict[str, Any],
) -> None:
    """Write the rows that a function has `made` of those in files, to TFRecord or a file of a table."""
    from tfrecord_io.apps.api import open_reader, write_tfrecord
    from tfrecord_io.apps.cli import output
    from tfrecord_io.apps.file_formats.choose_formats import format_of_target
    from tfrecord_io.apps.file_formats.tables.table_files import write_table_rows

    if target == "-" and (keywords["shards"] or keywords["max_shard_bytes"]):
        raise click.UsageError("--shards and --max-shard-bytes need a path as TARGET, not -")
    target, summary_on_stderr = output_path(target)
    storage_options = keywords.pop("storage_options")
    src, dst = (keywords.pop(f"{side}_storage") or storage_options for side in _SIDES)
    reading = {name: keywords.pop(name) for name in ("columns", "filters", "split", "allow_missing_shards")}
    reading["storage_options"] = src
    written = {name: value for name, value in keywords.items() if value is not None and value is not False}
    format, of_records = format_of_target(target), sorted(written.keys() - {"mode"})
    if format is not None and (format.writer is None or of_records):
        given = ", ".join(f"--{name.replace('_', '-')}" for name in of_records)
        reason = f"{given}: not of {format.title}" if format.writer else f"{target}: {format.title} is not written here"
        raise click.UsageError(f"{reason}; write TFRecord first")
    with open_reader(read_from(sources, reading, open_reader), **reading) as episodes:
        rows = made(episodes)
        if format is not None:
            report = write_table_rows(rows, target, format, storage_options=dst, **written)
        else:
            report = write_tfrecord(rows, target, storage_options=dst, progress=True, **written)
    value = {name: getattr(report, name) for name in ("path", "records", "bytes", "columns")}
    text = f"{printable(report.path)}: {counted(report.records, noun)}, {counted(report.bytes, 'byte')}"
    output.print_result(as_json, value, text, err=summary_on_stderr)
