"""Arguments and options shared by several commands; their texts become keywords of the library."""

from __future__ import annotations

import errno
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field
from datetime import timedelta
from functools import cache, reduce, wraps
from operator import and_
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import click

from tfrecord_io.apps.cli.command_group import error_line, tfr
from tfrecord_io.kit import CODECS, ReadOptions, WriteOptions, listed, printable
from tfrecord_io.typing import FileMode, Partitions, RecordTypeName, WriteMode

if TYPE_CHECKING:
    from tfrecord_io.kit import Condition


def _conditions(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> Condition | None:
    if not texts:
        return None
    from tfrecord_io.kit import condition_of  # with pyarrow

    try:
        return reduce(and_, map(condition_of, texts))
    except ValueError as error:
        raise click.BadParameter(error_line(error)) from None


def where_option(text: str) -> Callable[[Any], Any]:
    """Declare --where; `text` says what it selects, with examples."""
    text += " If repeated, all conditions must hold."
    return click.option("--where", "filters", multiple=True, metavar="CONDITION", callback=_conditions, help=text)


EXAMPLES = (
    '"label == 3", "name in [\'a\', \'b\']", "n between 1 and 5", "name startswith ca", "tags contains cat" or '
    '"label is not null".'
)


STDIN = "/dev/stdin"
_READ_DEFAULTS = {name: field.default for name, field in ReadOptions.__dataclass_fields__.items()}
_TIME_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
SCHEMA_FORMATS = ("arrow", "tfx", "feature_description", "json", "python")  # those of cli.schema_text


def _storage_options(ctx: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any] | None:
    """Parse KEY=VALUE pairs into a dict: a.b=x is nested; values may be JSON, or True, False or None.

    Messages show no value, as it may be a secret.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        *outer, last = key.split(".")
        nested = options
        for name in outer:
            nested = nested.setdefault(name, {})
            if not isinstance(nested, dict):
                break
        if not separator or not last or not isinstance(nested, dict):
            raise click.BadParameter("expected KEY=VALUE, such as anon=true or client_kwargs.region_name=eu-west-1")
        try:
            nested[last] = json.loads(text)
        except ValueError:
            # The text "False" would be true.
            nested[last] = {"True": True, "False": False, "None": None}.get(text, text)
    return options or None


def duration(ctx: click.Context, option: click.Parameter, text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if unit not in _TIME_UNITS or not number.isdigit():
        raise click.BadParameter(f"'{text}' is not a duration: expected 30m, 12h or 2d")
    return timedelta(**{_TIME_UNITS[unit]: int(number)})


def number(*names: str, least: int = 0, default: int | None = None, help: str) -> Callable[[Any], Any]:
    """Declare an option with a whole number."""
    type_, has_default = click.IntRange(min=least), default is not None
    return click.option(*names, type=type_, default=default, show_default=has_default, metavar="N", help=help)


class SourcesArgument(click.Argument):
    """The argument SOURCE..., before TARGET: a single path counts as SOURCE, and TARGET is missing."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        target = next(param for param in ctx.command.params if param.name == "target")
        sources = opts.get(self.name or "")
        if not (isinstance(sources, tuple) and sources) and isinstance(opts.get("target"), str):
            raise click.MissingParameter(ctx=ctx, param=target)
        return super().handle_parse_result(ctx, opts, args)


def replace_dash(ctx: click.Context, argument: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Replace - by the path of standard input."""
    if paths.count("-") > 1:
        raise click.BadParameter("- is standard input, which can be read only once")
    if "-" in paths and sys.stdin is None:
        raise click.BadParameter("standard input is closed")
    return tuple(STDIN if path == "-" else path for path in paths)


def not_stdin(ctx: click.Context, argument: click.Parameter, path: str) -> str:
    """Refuse standard input, which has no random access."""
    if path == "-":
        raise click.BadParameter("standard input is read in order only: pass the path of a file")
    return path


def _one_or_list(ctx: click.Context, argument: click.Parameter, paths: tuple[str, ...]) -> str | list[str]:
    paths = replace_dash(ctx, argument, paths)
    return paths[0] if len(paths) == 1 else list(paths)


sources = click.argument(
    "sources", cls=SourcesArgument, metavar="SOURCE...", nargs=-1, required=True, callback=replace_dash
)
target = click.argument("target", metavar="TARGET")


def _not_stdout(_ctx: click.Context, _argument: click.Parameter, path: str) -> str:
    if path == "-":
        raise click.BadParameter("files are not written to standard output: pass a path")
    return path


target_path = click.argument("target", metavar="TARGET", callback=_not_stdout)


def pairs(example: str) -> Callable[[Any, Any, tuple[str, ...]], dict[str, str] | None]:
    """Make a callback that parses NAME=VALUE pairs into a dict; names may contain "="."""

    def parse(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
        for pair in texts:
            if not all(pair.rpartition("=")[::2]):
                raise click.BadParameter(f"'{pair}': expected {option.metavar}, such as {example}")
        return {name: value for name, _, value in (pair.rpartition("=") for pair in texts)} or None

    return parse


def _metadata(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
    """NAME=TEXT pairs as a dict; texts may contain "=", as addresses do."""
    for pair in texts:
        if not all(pair.partition("=")[:2]):
            raise click.BadParameter(f"'{pair}': expected {option.metavar}, such as source=https://example.com/logs")
    return {name: text for name, _, text in (pair.partition("=") for pair in texts)} or None


def _txn(ctx: click.Context, option: click.Parameter, text: str | None) -> tuple[str, int] | None:
    """JOB=NUMBER as a pair; the name of a job may contain "="."""
    if text is None:
        return None
    job, _, number = text.rpartition("=")
    if not (job and number.isdecimal() and number.isascii()):
        raise click.BadParameter(f"'{text}': expected {option.metavar}, such as daily=17")
    return job, int(number)


paths = click.argument("path", metavar="PATH...", nargs=-1, required=True, callback=_one_or_list)


def type_option(where: str, example: str) -> Callable[[Any], Any]:
    """Declare --type, which states types of columns; `where` says of which."""
    text = f"Type of a column {where}, such as {example}; may be repeated."

    def parse(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
        types = [_split_type(text) for text in texts]
        for text, pair in zip(texts, types, strict=True):
            if not all(pair):
                raise click.BadParameter(f"'{text}': expected {option.metavar}, such as {example}")
        return dict(types) or None

    return click.option("--type", "schema_overrides", multiple=True, metavar="NAME=TYPE", callback=parse, help=text)


def _split_type(text: str) -> tuple[str, str]:
    """Split NAME=TYPE at the last "=" outside parentheses; names may contain "=", and types as image(resize=(8,8)).

    >>> _split_type("a=b=image(resize=(8,8))")
    ('a=b', 'image(resize=(8,8))')
    """
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if text[at] == "=" and depth == 0:
            return text[:at], text[at + 1 :]
    return "", ""


def _schema_file(ctx: click.Context, option: click.Parameter, path: str | None) -> Any:
    """The schema in a file, in one of the forms that ``tfr schema --as json`` and ``--as tfx`` print."""
    if path is None:
        return None
    import tfrecord_io
    from tfrecord_io.errors import SchemaError

    try:
        with open(path, "rb") as file:
            content = file.read()
        schema = tfrecord_io.Schema
        return schema.from_json(content) if content.lstrip()[:1] == b"{" else schema.from_tfx(content)
    except (SchemaError, UnicodeDecodeError) as error:
        expected = "expected what tfr schema --as json or --as tfx prints"
        raise click.BadParameter(f"{printable(path)} has no schema ({error}): {expected}") from None


class ListingOption(click.Option):
    """Option whose help lists names instead of NAMES: they are looked up then, as other packages add some."""

    def __init__(self, *arguments: Any, names: Callable[[], Iterable[str]], **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._names = names

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = (self.help or "").replace("NAMES", listed("or", *self._names()))
        return super().get_help_record(ctx)


def compression_option(**keywords: Any) -> Callable[[Any], Any]:
    names = lambda: (CODECS.PLAIN, *CODECS.names())  # noqa: E731
    return click.option("--compression", cls=ListingOption, names=names, metavar="NAME", **keywords)


def _names(ctx: click.Context, option: click.Parameter, lists: tuple[str, ...]) -> list[str]:
    """Split lists of names at commas; a glob has "?" for a comma in a name."""
    return [name for names in lists for name in names.split(",") if name]


def names_or_none(ctx: click.Context, option: click.Parameter, lists: tuple[str, ...]) -> list[str] | None:
    return _names(ctx, option, lists) or None


def modes(
    command: Callable[..., Any],
    values: Sequence[str] = get_args(FileMode),
    default: str = "a file is replaced, and a dataset is an error",
    target: str = "TARGET",
) -> Callable[..., Any]:
    """Declare --mode, for existing output, and the short forms --overwrite and --append."""
    shorts = {"overwrite": f"Replace {target}: --mode overwrite.", "append": "Add rows to the dataset: --mode append."}
    shorts = {name: text for name, text in shorts.items() if name in values}

    @wraps(command)
    def run(*arguments: Any, mode: str | None, **options: Any) -> Any:
        for name in [name for name in shorts if options.pop(name)]:
            if mode not in (None, name):
                raise click.UsageError(f"--{name} is --mode {name}: it cannot be combined with --mode {mode}")
            mode = name
        sources, target = options.get("sources", ()), options.get("target", "")
        folder = os.path.dirname(target)
        is_beside = len(sources) > 1 and all(os.path.dirname(source) == folder for source in sources)
        # A shell that expands a glob makes its last file the target.
        may_be_source = is_beside and target != "-"  # which is standard output, whatever files there are
        if may_be_source and mode is None and not options.get("dry_run") and os.path.isfile(target):
            reason = "the file exists, and is TARGET, as it is the last path"
            raise FileExistsError(errno.EEXIST, f"{reason}; --mode overwrite replaces it", target)
        return command(*arguments, mode=mode, **options)

    for name, text in reversed(shorts.items()):
        run = click.option(f"--{name}", is_flag=True, help=text)(run)
    text = f"What to do if {target} exists; by default, {default}."
    return click.option("--mode", type=click.Choice(values), help=text)(run)


def write_modes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare --mode, --partition-by, --overwrite-where, --evolve, --metadata and --txn."""
    text = "With --mode append: write nothing if this number of the job, or a later one, is in the dataset."
    command = click.option("--txn", metavar="JOB=NUMBER", callback=_txn, help=text)(command)
    text = "Text that the manifest of the dataset keeps; may be repeated."
    run = click.option("--metadata", multiple=True, metavar="NAME=TEXT", callback=_metadata, help=text)(command)
    run = keyword("evolve", default=None)(run)
    text = "Write one folder for each value of these columns (day=1/); may be repeated."
    run = click.option("--partition-by", multiple=True, metavar="COLUMN,...", callback=names_or_none, help=text)(run)
    text = "With --mode overwrite_partitions: replace all folders with this value; may be repeated."
    parse = pairs("day=05-01")
    run = click.option("--overwrite-where", multiple=True, metavar="COLUMN=VALUE", callback=parse, help=text)(run)
    return modes(run, get_args(WriteMode))


def messages(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare --message and --descriptor-set, which become ``record_type=(descriptor set, message)``."""

    @wraps(command)
    def run(*arguments: Any, message: str | None, descriptor_set: str | None, **options: Any) -> Any:
        if (message is None) != (descriptor_set is None):
            raise click.UsageError("--message and --descriptor-set belong together")
        if message is not None and options.get("record_type") is not None:
            raise click.UsageError("--message says what the records are: it cannot be combined with --record-type")
        if message is not None:
            options["record_type"] = (descriptor_set, message)
        return command(*arguments, **options)

    run = click.option(
        "--descriptor-set", metavar="FILE", help="Descriptor set with the message type, compiled by protoc."
    )(run)
    return click.option("--message", metavar="NAME", help="Protobuf message type of the records, such as pkg.Frame.")(
        run
    )


def indexed_columns(*names: str, text: str) -> Callable[[Any], Any]:
    """Declare an option with the columns of a column index."""

    text += (
        " of these columns to FILE.column_index; may be repeated. '*scalars' stands for all columns of single values."
    )
    return click.option(*names, multiple=True, metavar="NAME,...", callback=_names, help=text)


def write_index(command: Callable[..., Any], default: bool | None = False) -> Callable[..., Any]:
    """Declare --write-index, and --index-columns, whose columns become the value of the keyword."""

    @wraps(command)
    def run(*arguments: Any, index_columns: list[str], **options: Any) -> Any:
        if index_columns:
            options["write_index"] = index_columns
        return command(*arguments, **options)

    run = indexed_columns("--index-columns", text="Write the offsets and the values")(run)
    return keyword("write_index", default=default)(run)


def storage(name: str, keyword: str, what: str) -> Callable[[Any], Any]:
    """Declare an option with KEY=VALUE pairs for fsspec."""
    text = f"Option for {what}, such as anon=true; may be repeated."
    return click.option(name, keyword, multiple=True, metavar="KEY=VALUE", callback=_storage_options, help=text)


_HELP = {
    "allow_missing_shards": "Read the shards that exist, even if some are missing or duplicated.",
    "compression_level": "Level of the compression, from fast to small.",
    "evolve": "Allow appended rows to add columns, or to widen types.",
    "max_shard_bytes": "Start a new file before this size is exceeded, in uncompressed bytes.",
    "on_error": "On damaged data: fail, stop and keep the records before it, or skip it.",
    "record_type": "Type of the records; detected by default.",
    "shards": "Write this number of files, such as name-00000-of-00008, and a manifest.",
    "split": "Split of a TFDS (tensorflow_datasets) dataset, such as train[:80%].",
    "threads": "Number of threads; by default, one per CPU core.",
    "write_index": "Write an index of record offsets, <path>.index, for random access and counting.",
}

type_hints = cache(get_type_hints)  # of the fields of a class, many of which become options


def keyword(name: str, **attributes: Any) -> Callable[[Any], Any]:
    """Declare the option of a keyword; type, choices and default come from the field, unless stated in `attributes`."""
    cls = ReadOptions if name in ReadOptions.__dataclass_fields__ else WriteOptions
    types = _types(type_hints(cls)[name])
    default = cls.__dataclass_fields__[name].default
    from_field: dict[str, Any]
    if bool in types:
        from_field = {"is_flag": True}
    elif types[0] is int:
        from_field = {"type": click.IntRange(min=1), "metavar": "N"}
    else:
        choices = click.Choice([value for value in types if isinstance(value, str)])
        from_field = {"type": choices, "default": default, "show_default": default is not None}
    return click.option(f"--{name.replace('_', '-')}", **{"help": _HELP[name], **from_field, **attributes})


def field_option(field: Field[Any], hint: Any) -> click.Option:
    """Make the option of a field: its type decides the form, its metadata has the help; None unless stated."""
    kind = next(type_ for type_ in (get_args(hint) or (hint,)) if type_ is not type(None))
    names, metavar = [field.name.replace("_", "-")], field.metadata["metavar"]
    attributes: dict[str, Any] = {"default": None, "help": field.metadata["help"], "metavar": metavar or None}
    if kind is bool and field.default is None:
        names.append(f"no-{names[0]}")
    elif kind is bool:
        attributes["is_flag"] = True
    elif kind is int:
        attributes["type"] = click.IntRange(min=0)
    elif get_origin(kind) is Literal:
        attributes["type"] = click.Choice(get_args(kind))
    elif get_origin(kind) is Mapping:
        attributes |= {"multiple": True, "callback": pairs(field.metadata["example"])}
    elif get_origin(kind) is Sequence and "," in metavar:
        attributes["callback"] = lambda _ctx, _param, text: text.split(",") if text else None
    elif get_origin(kind) is Sequence:
        attributes |= {"multiple": True, "callback": lambda _ctx, _param, texts: list(texts) or None}
    return click.Option(["/".join(f"--{name}" for name in names)], **attributes)


def _types(hint: Any) -> list[Any]:
    """List the types of a union, and the values of its literals."""
    return [type_ for part in get_args(hint) for type_ in _types(part)] or [hint]


plain_record_type = keyword("record_type", type=click.Choice(get_args(RecordTypeName)))
# Options of keywords whose form differs from the keyword in Python.
_SPECIAL_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "columns": click.option(
        "-c",
        "--columns",
        multiple=True,
        metavar="NAME,...",
        callback=names_or_none,
        help="Names or globs, or !NAME to exclude a column; may be repeated.",
    ),
    "compression": compression_option(
        default=CODECS.INFER,
        show_default=True,
        callback=lambda _ctx, _param, name: None if name == CODECS.PLAIN else name,
        help=f"{CODECS.INFER}, NAMES.",
    ),
    "filters": where_option(f"Only rows that meet a condition, such as {EXAMPLES}"),
    "storage_options": storage("--storage-option", "storage_options", "remote storage"),
    "source_storage": storage("--source-option", "source_storage", "the storage of SOURCE"),
    "target_storage": storage("--target-option", "target_storage", "the storage of TARGET"),
    "split": keyword("split", type=str, metavar="SPLIT"),
    "partitions": click.option(
        "--partitions",
        type=click.Choice(get_args(Partitions)),
        default="features",
        show_default=True,
        help="Store the values in folder names (day=1/) as features, keep the folders, or drop the values.",
    ),
    "max_decompression_ratio": click.option(
        "--max-decompression-ratio",
        type=click.FloatRange(min=1),
        metavar="RATIO",
        help="Refuse compressed files that expand to more than this many times their size; by default, any number.",
    ),
    "record_type": lambda command: plain_record_type(messages(command)),
    "json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    "write_index": write_index,
    "schema": click.option(
        "--schema",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        callback=_schema_file,
        help="Columns and types to read: a file with what tfr schema --as json (or tfx) prints.",
    ),
    "schema_overrides": type_option("of the files", "image_raw=image(uint8,(height,width,3))"),
}


def read_from(sources: Any, keywords: dict[str, Any], verb: Callable[..., Any] | None = None, **how: Any) -> Any:
    """Return the source of a command; a dataset if there are reading options that the function `verb` does not take.

    These options are removed from `keywords`, which then are keywords of `verb`. With --source-option or
    --target-option, the storage options left in `keywords` are those of the target.
    """
    source = sources[0] if isinstance(sources, tuple | list) and len(sources) == 1 else sources
    of_verb = inspect.signature(verb).parameters if verb is not None else keywords
    ratio = keywords.pop("max_decompression_ratio", None)
    if ratio is not None:
        import tfrecord_io

        keywords["limits"] = tfrecord_io.Limits(decompression_ratio=ratio)
    reading = {name: keywords.pop(name) for name in [*keywords] if name not in of_verb and name in _READ_DEFAULTS}
    reading = {name: value for name, value in reading.items() if value != _READ_DEFAULTS[name]}
    storage = keywords.pop("source_storage", None)
    if (target := keywords.pop("target_storage", None)) is not None or storage is not None:
        storage = storage or keywords["storage_options"]
        keywords["storage_options"] = target or keywords["storage_options"]
    elif reading:
        storage = keywords.get("storage_options")
    if storage is None and not reading:
        return source
    from tfrecord_io.apps.lazy_dataset import dataset

    return dataset(source, storage_options=storage, **how, **reading)


def options(*items: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Declare the options of a command: an item is the name of a keyword, or an option itself."""

    def declare(function: Any) -> Any:
        for item in reversed(items):
            function = (item if callable(item) else _SPECIAL_OPTIONS.get(item) or keyword(item))(function)
        return function

    return declare


def inspection(
    *items: str | Callable[[Any], Any], section: str = "Show", **keywords: Any
) -> Callable[[Any], click.Command]:
    """Declare a command with PATH, the options of `items`, and the options of all such commands."""
    declared = options(paths, *items, "split", "allow_missing_shards", "storage_options", "json")
    return lambda function: tfr.declare(section, **keywords)(declared(function))
