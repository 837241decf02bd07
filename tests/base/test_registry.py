"""Rows of this package and of others, which are found by the entry points of an installed distribution; and that the
facts of rows stand nowhere else."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import itertools
import re
import runpy
import threading
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import SimpleNamespace as Shape
from typing import Any, get_args

import click
import pytest

import tfrecord_io as tfr
from extras import EXTRAS
from installed import install
from tfrecord_io import typing
from tfrecord_io.apps.cli.command_group import all_commands
from tfrecord_io.base import Options, ReadOptions
from tfrecord_io.base.libraries import ADAPTERS, Adapter
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.base.public_names import SHOWN_IN, public_names
from tfrecord_io.base.registry import Registry, needs
from tfrecord_io.bytes.compression import CODECS, Codec
from tfrecord_io.bytes.format.foreign_files import ForeignFile
from tfrecord_io.bytes.format.known_formats import FORMATS
from tfrecord_io.columns.schema.tensor_types import TENSOR_ENCODINGS, encoding_rules

ROOT = Path(__file__).parents[2]
CIRCLE = Shape(name="circle", aliases=("round",), suffixes=(".o", ".circle"))
SQUARE = Shape(name="square", aliases=(), suffixes=(".sq",))
CODE = """
from types import SimpleNamespace as Shape

def shape(name, *aliases, suffixes=()):
    return Shape(name=name, aliases=aliases, suffixes=suffixes)

