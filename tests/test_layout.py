"""Who may know whom: the floors of the package, what an import of it costs, and which names are public."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tfrecord_io as tfr
from extras import EXTRAS, library
from tfrecord_io.base.libraries import ADAPTERS
from tfrecord_io.base.public_names import SHOWN_IN, public_names
from tfrecord_io.base.registry import needs
from tfrecord_io.errors import MissingDependencyError

# Rooms and folders import from strictly lower floors only. A new folder gets its floor here.
FLOORS = {
    unit: floor
    for floor, units in enumerate(
        [
            "errors typing base",
            "bytes",
            "store",
            "columns",
            "read",
            "write",
            "rows",
            "kit",
            "apps/api apps/tf_compat apps/file_formats",
            "apps/views",
            "apps/adapters",
            "apps/lazy_dataset",
            "apps/derived_datasets",
            "apps/follow",
            "__init__ __main__ apps/cli formats io train beam apps/__init__",
            "plugins",
            "testing",
        ]
    )
    for unit in units.split()
}
ROOMS = ("base", "bytes", "store", "columns", "read", "write", "rows")
AT_ONCE = {"click", "fsspec", "google", "isal", "numpy", "pyarrow"}  # third parties a module may import at its top
WHEN_NEEDED = {  # inside functions only
    *(
        "azure",
        "crc32c",
        "pandas",
        "rich",
        "tqdm",
        "dateutil",
        "ml_dtypes",
        "PIL",
        "simplejpeg",
        "tifffile",
        "array_record",
        "av",
        "h5netcdf",
        "h5py",
        "netCDF4",
        "zarr",
        "yaml",
        "scipy",
        "xarray",
        "uvicorn",
    )
}
# Adapters alone import these, each the one that its extra installs: inside functions, or in a module that is itself
# imported inside functions.
OPTIONAL = {*map(library, EXTRAS), "jax", "tfx_bsl"} - WHEN_NEEDED


def package_files() -> Iterator[tuple[str, Path]]:
    spec = importlib.util.find_spec("tfrecord_io")
    assert spec is not None
    for location in spec.submodule_search_locations or ():
        for path in sorted(Path(location).rglob("*.py")):
            yield path.relative_to(location).with_suffix("").as_posix(), path


FILES = dict(package_files())


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(node: ast.AST, inside: bool = False) -> Iterator[tuple[str, bool, int]]:
    """(dotted name, whether it is deferred to a call, line) of the imports below `node`; type-only ones are, too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # which has no imports; to search them takes most of the time
            continue
        waits = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or is_type_checking(child)
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield alias.name, waits, child.lineno
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: imports are absolute"
            assert child.module is not None
            for alias in child.names:  # `from tfrecord_io import errors` names a module, too
                yield f"{child.module}.{alias.name}", waits, child.lineno
        else:
            yield from imports(child, waits)


@cache
def imports_of(name: str) -> tuple[tuple[str, bool, int], ...]:
    return tuple(imports(ast.parse(FILES[name].read_text(encoding="utf-8"))))


# What only type checkers see: `lazy_dataset` names the methods that plugins add, `typing` the results of calls.
SHOWN_TO_CHECKERS = {
    (name, target)
    for name in ("apps/lazy_dataset", "typing")
    for node in ast.parse(FILES[name].read_text(encoding="utf-8")).body
    if is_type_checking(node) and isinstance(node, ast.If)
    for target, _, _ in imports(ast.Module(node.body, []))
    if name == "typing" or target.startswith("tfrecord_io.plugins.")
}


def unit_of(module: str) -> str:
    """The room, folder or public module that a module belongs to."""
    parts = module.split("/")
    return "/".join(parts[:2]) if parts[0] == "apps" else parts[0]


def floor_of(module: str) -> int:
    unit = unit_of(module)
    assert unit in FLOORS, f"tfrecord_io/{unit} has no floor: give it one in tests/test_layout.py"
    return FLOORS[unit]


