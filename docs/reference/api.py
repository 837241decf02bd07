"""Write the reference of the site: public names by their signatures and docstrings, commands by their help.

docs/reference/api.md is the list of names. The site shows the pages of build/reference: a page for each task, and the
list with links.
"""

from __future__ import annotations

import inspect
import re
import runpy
import textwrap
from collections import Counter
from operator import attrgetter
from pathlib import Path
from typing import Any, ForwardRef, NamedTuple

import click

import tfrecord_io
from tfrecord_io.apps.cli import tfr
from tfrecord_io.base.libraries import ADAPTERS
from tfrecord_io.base.public_names import SHOWN_IN, public_names
from tfrecord_io.bytes import FORMATS

LIST = Path(__file__).with_name("api.md")
SITE = Path(__file__).parents[2] / "build" / "reference"
WIDTH = 80  # of signatures, as the column of a page has room for
SHARED = 4  # functions with the same description of a keyword, from which it is described once for all

INTRODUCTION = """\
# API reference

Every public name, on a page for each task. Those with a prefix are in a module: `tfrecord_io.formats.open_npy`, after
`import tfrecord_io as tfr` also `tfr.formats.open_npy`. `tfrecord_io.typing` defines the types of parameters, such as
`InputPath` and `TableLike`, too.
"""
UNDESCRIBED = "`help(tfrecord_io.read_table)` and the site (`make docs`) describe parameters, results and errors.\n"

SAME = {"open_writer": "write_tfrecord"}  # functions whose keywords are described at another one
COMMON = "These have the same meaning in every function whose signature contains them."