"""
_NUMBERS = itertools.count()  # modules stay imported


class Packages:
    """Other packages, which add shapes."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.group = folder, f"shapes_{next(_NUMBERS)}"

    def add(self, code: str, *points: str) -> str:
        name = f"shapes_{next(_NUMBERS)}"
        install(self._folder, name, CODE + code, self.group, {point: f"{name}:{point}" for point in points})
        importlib.invalidate_caches()
        return name

    @property
    def shapes(self) -> Registry[Any]:
        return Registry("shape", Shape, (CIRCLE, SQUARE), self.group)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Packages(tmp_path)


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The groups whose entry points were looked up."""
    groups: list[str] = []
    real = importlib.metadata.entry_points

    def counted(*, group: str) -> Any:
        groups.append(group)
        return real(group=group)

    monkeypatch.setattr(importlib.metadata, "entry_points", counted)
    return groups


def test_rows_are_found_by_name_alias_and_suffix(packages: Packages) -> None:
    shapes = packages.shapes
    assert shapes["Circle"] is shapes["ROUND"] is shapes.get("round") is CIRCLE
    assert shapes.of_path("a.b/c.O") is shapes.of_path("x.circle") is CIRCLE
    assert [shapes.of_path(path) for path in ("o", ".o", "a.o/b", "", "a.tfrecord")] == [None] * 5
    assert [shapes.without_suffix(path) for path in ("a.x.SQ", ".o", "o", "a.tfrecord")] == [
        *("a.x", "", "o", "a.tfrecord")
    ]
    assert list(shapes) == [CIRCLE, SQUARE]
    assert shapes.names() == ("circle", "square")
    assert shapes.suffixes() == (".o", ".circle", ".sq")


def test_an_unknown_name_is_an_error_with_the_names(packages: Packages) -> None:
    packages.add("heart = shape('heart')", "heart")
    assert packages.shapes.get("star") is None
    with pytest.raises(ValueError, match="unknown shape 'star'; expected 'circle', 'square', 'heart'"):
        packages.shapes["star"]


def test_another_package_adds_rows(packages: Packages) -> None:
    packages.add("heart, star = shape('heart', 'core', suffixes=('.h',)), shape('star')", "heart", "star")
    assert packages.shapes["CORE"].name == "heart"
    assert packages.shapes.of_path("a.h").name == "heart"
    assert packages.shapes.without_suffix("a.h") == "a"
    assert packages.shapes.names() == ("circle", "square", "heart", "star")
    assert [row.name for row in packages.shapes] == ["circle", "square", "heart", "star"]


def test_own_rows_and_usual_files_cost_no_lookup(packages: Packages, lookups: list[str]) -> None:
    packages.add("heart = shape('heart')", "heart")
    shapes = packages.shapes
    assert [shapes["circle"], shapes.get("round"), shapes.of_path("a.sq"), next(iter(shapes))]
    for suffix in ("", *Registry.RECORD_SUFFIXES, "-00000-of-00008", ".tfrecord-00000-of-00008", ".17"):
        assert shapes.of_path("a" + suffix) is None
        assert shapes.without_suffix("a" + suffix) == "a" + suffix
    assert lookups == []
    assert shapes.get("heart")
    assert [shapes.names(), shapes.of_path("a.parquet")]
    assert lookups == [packages.group]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import absent_module", r"'\w+:row' cannot be loaded \(ModuleNotFoundError: No module named 'absent_m"),
        ("raise SystemError('no\\nluck')", r"'\w+:row' cannot be loaded \(SystemError: no\\nluck\)"),
        ("", r"'\w+:row' cannot be loaded \(AttributeError: module '\w+' has no attribute 'row'\)"),
        ("row = Shape", r"'\w+:row' is a type, not a SimpleNamespace"),
        ("row = shape('Round')", "'round' is taken"),
        ("row = shape('ring', 'square')", "'square' is taken"),
        ("row = shape('ring', suffixes=('.r', '.sq'))", "'.sq' is taken"),
    ],
)
def test_a_row_that_cannot_be_used_is_left_out_with_a_warning(packages: Packages, code: str, reason: str) -> None:
    name, shapes = packages.add(code, "row"), packages.shapes
    packages.add("heart = shape('heart')", "heart")
    with pytest.warns(RuntimeWarning, match=f"the shape 'row' of the package '{name}' is left out: {reason}") as warned:
        assert shapes.names() == ("circle", "square", "heart")
    assert [warning.filename for warning in warned] == [__file__]
    with warnings.catch_warnings(action="error"):  # once
        assert shapes.get("ring") is shapes.of_path("a.r") is None


def test_of_two_packages_with_one_name_the_first_in_the_alphabet_has_it(packages: Packages) -> None:
    first, second = (packages.add(f"row = shape('heart', suffixes=('.{n}',))", "row") for n in "ab")
    shapes = packages.shapes
    with pytest.warns(RuntimeWarning, match=f"package '{max(first, second)}' is left out: 'heart' is taken"):
        assert shapes["heart"].suffixes == ((".a",) if first < second else (".b",))


def test_warnings_as_errors_lose_no_row(packages: Packages) -> None:
    packages.add("row = None", "row")
    packages.add("heart = shape('heart')", "heart")
    shapes = packages.shapes
    with warnings.catch_warnings(action="error"):
        with pytest.raises(RuntimeWarning):
            shapes["heart"]
        assert shapes["heart"].name == "heart"


def test_threads_load_rows_once(packages: Packages, lookups: list[str]) -> None:
    packages.add("import time; time.sleep(0.1)\nheart = shape('heart')", "heart")
    shapes, found = packages.shapes, []
    threads = [threading.Thread(target=lambda: found.append(shapes["heart"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [row.name for row in found] == ["heart"] * 4
    assert lookups == [packages.group]


def test_two_own_rows_with_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two rows have 'round'"):
        Registry("shape", Shape, (CIRCLE, Shape(name="round", aliases=(), suffixes=())), "shapes")


# ---- the registries of the package

PACKAGE = Path(tfr.__file__).parent
PAGES = PACKAGE.parent / "docs"
# Where the rows of a registry are, and the modules with words that are those of rows by chance, or of others.
HOMES: dict[Registry[Any], tuple[tuple[str, ...], tuple[str, ...]]] = {
    CODECS: (
        ("bytes/compression/", "typing.py"),
        (
            "plugins/engines/spark_source.py",  # Hadoop's names
            "columns/arrow/decode/composite_decoder.py",  # names of encodings of TFDS
            "plugins/tensorflow/array_record.py",  # of the files of array_record
            "read/index/column_chunk.py",  # Arrow's name
            "columns/schema/composite.py",  # as those of TFDS
            "plugins/tensorflow/tfds.py",
            "apps/file_formats/tables/columnar_files.py",  # ORC's name
            "apps/file_formats/array_files/hdf5_datasets.py",  # HDF5's name
            "store/read/web_response.py",  # names of encodings of HTTP
            "store/paths/manifest_parts.py",  # Arrow's name
        ),
    ),
    TENSOR_ENCODINGS: (
        ("columns/arrow/encodings/", "columns/schema/tensor_types.py", "columns/schema/column_features.py"),
        (
            "columns/arrow/input/from_arrays.py",  # of Python
            "apps/cli/commands.py",  # float64="raw"
            "apps/cli/convert_commands.py",
            "bytes/compression/__init__.py",  # a class
            "apps/file_formats/",  # .npy files
            "bytes/format/companions.py",  # how other programs store arrays
            "bytes/format/known_formats.py",
            "base/options/write.py",
            "plugins/vision/",
            "plugins/tensorflow/",  # float64="raw"
            "read/type_suggestions.py",  # two encodings that state dtype and shape
            "columns/schema/type_names.py",  # types of Arrow
            "testing/",  # names of columns
            "typing.py",  # float64="raw", .npy files
            "store/paths/manifest.py",  # bytes of a part before it is compressed
        ),
    ),
    FORMATS: (
        (
            "bytes/format/known_formats.py",
            "base/registry.py",
            "plugins/vision/vision_rows.py",
            "plugins/tensorflow/tensorflow_rows.py",
            "typing.py",
        ),
        (
            "columns/arrow/encodings/npy.py",  # an encoding of tensors
            "columns/arrow/input/from_hugging_face.py",  # a form of Hugging Face's datasets
            "apps/cli/common_options.py",  # forms of a schema
            "apps/cli/schema_text.py",
            "apps/file_formats/array_files/open_array.py",  # members of an archive
            "apps/file_formats/array_files/to_numpy_files.py",
            "bytes/format/npy_header.py",  # the header of NumPy's files
            "plugins/report/dataset_statistics.py",  # an encoding of tensors
            "plugins/tensorflow/array_record.py",  # an extra
            "plugins/vision/yolo.py",  # an extra
            "read/type_suggestions.py",  # an encoding of tensors
            "columns/schema/formats/text_forms.py",  # parts of the embedded schema
            "columns/schema/schema.py",  # forms of a schema
            "columns/schema/tensor_types.py",  # an encoding of tensors
            "store/paths/file_names.py",  # files beside TFRecord files
            "store/paths/manifest.py",  # the manifest's suffix
            "store/write/resume_journal.py",  # the journal's suffix
            "store/write/leftovers.py",  # the manifest's suffix
        ),
    ),
}
PLAIN_WORDS = {"tfrecord", "images", "files", "json"}  # which stand for other things, too


def test_each_keyword_of_formats_is_described_and_each_description_used() -> None:
    """The options of ``tfr convert`` follow from the descriptions."""
    used = {name for row in FORMATS.own for name in row.reads | row.writes}
    shared = {field.name for field in fields(Options)}
    described = {field.name for cls in FORMATS.own_options() for field in fields(cls)} - shared
    assert described <= used
    shared = {field.name for cls in (ReadOptions, WriteOptions) for field in fields(cls)}
    assert used - shared <= described
    given = all_commands().commands["convert"].params
    assert described <= {option.name for option in given if isinstance(option, click.Option) and option.help}


@pytest.mark.plugins("vision", "tensorflow")
def test_types_of_keywords_have_the_rows_of_this_package() -> None:
    literals = {
        "Compression": (CODECS.INFER, *(codec.name for codec in CODECS.own)),
        "SourceFormat": tuple(key for row in FORMATS.own if row.is_source for key in row.keys),
        "TargetFormat": tuple(key for row in FORMATS.own if row.is_target for key in row.keys),
    }
    for name, values in literals.items():
        listed = ", ".join(f'"{value}"' for value in values)
        assert get_args(getattr(typing, name)) == values, f"typing.py needs: {name} = Literal[{listed}]"


def test_convert_describes_all_formats_and_their_options() -> None:
    doc = inspect.getdoc(tfr.convert) or ""
    for row in FORMATS.own:
        words = (*row.keys, *row.suffixes, *row.option_names)
        missing = [f"``{word}``" for word in words if f"``{word}``" not in doc]
        assert missing == [], f"the docstring of convert needs, in its line about ``{row.name}``: {', '.join(missing)}"


def suffixes_of_compressions() -> list[str]:
    return [suffix for codec in CODECS.own for suffix in codec.suffixes]


def listings_of_suffixes() -> dict[str, str]:
    """The sentence of each docstring that lists suffixes of compressions: two or more."""
    found = {}
    for shown_in in (*SHOWN_IN, ""):
        for name in public_names(shown_in):
            doc = inspect.getdoc(getattr(getattr(tfr, shown_in) if shown_in else tfr, name)) or ""
            for sentence in re.split(r"(?<=[^.]\.)\s+", doc):
                if sum(f"``{suffix}``" in sentence for suffix in suffixes_of_compressions()) >= 2:
                    found[name] = sentence
    return found


def test_docstrings_that_list_suffixes_of_compressions_list_all() -> None:
    listings = listings_of_suffixes()
    assert listings, "no docstring lists them any more: remove this test"
    for name, sentence in listings.items():
        missing = [f"``{suffix}``" for suffix in suffixes_of_compressions() if f"``{suffix}``" not in sentence]
        assert missing == [], f"the docstring of {name} needs {', '.join(missing)}, where it lists suffixes"


@pytest.mark.parametrize("codec", CODECS.own, ids=lambda codec: codec.name)
def test_docstrings_state_the_levels_of_each_compression(codec: Codec) -> None:
    stated = rf"{codec.levels[0]} to {codec.levels[-1]} of [^,.]*\b{codec.name}\b"
    doc = inspect.getdoc(tfr.write_tfrecord) or ""
    assert re.search(stated, doc), f"the docstring of write_tfrecord needs the levels of {codec.name}"


def kinds(registry: Registry[Any]) -> str:
    return f"{registry.kind}s"


@cache
def texts_of(path: Path) -> frozenset[str]:
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return frozenset(node.value.lower() for node in nodes if isinstance(node, ast.Constant) and type(node.value) is str)


@pytest.mark.parametrize("registry", HOMES, ids=kinds)
def test_names_of_rows_stand_in_their_registry_alone(registry: Registry[Any]) -> None:
    home, others = HOMES[registry]
    words = {
        word
        for row in registry.own
        for word in (row.name.lower(), *getattr(row, "aliases", ()), *getattr(row, "suffixes", ()))
    } - PLAIN_WORDS
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        if (
            not re.fullmatch(r"\w+/__init__.py", module)
            and not module.startswith((*home, *others))
            and texts_of(path) & words
        ):
            found[module] = {*texts_of(path)} & words
    advice = (
        f"loop over the registry {registry.kind}s, or take the row by its name, or the suffixes that the caller has"
    )
    assert found == {}, advice


def names_with_suites(suite: str) -> set[str]:
    """The attribute ``name`` of each class in the files of tests that import a suite."""
    paths = [path for path in (ROOT / "tests").rglob("test_*.py") if suite in path.read_text("utf-8")]
    return {name for path in paths for name in re.findall(r'^    name = "(.*)"', path.read_text("utf-8"), re.MULTILINE)}


@pytest.mark.parametrize("codec", CODECS.own, ids=lambda codec: codec.name)
def test_each_compression_has_a_suite(codec: Codec) -> None:
    assert codec.name in names_with_suites("CodecSuite"), (
        f'add to tests/bytes/compression/ a class that inherits CodecSuite and has name = "{codec.name}"'
    )


@pytest.mark.parametrize(
    "row",
    [row for row in (encoding_rules(row.name) for row in TENSOR_ENCODINGS.own) if row.dtype_kinds and not row.adaptive],
    ids=lambda row: row.name,
)
def test_each_encoding_of_arrays_has_a_suite(row: Any) -> None:
    assert row.name in names_with_suites("EncodingSuite"), (
        f'add to tests/columns/arrow/encodings/ a class that inherits BytesEncodingSuite and has name = "{row.name}"'
    )


@pytest.mark.skipif(not PAGES.exists(), reason="needs the documentation")
@pytest.mark.parametrize("codec", CODECS.own, ids=lambda codec: codec.name)
def test_the_documentation_has_every_compression(codec: Codec) -> None:
    lines = (PAGES / "format.md").read_text("utf-8").splitlines()
    row = next((line for line in lines if f'| `"{codec.name}"` |' in line), "")
    assert row, "docs/format.md: add a row to the table of compressions"
    assert f"| {', '.join(f'`{suffix}`' for suffix in codec.suffixes)} |" in row
    assert ("**not TensorFlow**" in row) == (not codec.tensorflow)
    needed = codec.requirement.replace("tfrecord_io", ".")  # of a clone, as on all pages
    assert (f"pip install '{needed}'" if needed else "") in row
    rows = (PAGES / "howto" / "damaged-files.md").read_text("utf-8").splitlines()
    is_told = any(line.startswith("| ") and codec.name in line.split("|")[1] for line in rows)
    assert is_told, "docs/howto/damaged-files.md: add to the table what damage takes"
    assert f" {codec.name}" in (ROOT / "README.md").read_text("utf-8").lower(), (
        "name it in the README, among the others"
    )


@pytest.mark.parametrize("codec", CODECS.own, ids=lambda codec: codec.name)
def test_files_of_a_compression_are_not_called_foreign(codec: Codec, tmp_path: Path) -> None:
    """A sign says what such data is, for damaged files and parts of names; not that another program decompresses it."""
    tfr.write_tfrecord({"x": range(100)}, tmp_path / "a", compression=codec.name)
    sign = ForeignFile.looks_like((tmp_path / "a").read_bytes())
    assert sign in (None, f"{codec.name} data", f"{codec.name.upper()} data"), "bytes/format/foreign_files.py: SIGNS"
    extra = codec.requirement.removeprefix("tfrecord_io[").removesuffix("]")
    assert extra in {"", *EXTRAS}, f"pyproject.toml has no extra {extra}, which {codec.name} needs"


def test_an_adapter_of_another_package_is_a_method_of_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
from tfrecord_io.base.libraries import Adapter

def to_columns(dataset, *, upper=False):
    names = dataset.schema.names
    return [name.upper() for name in names] if upper else names

ADAPTER = Adapter("columns", methods=("to_columns",), module="columns_of_tfrecord")
"""
    install(tmp_path, "columns_of_tfrecord", code, "tfrecord_io.adapters", {"columns": "columns_of_tfrecord:ADAPTER"})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(
        "tfrecord_io.base.libraries.ADAPTERS", Registry("adapter", Adapter, ADAPTERS.core, ADAPTERS.group)
    )
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    dataset: Any = tfr.dataset(tmp_path / "a.tfrecord")
    assert dataset.to_columns(upper=True) == ["X"]
    with pytest.raises(AttributeError, match="no attribute 'to_rows'"):
        dataset.to_rows()
    assert not hasattr(dataset, "absent")