@cache
def homes_of(room: str) -> dict[str, str]:
    """The names of a room's door, and the module of the room that defines each; those of the kit, and the room."""
    homes: dict[str, str] = importlib.import_module(f"tfrecord_io.{room}")._HOMES
    return homes


def module_of(dotted: str) -> str:
    """The file that ``from tfrecord_io.a.b import c`` runs, without its suffix."""
    parts = dotted.split(".")[1:]
    if len(parts) > 1 and parts[0] == "kit" and (home := homes_of("kit").get(parts[1])) is not None:
        return module_of(f"tfrecord_io.{home}.{parts[1]}")
    if len(parts) > 1 and parts[0] in ROOMS and (home := homes_of(parts[0]).get(parts[1])) is not None:
        return module_of(f"tfrecord_io.{parts[0]}.{home}")
    while parts:
        for name in ("/".join(parts), "/".join([*parts, "__init__"])):
            if name in FILES:
                return name
        parts.pop()
    return "__init__"


def own_imports(name: str) -> Iterator[tuple[str, int]]:
    """(file, line) of the package's own files that a file imports, inside functions and for type checkers, too."""
    for target, _, line in imports_of(name):
        if target.split(".")[0] == "tfrecord_io" and (name, target) not in SHOWN_TO_CHECKERS:
            yield module_of(target), line


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node."""
    found: list[list[str]] = []
    reachable: dict[str, set[str]] = {}
    for node in graph:
        reached, open_nodes = set(), [node]
        while open_nodes:
            for following in graph.get(open_nodes.pop(), ()):
                if following not in reached:
                    reached.add(following)
                    open_nodes.append(following)
        reachable[node] = reached
    for node in graph:
        component = sorted(other for other in reachable[node] if node in reachable.get(other, ()))
        if len(component) > 1 and component not in found:
            found.append(component)
    return found


def test_imports_go_strictly_down() -> None:
    wrong = []
    for name in sorted(set(FILES) - {"__init__", "__main__"}):
        own = floor_of(name)
        of_package = {line for target, waits, line in imports_of(name) if waits and target == "tfrecord_io"}
        for target, line in own_imports(name):
            if target == "__init__" and line in of_package and name.startswith("apps/"):
                continue  # as other packages do: the public names, when a function is called
            floor = floor_of(target)
            if unit_of(target) != unit_of(name) and floor >= own and own > 0:
                wrong.append(f"tfrecord_io/{name}.py:{line} (floor {own}) imports {target} (floor {floor})")
    assert wrong == []


def test_the_lowest_floor_is_small_and_explained() -> None:
    """Mechanisms that all modules know are what a stranger learns first: at most eight, each with one sentence."""
    modules = {name for name in FILES if re.fullmatch(r"base/[a-z]\w+", name)} - {"base/libraries"}
    table = re.findall(r"^\| `([\w/]+)\.py` \| .+\. \|$", architecture_section("The lowest floor"), re.MULTILINE)
    assert sorted(table) == sorted({*modules, "errors", "typing"})
    assert len(table) <= 8


def architecture_section(title: str) -> str:
    """The text of a section of dev/architecture.md."""
    page = (Path(__file__).parents[1] / "dev" / "architecture.md").read_text(encoding="utf-8")
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_core_imports_no_plugin_and_no_plugin_another() -> None:
    """What both need is in the core; what a plugin adds is found by its entry points."""
    found = {
        (name, target, line) for name in FILES for target, line in own_imports(name) if target.startswith("plugins/")
    }
    own = {each for each in found if each[1].startswith("/".join(each[0].split("/")[:2]) + "/")}
    assert found - own == set()


def test_the_import_of_the_package_loads_no_plugin() -> None:
    code = "import sys, tfrecord_io as tfr; tfr.read_table; print([m for m in sys.modules if '_io.plugins' in m])"
    assert run_python(code) == "[]"


def test_no_circle_of_files() -> None:
    graph = {name: {target for target, _ in own_imports(name)} - {name} for name in FILES if name != "__init__"}
    assert cycles(graph) == []


def test_no_circle_of_packages() -> None:
    graph: dict[str, set[str]] = {}
    for name in set(FILES) - {"__init__"}:
        package = name.rpartition("/")[0]
        targets = {target.rpartition("/")[0] for target, _ in own_imports(name)}
        graph.setdefault(package, set()).update(targets - {package, ""})
    # The converters of Schema import the field types of their parent package; the files themselves form no circle.
    for modules_only in ("base", "apps"):  # the modules of these import from packages next to them, and form no circle
        graph = {package: targets - {modules_only} for package, targets in graph.items() if package != modules_only}
    graph["columns/schema"].discard("columns/schema/formats")
    assert cycles(graph) == []


def test_third_parties_are_imported_where_they_may_be() -> None:
    for name in FILES:
        if not name.startswith("testing/"):  # other packages' tests import it, with what they need
            check_third_parties(name)


def check_third_parties(name: str) -> None:
    adapter = name.startswith(("apps/adapters/", "plugins/"))
    optional = set()
    for target, waits, line in imports_of(name):
        top = target.split(".")[0]
        if top == "tfrecord_io" or top in sys.stdlib_module_names:
            continue
        where = f"tfrecord_io/{name}.py:{line} imports {target}"
        assert top in AT_ONCE | WHEN_NEEDED | OPTIONAL, f"{where}, which is not a dependency"
        assert waits or top in AT_ONCE | OPTIONAL, f"{where} at import time"
        assert top != "click" or name.startswith("apps/cli/") or name.endswith("_command"), where
        if top in OPTIONAL:
            assert adapter, f"{where}: only adapters do"
            optional.add(top)
    module = name.rpartition("/")[2]
    own = {library(extra) for extra in EXTRAS if adapter and (module == extra or module.startswith(f"{extra}_"))}
    assert optional <= own, f"tfrecord_io/{name}.py: an adapter imports the library of the extra of its name"


def test_a_module_that_loads_an_optional_library_is_imported_when_needed() -> None:
    """Or by another one that loads it."""
    of_adapter = (name for name in FILES if name.startswith(("apps/adapters/", "plugins/")))
    at_once = {name: {target for target, waits, _ in imports_of(name) if not waits} for name in FILES}
    loading = {name for name in of_adapter if OPTIONAL & {target.split(".")[0] for target in at_once[name]}}
    wrong = {
        (name, target) for name in FILES.keys() - loading for target in at_once[name] if module_of(target) in loading
    }
    assert wrong == set()
    assert not loading & {adapter.module.removeprefix("tfrecord_io.").replace(".", "/") for adapter in ADAPTERS.own}


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_brings_no_pandas_and_nothing_optional() -> None:
    unwanted = sorted(WHEN_NEEDED | OPTIONAL | {"click"})
    assert run_python(f"import sys, tfrecord_io; print([m for m in {unwanted!r} if m in sys.modules])") == "[]"


def test_a_read_of_a_local_file_imports_only_what_it_needs(tmp_path: Path) -> None:
    """The first read of a process waits for these imports: what other reads need is imported in functions."""
    tfr.write_tfrecord({"x": [1, 2], "word": ["a", "b"]}, tmp_path / "a.tfrecord")
    code = f"import sys, tfrecord_io; tfrecord_io.read_table({str(tmp_path / 'a.tfrecord')!r}); print(*sys.modules)"
    names = run_python(code).split()
    assert "pyarrow.compute" not in names  # which takes half as long as all others
    loaded = {name.removeprefix("tfrecord_io.") for name in names if name.startswith("tfrecord_io.")}
    others = (
        "read.index.",
        "write",
        "store.write",
        "columns.schema.formats",
        "columns.arrow.output",
        "read.byte_ranges",
        "apps.cli",
    )
    assert [name for name in sorted(loaded) if name.startswith(others)] == []
    assert len(loaded) <= 91  # six doors of rooms among them


def test_command_line_starts_without_rich_and_pandas() -> None:
    assert (
        run_python("import sys, tfrecord_io.apps.cli; print([m for m in ('pandas', 'rich') if m in sys.modules])")
        == "[]"
    )


# ---- public names and the version

NAMES = [(shown_in, name) for shown_in in ("", *SHOWN_IN) for name in public_names(shown_in)]


def test_the_names_of_the_package_fit_on_a_screen() -> None:
    """Verbs, the makers of a schema, and what most programs name; all others are in the modules of `SHOWN_IN`.

    51 since `browse`, which people type beside `describe` and `report`, 52 since `follow`, the way to new rows.
    """
    assert len(tfr.__all__) <= 52
    assert [shown_in for shown_in in SHOWN_IN if shown_in not in dir(tfr)] == []


def test_a_public_name_is_there_and_explains_itself() -> None:
    for shown_in, name in NAMES:
        module = getattr(tfr, shown_in) if shown_in else tfr
        item = getattr(module, name)
        assert callable(item), name
        assert name in dir(module)
        assert hasattr(item, "DESCRIPTOR") or (item.__doc__ or "").strip(), name
        assert item.__name__ == name


def test_a_name_is_shown_once() -> None:
    shown = [name for _, name in NAMES]
    assert {name for name in shown if shown.count(name) > 1} <= {"TFRecordError"}


def test_no_public_name_is_that_of_a_module() -> None:
    """The module's import would put it in the name's place."""
    assert not {name.split("/")[0] for name in FILES} & set(tfr.__all__)


def test_version_is_the_installed_one() -> None:
    assert importlib.metadata.version("tfrecord_io") == tfr.__version__
    citation = Path(__file__).parent.parent / "CITATION.cff"
    assert not citation.exists() or f"\nversion: {tfr.__version__}\n" in citation.read_text(encoding="utf-8")


def test_few_classes_carry_the_data() -> None:
    """dev/glossary.md lists them."""
    glossary = Path(__file__).parent.parent / "dev" / "glossary.md"
    if not glossary.exists():
        pytest.skip("no docs here")
    section = glossary.read_text(encoding="utf-8").partition("## The way of the data")[2]
    rows = re.findall(r"^\| `(\w+)` \| `([\w/]+)\.py` \|", section, re.MULTILINE)
    assert 0 < len(rows) <= 10
    for name, module in rows:
        assert f"class {name}" in FILES[module].read_text(encoding="utf-8"), (name, module)


def test_no_dataset_is_left_in_the_root_of_the_repository() -> None:
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        pytest.skip("not a checkout")
    command = ["git", "ls-files", "*.tfrecord", "*_MANIFEST.json"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [name for name in listed if not name.startswith("tests/")] == []


# Calls that take any number of arguments, or have no names for them: the kernel's and pyarrow's, and those of Cast.
_BY_POSITION = (
    "options inspection _record_command pack attrgetter finalize debug TypeVar from_buffers sync cast".split()
)
_MOST_BY_POSITION = 4


def test_more_than_four_arguments_are_passed_by_name() -> None:
    """A call with many arguments in a row is read only next to the signature, and two of them are easily swapped."""
    found = []
    for file, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) <= _MOST_BY_POSITION:
                continue
            if any(isinstance(argument, ast.Starred) for argument in node.args):
                continue
            called = ast.unparse(node.func)
            is_partial = called == "partial" and ast.unparse(node.args[0]) != "sync"  # of the function, its first
            if len(node.args) - is_partial <= _MOST_BY_POSITION:
                continue
            name = ast.unparse(node.args[0]) if called == "partial" else called
            if name.rpartition(".")[2] not in _BY_POSITION and "kernel" not in called and "value_cast" not in called:
                found.append(f"{file}:{node.lineno}: {called}")
    assert found == []


def test_no_call_passes_its_locals_on() -> None:
    """A call names the keywords that it passes on, so that a search finds each use, and mypy checks the names."""
    assert [file for file, path in FILES.items() if "locals()" in path.read_text(encoding="utf-8")] == []


def test_advice_to_install_has_one_owner() -> None:
    """`needs` names what to install; a kernel that was not built has other advice."""
    texts = {file: path.read_text(encoding="utf-8") for file, path in FILES.items()}
    assert [file for file, text in texts.items() if "pip install" in text] == [
        "base/registry",
        "bytes/_native/__init__",
    ]
    raising = {file for file, text in texts.items() if "raise MissingDependencyError(" in text}
    assert raising == {"base/registry", "bytes/_native/__init__", "store/filesystem/locate"}, "a plugin; Java, for HDFS"


_OWNERS_OF_NAMES = ("store/paths/file_names", "store/paths/column_folder")
_NAMES_OF_FILES = re.compile(
    r"_MANIFEST|_RESUME-|_APPEND-|-of-|__HIVE|(?<![a-zA-Z])\\?\.(staged|claim|condition|tmp|(column_)?index|tfindex|idx)\b"
)
_OTHER_NAMES_OF_FILES = {
    "apps/cli/common_options": "texts of help",
    "apps/file_formats/tables/table_folders": "files of tables, whose numbers pyarrow counts",
    "bytes/format/foreign_files": "the content of a fence, on a lower floor",
    "bytes/format/known_formats": "formats of other files, on a lower floor",
    "plugins/vision/earth_engine": "tiles of an image",
    "columns/schema/formats/tfds_info": "a template of TFDS",
    "write/compacting": "a message",
    "write/deleting": "a message",
}


@pytest.mark.plugins("vision")  # which has names of its own
def test_names_of_files_are_made_and_matched_in_one_place() -> None:
    """A name on disk is a format: a second place that makes or slices it does not follow when it changes."""
    found: set[str] = set()
    imported: set[str] = set()
    for file, path in FILES.items():
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        literals = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings]
        texts = [f"{node.value!s}" for node in literals if isinstance(node.value, str | bytes)]
        prefixes = [
            node.args[0]
            for node in nodes
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".startswith") and node.args
        ]
        hidden = [prefix for prefix in prefixes if ast.unparse(prefix) in ("('_', '.')", "('.', '_')")]
        if file not in _OWNERS_OF_NAMES and (hidden or any(map(_NAMES_OF_FILES.search, texts))):
            found.add(file)
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and f"{node.module}".endswith(
                ("paths.file_names", "paths.column_folder")
            ):
                imported.update(alias.name for alias in node.names)
    unknown = found - _OTHER_NAMES_OF_FILES.keys()
    assert not unknown, f"{sorted(unknown)}: make and parse names of files by FileName, ShardName and ColumnFolder"
    assert _OTHER_NAMES_OF_FILES.keys() <= found
    assert len(imported) <= 9, f"{sorted(imported)}: a new maker or question is a method of these classes"


@pytest.mark.parametrize("extra", [*EXTRAS, "other"])
def test_a_library_that_is_not_installed_is_named_with_its_extra(extra: str) -> None:
    with pytest.raises(MissingDependencyError) as caught, needs(extra, "this call", path="a", hint="do without"):
        importlib.import_module("absent.module")
    reason = "this call needs absent, which cannot be imported (No module named 'absent')"
    assert (caught.value.reason, caught.value.path) == (reason, "a")
    name = extra.replace("_", "-")
    assert caught.value.hint == f"pip install 'tfrecord_io[{name}]', in a clone '.[{name}]'; do without"
    with pytest.raises(MissingDependencyError) as again, needs("image"):
        raise caught.value  # of what is imported: it says more
    assert again.value is caught.value


def test_a_library_that_no_extra_installs_is_named_with_its_requirement() -> None:
    text = r"^absent cannot be imported \(.*\); pip install 'other>=2'$"
    with pytest.raises(MissingDependencyError, match=text), needs("", requirement="other>=2"):
        importlib.import_module("absent")