GROUPS = {
    "Read": "read_tfrecord read_table read_arrays iter_arrays open_reader dataset follow Limits mix open_random "
    "infer_schema",
    "Write": "write_tfrecord open_writer",
    "Convert": "convert explode windows",
    "Images and folders of files": "open_image_folder write_image_folder open_coco open_voc open_yolo open_file_folder "
    "write_file_folder embed_files implode",
    "Other formats": "open_npy open_npz open_idx write_npy write_npz read_earth_engine write_earth_engine open_elwc "
    "write_elwc read_events write_tfds",
    "Copy records": "split merge shuffle sample dedupe join compact copy delete adopt",
    "Inspect": "build_index count verify salvage describe browse report diff read_metadata show_versions",
    "Records of any content": "RecordReader RecordWriter",
    "Schemas": "Schema InferredSchema Field scalar list_ tensor sequence image",
    "Results": "Reader ReadReport SkippedRegion Suggestion Writer WriteReport Dataset DatasetPiece MixedDataset "
    "WindowedDataset "
    "Explanation FilePlan FilterPlan Follower ArrayIterator ArrayStream RandomAccess SelectedRecords DatasetReport "
    "BrowseServer DeleteReport Progress",
    "Other libraries": "scan_polars register_duckdb register_pandas register_spark",
    "Single records and values, as in TensorFlow": "encode_example decode_example encode_examples decode_examples "
    "decode_json_example bytes_feature float_feature int64_feature serialize_tensor parse_tensor decode_raw "
    "TFRecordWriter TFRecordOptions",
    "Feature descriptions, as in TensorFlow": "parse_example parse_single_example parse_sequence_example "
    "parse_single_sequence_example FixedLenFeature VarLenFeature FixedLenSequenceFeature RaggedFeature SparseFeature "
    "SparseTensor RaggedTensor",
    "Protobuf messages": "Example SequenceExample Features Feature BytesList FloatList Int64List FeatureList "
    "FeatureLists",
    "Errors": "TFRecordError CorruptRecordError TruncatedRecordError DecodeError FeatureTypeError EncodeError "
    "SchemaError FeatureNotFoundError CompressionError MissingDependencyError ReplacedError",
    "Warnings": "PrecisionWarning SchemaWarning StaleIndexWarning StoppedEarlyWarning DamagedDataWarning",
}
# Each name with the module that shows it: "open_npy": "formats.open_npy".
FULL = {name: f"{shown_in}.{name}".lstrip(".") for shown_in in (*SHOWN_IN, "") for name in public_names(shown_in)}
# The methods of Dataset that adapters define.
_TO_LIBRARIES = [name for row in ADAPTERS.own for name in row.methods]
METHODS = {
    "RecordReader": "close",
    "RecordWriter": "write flush close",
    "Schema": "names types field select from_arrow from_json from_feature_description from_tfx from_tfds "
    "to_arrow to_json to_feature_description to_tfx to_python save",
    "InferredSchema": "strict",
    "ReadReport": "skipped_table",
    "WriteReport": "skipped_table",
    "Reader": "schema read_all read_next_batch read_pandas close",
    "Writer": "write close",
    "Dataset": "schema schema_source files bytes rows version count_rows explain refresh head select filter limit "
    "offset pieces to_table to_batches to_pandas to_arrays iter_arrays " + " ".join(_TO_LIBRARIES),
    "DatasetPiece": "schema files bytes read to_batches count_rows select filter",
    "ArrayIterator": "state restore close",
    "ArrayStream": "read_all read_next_batch close",
    "BrowseServer": "wait close",
    "RandomAccess": "lookup get all lookup_all select close",
    "SelectedRecords": "to_table",
    "SparseTensor": "to_dense",
    "RaggedTensor": "to_list",
}
# The pages of the site: name, title, groups.
TASKS = {
    "read": ("Read", ["Read", "Results"]),
    "write": ("Write", ["Write", "Records of any content"]),
    "convert": ("Convert", ["Convert", "Images and folders of files"]),
    "formats": ("Other formats", ["Other formats"]),
    "copy": ("Split, merge, copy, delete", ["Copy records"]),
    "inspect": ("Inspect and repair", ["Inspect"]),
    "schemas": ("Schemas and fields", ["Schemas"]),
    "libraries": ("Other libraries", ["Other libraries"]),
    "tensorflow": (
        "Functions of tf.io and tf.train",
        ["Single records and values, as in TensorFlow", "Feature descriptions, as in TensorFlow", "Protobuf messages"],
    ),
    "exceptions": ("Exceptions and warnings", ["Errors", "Warnings"]),
}
CALLED = {"RecordReader", "RecordWriter", "Schema", "Field"}  # classes that programs construct, besides the features
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_EXAMPLE = re.compile(r"(^>>> .*?)(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
_DIRECTIVE = re.compile(r"(\n\.\.\.)? +# doctest: .*")
_CODE = re.compile(r"(``.+?``|`[^`\n]+`)", re.DOTALL)


class Entry(NamedTuple):
    """A parameter, attribute, error or result in a docstring: ``name : type``, then indented text."""

    name: str
    type: str
    text: str


# ---- docstrings


def sections(documentation: str) -> dict[str, str]:
    """The text before the first heading as "", and the text below each heading.

    >>> sections("Sum.\\n\\nReturns\\n-------\\nint")
    {'': 'Sum.', 'Returns': 'int'}
    """
    head, *rest = _SECTION.split(documentation)
    return {"": head.strip(), **{rest[i]: rest[i + 1].strip() for i in range(0, len(rest), 2)}}


def entries(text: str) -> list[Entry]:
    """
    >>> entries("x : int\\n    A number.\\ny")
    [Entry(name='x', type='int', text='A number.'), Entry(name='y', type='', text='')]
    """
    found: list[Entry] = []
    for part in re.split(r"\n(?=\S)", text):
        head, _, body = part.partition("\n")
        name, _, kind = head.partition(" : ")
        found.append(Entry(name, kind, textwrap.dedent(body).strip()))
    return found


def markdown(text: str) -> str:
    """Text of a docstring as Markdown: examples as blocks, code spans, and links to public names.

    >>> markdown("As ``x ** 2`` in `read_table`, or 2**3.")
    'As `x ** 2` in [`read_table`](#read_table), or 2\\\\*\\\\*3.'
    >>> markdown("Sum." + chr(10) + chr(10) + chr(62) * 3 + " [1, 2]  # doctest: +SKIP")
    'Sum.\\n\\n```pycon\\n>>> [1, 2]\\n```'
    """
    return "".join(example(part) if i % 2 else prose(part) for i, part in enumerate(_EXAMPLE.split(text)))


def example(text: str) -> str:
    return f"```pycon\n{_DIRECTIVE.sub('', text)}\n```"


def prose(text: str) -> str:
    """Text without examples as Markdown."""
    parts = _CODE.split(text)
    for i, part in enumerate(parts):
        if i % 2:
            code = " ".join(part.strip("`").split())
            name = code.rpartition(".")[2]
            refers = not part.startswith("``") and code.removeprefix("tfrecord_io.") in (name, FULL.get(name))
            parts[i] = f"[`{FULL[name]}`](#{anchor(name)})" if refers and name in FULL else f"`{code}`"
        else:
            parts[i] = re.sub(r"([*<\[\]])", r"\\\1", part)
    return "".join(parts)


def documentation(item: Any) -> dict[str, str]:
    own = vars(item).get("__doc__") if inspect.isclass(item) else item.__doc__
    return sections(inspect.cleandoc(own or ""))


def item_of(name: str) -> Any:
    return attrgetter(FULL[name])(tfrecord_io)


def summary(name: str) -> str:
    item = item_of(name)
    if is_message(item):
        return f"The message `{item.DESCRIPTOR.full_name}`."
    return markdown(documentation(item)[""].split("\n\n")[0].replace("\n", " "))


# ---- signatures


def is_message(item: Any) -> bool:
    return hasattr(item, "DESCRIPTOR")


def annotation(value: Any) -> str:
    """
    >>> annotation("Any"), annotation(int)
    ('Any', 'int')
    """
    if isinstance(value, ForwardRef):
        return value.__forward_arg__
    return value if isinstance(value, str) else inspect.formatannotation(value)


def signature(name: str, item: Any) -> str:
    """``name(parameters) -> result``, in lines of at most `WIDTH` characters."""
    call = inspect.signature(item)
    own = ("self", "cls", "dataset")  # methods of a dataset are functions of a dataset
    parameters = [p for p in call.parameters.values() if p.name not in own]
    words, keyword_only = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            words.append("*")
        keyword_only = keyword_only or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        hint = "" if p.annotation is p.empty else f": {annotation(p.annotation)}"
        default = "" if p.default is p.empty else f"{' = ' if hint else '='}{p.default!r}"
        words.append(f"{star}{p.name}{hint}{default}")
    returned = call.return_annotation
    arrow = "" if returned is call.empty or inspect.isclass(item) else f" -> {annotation(returned)}"
    line = f"{name}({', '.join(words)}){arrow}"
    if len(line) <= WIDTH:
        return line
    body = [textwrap.fill(part, WIDTH, break_long_words=False) for part in packed(words)]
    return f"{name}(\n" + textwrap.indent("\n".join(body), "    ") + f"\n){arrow}"


def packed(words: list[str]) -> list[str]:
    """Join words by commas to lines; none is broken inside of a word."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 6 > WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word + ","
    return lines


# ---- the pages


def shared_keywords() -> dict[Entry, list[str]]:
    """Keywords with one description in several functions, and the names of those."""
    uses: dict[Entry, list[str]] = {}
    for name in f"{GROUPS['Read']} {GROUPS['Write']} {GROUPS['Inspect']}".split():
        for entry in entries(documentation(item_of(name)).get("Parameters", "")):
            uses.setdefault(entry, []).append(name)
    frequent = {entry: names for entry, names in uses.items() if len(names) >= SHARED and entry.type}
    times = Counter(entry.name for entry in frequent)
    return {entry: names for entry, names in frequent.items() if times[entry.name] == 1}


def listed(items: list[Entry]) -> str:
    lines = []
    for name, kind, text in items:
        hint = f" ({markdown(kind)})" if kind else ""
        body = f": {textwrap.indent(markdown(text), '  ').lstrip()}" if text else ""
        lines.append(f"- **{markdown(name)}**{hint}{body}")
    return "\n".join(lines)


def section(name: str, title: str, items: list[Entry], shared: dict[Entry, list[str]]) -> str:
    other = SAME.get(name, "")
    described = entries(documentation(item_of(other))[title]) if other else []
    same = [entry.name for entry in items if entry in described and entry not in shared]
    common = [entry.name for entry in items if entry in shared]
    lines = listed([entry for entry in items if entry.name not in (*same, *common)]).splitlines()
    for text, names in ((f"as in [`{other}`](#{other})", same), ("[common keywords](#common-keywords)", common)):
        if names:
            lines.append(f"- {text}: " + ", ".join(f"`{each}`" for each in names))
    return f"{title}:\n\n" + "\n".join(lines)


def method(item: Any, name: str) -> str:
    value = getattr(item, name)
    line = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    shown = signature(name, value) if callable(value) else name
    return f"- `{' '.join(shown.split())}`: {markdown(line)}"


def anchor(name: str) -> str:
    """The anchor of a name; that of a class which differs from a function in case alone says so."""
    return f"{name.lower()}-class" if name != name.lower() and name.lower() in FULL else name.lower()


def details(name: str, shared: dict[Entry, list[str]]) -> str:
    item = item_of(name)
    heading = f"### `{FULL[name]}` {{#{anchor(name)}}}"
    if is_message(item):
        fields = ", ".join(f"`{field.name}`" for field in item.DESCRIPTOR.fields)
        return f"{heading}\n\n{summary(name)} Fields: {fields}."
    parts = [heading]
    if not inspect.isclass(item) or name in CALLED or name.endswith("Feature"):
        parts.append(f"```py\n{signature(FULL[name], item)}\n```")
    text = documentation(item)
    parts.append(markdown(text.pop("")))
    if inspect.isclass(item) and issubclass(item, Exception):
        bases = " and ".join(f"`{base.__name__}`" for base in item.__bases__)
        parts[-1] += f" A subclass of {bases}."
    for title, body in text.items():
        if title == "Examples":
            parts.append(example(body))
        elif title == "Notes":
            parts.append(markdown(body))
        else:
            parts.append(section(name, title, entries(body), {} if inspect.isclass(item) else shared))
    if methods := METHODS.get(name):
        parts.append("Methods and properties:\n\n" + "\n".join(method(item, each) for each in methods.split()))
    return "\n\n".join(parts)


def names() -> str:
    """The names of each group."""
    parts = [INTRODUCTION, UNDESCRIBED]
    for group, members in GROUPS.items():
        shown = textwrap.fill(", ".join(f"`{FULL[name]}`" for name in members.split()), 140, break_on_hyphens=False)
        parts.append(f"**{group}**: {shown}\n")
    return "\n".join(parts)


def linked(text: str, page: str) -> str:
    """Links to names lead to the pages that describe them."""
    homes = {anchor(name): task for task, (_, groups) in TASKS.items() for g in groups for name in GROUPS[g].split()}
    homes["common-keywords"] = "api"

    def link(match: re.Match[str]) -> str:
        home = homes.get(match[1], page)
        return match[0] if home == page else f"]({home}.md#{match[1]})"

    return re.sub(r"\]\(#([\w-]+)\)", link, text)


def render() -> dict[str, str]:
    """The pages of the site, by their names."""
    shared = shared_keywords()
    pages, start = {}, [INTRODUCTION]
    for task, (title, groups) in TASKS.items():
        parts = [f"# API: {title}\n"]
        for group in groups:
            rows = "\n".join(
                f"| [`{FULL[name]}`](#{anchor(name)}) | {summary(name)} |" for name in GROUPS[group].split()
            )
            start.append(f"**{group}**\n\n| name | summary |\n|---|---|\n{rows}\n")
            parts.append(f"## {group}\n")
            parts += [f"{details(name, shared)}\n" for name in GROUPS[group].split()]
        pages[task] = "\n".join(parts)
    pages["api"] = "\n".join([*start, f"## Common keywords\n\n{COMMON}\n\n{listed(list(shared))}\n"])
    return {page: linked(text, page) for page, text in pages.items()}


def commands() -> dict[str, str]:
    """A page for each section of `tfr --help`, and "commands", the tables of the commands for the page of `tfr`."""
    pages, start = {}, ["## Commands\n"]
    for section, members in tfr.sections.items():
        page = f"tfr-{section.lower().replace(' ', '-')}"
        links = {command: f"[`tfr {command.name}`](reference/{page}.md#tfr-{command.name})" for command in members}
        rows = [f"| {link} | {cell(plain(first_sentence(command)))} |" for command, link in links.items()]
        start.append(f"**{section}**\n\n| command | |\n|---|---|\n" + "\n".join(rows) + "\n")
        pages[page] = "\n".join([f"# tfr: {section}\n", *map(command_help, members)])
    return pages | {"commands": "\n".join(start)}


def formats() -> str:
    """The table of the formats that `tfr convert` reads and writes, for the page of `tfr`."""
    rows = ["| format | suffixes | | |", "|---|---|---|---|"]
    for row in FORMATS.own:
        names, suffixes = (", ".join(f"`{each}`" for each in some) for some in (row.keys, row.suffixes))
        help = re.sub("``|`tfrecord_io\\.", "`", row.help)
        rows.append(f"| {names} | {suffixes} | {row.one_way} | {help} |")
    return "\n".join(rows)


def command_help(command: click.Command) -> str:
    """A section for a command of `tfr`: its help, and a table of its options."""
    context = click.Context(command, info_name=f"tfr {command.name}")
    about = re.sub(r"[\b]\s*", "", inspect.cleandoc(command.help or ""))
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    records = [p.get_help_record(context) for p in command.get_params(context) if isinstance(p, click.Option)]
    rows = [f"| `{option}` | {cell(plain(text))} |" for option, text in filter(None, records)]  # code keeps its |
    options = "\n".join(["| option | meaning |", "|---|---|", *rows, ""])
    return f"## tfr {command.name}\n\n`{usage}`\n\n{plain(about)}\n\n{options}"


def first_sentence(command: click.Command) -> str:
    """The first line of a command's help."""
    return inspect.cleandoc(command.help or "").partition("\n\n")[0].replace("\n", " ")


def plain(text: str) -> str:
    """Text of a help as Markdown.

    >>> plain("a*b <c>")
    'a\\\\*b \\\\<c>'
    """
    return re.sub(r"([*<\[\]_])", r"\\\1", text)


def cell(text: str) -> str:
    """
    >>> cell("a | b\\nc")
    'a \\\\| b c'
    """
    return " ".join(text.replace("|", r"\|").split())


if __name__ == "__main__":
    LIST.write_text(names(), encoding="utf-8")
    SITE.mkdir(parents=True, exist_ok=True)
    for page, text in (render() | commands() | {"file-formats": formats()}).items():
        (SITE / f"{page}.md").write_text(text, encoding="utf-8")
    runpy.run_path(str(LIST.with_name("stub.py")), run_name="__main__")  # the same signatures, for static tools