class TestAdapters:
    """The rows agree with what cannot be derived from them."""

    def test_methods_of_datasets(self) -> None:
        found = {name: getattr(tfr.Dataset, name).__module__ for name in vars(tfr.Dataset) if name.startswith("to_")}
        own = {name: module for name, module in found.items() if ".adapters." in module or ".plugins." in module}
        rows = {name: row.module for row in ADAPTERS.own for name in row.methods}
        advice = [f"    {name} = {name}  # of {home}" for name, home in rows.items() if own.get(name) != home]
        advice += [f"    {name}: without a row in base/libraries.py" for name in own.keys() - rows.keys()]
        assert own == rows, "lazy_dataset.py, class Dataset:\n" + "\n".join(advice)

    @pytest.mark.plugins("engines")
    def test_extras_and_environments(self) -> None:
        """Each library is an extra; `make test-adapters` installs those that the environment of the tests lacks."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        extras = {**project["optional-dependencies"], **EXTRAS}
        names = [row.name for row in ADAPTERS.own if row.name != "pandas"]  # which is a dependency
        assert not {*names} - {*extras}, "pyproject.toml: an adapter has an extra of its name, with - for _"
        tested = {re.split(r"[^\w]", text)[0] for text in extras["test"]}
        apart = [name for name in names if re.split(r"[^\w]", extras[name][0])[0] not in tested]
        environments = runpy.run_path(str(ROOT / "dev" / "environment.py"))
        assert sorted(environments["ADAPTERS"]) == sorted(apart), (
            "ADAPTERS of dev/environment.py has the adapters whose library is not in the extra `test`"
        )

    def test_extras_of_formats(self) -> None:
        """An error about a format whose library is missing names an extra that exists."""
        for row in (row for row in FORMATS.own if row.extra):
            assert row.extra in EXTRAS, f"the format {row.name} has extra={row.extra!r}, which pyproject.toml has not"

    def test_the_extra_all_has_every_other(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        (everything,) = project["optional-dependencies"]["all"]
        assert everything == f"tfrecord_io[{','.join(EXTRAS).replace('_', '-')}]"

    def test_pages(self) -> None:
        """A page calls each of them."""
        paths = [*(ROOT / "docs" / "howto").glob("*.md"), ROOT / "docs" / "quickstart.md"]
        pages = "".join(path.read_text("utf-8") for path in paths)
        for call in (call for row in ADAPTERS.own for call in row.methods):
            assert f"{call}(" in pages, f"show {call} on a page in docs/howto/"

    def test_suites(self) -> None:
        """The file of tests of each has its class."""
        paths = [*(ROOT / "tests").rglob("test_*.py")]
        for row in (row for row in ADAPTERS.own if row.methods):
            found = [path for path in paths if path.name == f"test_{row.name}.py"]
            assert any("(AdapterSuite)" in path.read_text("utf-8") for path in found), (
                f"add tests/apps/adapters/test_{row.name}.py with a class that inherits AdapterSuite"
            )


@pytest.mark.skipif(not PAGES.exists(), reason="needs the documentation")
@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_is_in_the_table_of_extras(extra: str) -> None:
    rows = re.findall(r"^\| (`.*?`) \|", (PAGES / "installation.md").read_text("utf-8"), re.MULTILINE)
    names = {name for row in rows for name in re.findall("`([^`]*)`", row)}
    assert extra.replace("_", "-") in names, "docs/installation.md: add a row to the table of extras"


def test_names_of_extras_are_normalized() -> None:
    """As the metadata of a package has them: pip before 23.3 compares them as they are written."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert [name for name in extras if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name)] == []
    assert "_" not in extras["all"][0].removeprefix("tfrecord_io")


def test_a_missing_library_names_the_extra_with_a_hyphen() -> None:
    advice = r"pip install 'tfrecord_io\[earth-engine\]'"
    with pytest.raises(tfr.errors.MissingDependencyError, match=advice), needs("earth_engine"):
        raise ImportError
