"""What static tools know about the public calls: type checkers find mistakes, editors complete and explain."""

from __future__ import annotations

import inspect
import json
import os
import pydoc
import re
import runpy
import subprocess
import sys
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from border import PUBLIC, public
from tfrecord_io.base.public_names import SHOWN_IN

TESTS = Path(__file__).parent
CALLS = TESTS / "data" / "typing"
PACKAGE = Path(tfr.__file__).parent
WRITER = TESTS.parent / "docs" / "reference" / "stub.py"
INSTALLED = PACKAGE.parent.name == "site-packages"
REQUIRED = os.environ.get("TFRECORD_IO_TYPES") == "1"  # `make types`: the tools are there


def needs(tool: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not REQUIRED, reason=f"`make types` runs it, with {tool}")


# ---- the stub, and names at run time


@pytest.mark.parametrize("shown_in", ["", "formats", "io", "train"])
def test_stubs_are_as_written(shown_in: str) -> None:
    if INSTALLED and not WRITER.exists():
        pytest.skip("the documentation is not installed")
    written = runpy.run_path(str(WRITER))
    assert (PACKAGE / f"{written['STUBS'][shown_in]}.pyi").read_text("utf-8") == written["stub"](shown_in)


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_dir_lists_public_names_alone() -> None:
    assert set(dir(tfr)) == {*tfr.__all__, *SHOWN_IN, "__version__"}
    for module in (tfr.errors, tfr.formats, tfr.io, tfr.train, tfr.typing):
        assert sorted(dir(module)) == sorted(module.__all__)


def test_help_has_public_names_alone() -> None:
    """After the folder's modules, which pydoc lists for every package."""
    for module in (tfr, tfr.errors, tfr.formats, tfr.io, tfr.train, tfr.typing):
        text = pydoc.plain(pydoc.render_doc(module))
        documented = set(re.findall(r"^    (?:class )?(\w+)(?:\(| = )", text, re.MULTILINE)) - {
            "__all__",
            "__version__",
        }
        assert documented <= {*module.__all__}


def test_every_parameter_of_a_public_function_has_a_type() -> None:
    for name in PUBLIC:
        if isinstance(call := public(name), types.FunctionType):
            signature = inspect.signature(call)
            assert all(p.annotation is not p.empty for p in signature.parameters.values()), name
            assert all(p.kind is not p.VAR_KEYWORD for p in signature.parameters.values()), name
            assert signature.return_annotation is not signature.empty, name


# ---- type checkers


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A folder with the right and the wrong calls, outside of the source tree."""
    for path in CALLS.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text("utf-8"), "utf-8")
    return tmp_path


def expected_errors(tool: str) -> set[tuple[str, int]]:
    """(file, line) of the mistakes that a tool must find."""
    lines = {
        (path.name, number): line
        for path in CALLS.glob("*.py")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
    }
    return {place for place, line in lines.items() if re.search(rf"# error: .*\b{tool}\b", line)}


def run(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    environment |= {} if INSTALLED else {"MYPYPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr + done.stdout  # errors were found, and nothing else happened
    return done.stdout


def check(found: dict[tuple[str, int], str], tool: str) -> None:
    expected = expected_errors(tool)
    assert len(expected) > 70
    assert {place: message for place, message in found.items() if place not in expected} == {}, "right calls"
    assert expected - set(found) == set(), "mistakes that were not found"


@needs("mypy")
def test_mypy_finds_the_mistakes_and_nothing_else(calls: Path) -> None:
    (calls / "mypy.ini").write_text(
        "[mypy]\nstrict = True\nfollow_imports = silent\ndisable_error_code = import-untyped\n", "utf-8"
    )
    output = run(calls, "mypy", "--no-error-summary", "right_calls.py", "user_script.py", "wrong_calls.py")
    errors = re.finditer(r"^(.+?):(\d+): error: (.*)$", output, re.MULTILINE)
    check({(error[1], int(error[2])): error[3] for error in errors}, "mypy")


@needs("pyright")
def test_pyright_finds_the_mistakes_and_nothing_else(calls: Path) -> None:
    settings = {"include": ["."], "extraPaths": [] if INSTALLED else [str(PACKAGE.parent)]}
    (calls / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    output = run(calls, "pyright", "--pythonpath", sys.executable, "--outputjson")
    errors = [error for error in json.loads(output)["generalDiagnostics"] if error["severity"] == "error"]
    places = {(Path(e["file"]).name, e["range"]["start"]["line"] + 1): e["message"] for e in errors}
    check(places, "pyright")


@needs("mypy")
def test_stub_and_run_time_agree(tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_errors = True\nignore_missing_imports = True\n", "utf-8")
    output = run(tmp_path, "mypy.stubtest", "--mypy-config-file", "mypy.ini", "tfrecord_io")
    assert "not checking stubs" not in output
    errors = re.findall(r"^error: (tfrecord_io\.\w+) (.*)$", output, re.MULTILINE)  # of the package itself
    modules = {f"tfrecord_io.{path.stem}" for path in PACKAGE.iterdir()}
    assert [error for error in errors if error[0] not in modules] == []


# ---- editors: jedi completes in IPython, Jupyter and several editors

needs_jedi = needs("jedi")


@pytest.fixture(scope="module", autouse=True)
def cache_of_jedi(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each process of the tests has a cache of its own: jedi reads files of its cache that another one just writes."""
    with suppress(ImportError):
        import jedi

        jedi.settings.cache_directory = str(tmp_path_factory.mktemp("jedi"))


def script(code: str) -> Any:
    import jedi

    project = jedi.Project(".", sys_path=[str(PACKAGE.parent), *sys.path])
    text = f"import tfrecord_io as tfr\n{code}"
    return jedi.Script(text, project=project, environment=jedi.InterpreterEnvironment())


def completions(code: str) -> set[str]:
    return {completion.name for completion in script(code).complete()}


@needs_jedi
def test_jedi_completes_public_names() -> None:
    names = completions("tfr.")
    modules = {path.stem for path in PACKAGE.iterdir()}
    assert names >= set(tfr.__all__)
    assert {name for name in names - set(tfr.__all__) - modules if not name.startswith("_")} == set()


@needs_jedi
@pytest.mark.parametrize(
    ("code", "keywords"),
    [
        ("tfr.read_tfrecord('x', dtype", {"dtype_backend"}),
        ("tfr.read_table('x', lim", {"limit"}),
        ("tfr.read_table('x', batch", set()),
        ("tfr.open_reader('x', batch", {"batch_size", "batch_bytes"}),
        ("tfr.dataset('x', schema_", {"schema_overrides"}),
        ("tfr.read_arrays('x', rag", {"ragged"}),
        ("tfr.iter_arrays('x', batch_size=3, shuf", {"shuffle_buffer"}),
        ("tfr.open_random('x', in", {"index"}),
        ("tfr.write_tfrecord({}, 'x', shar", {"shards"}),
        ("tfr.open_writer('x', float", {"float64"}),
        ("tfr.convert('x', 'y', comp", {"compression"}),
        ("tfr.count('x', check", {"check_crc"}),
        ("tfr.RecordReader('x', on", {"on_error"}),
    ],
)
def test_jedi_completes_keywords(code: str, keywords: set[str]) -> None:
    assert {name for name in completions(code) if name.endswith("=")} == {f"{name}=" for name in keywords}


@needs_jedi
@pytest.mark.parametrize(
    ("code", "attributes"),
    [
        ("tfr.read_tfrecord('x').", {"groupby", "to_parquet"}),
        ("tfr.read_tfrecord('x')['a'].", {"value_counts"}),
        ("tfr.read_table('x').", {"to_pandas", "column_names"}),
        ("tfr.read_arrays('x').", {"items"}),
        ("tfr.read_arrays('x')['a'].", {"astype", "shape"}),
        ("for batch in tfr.iter_arrays('x', batch_size=3):\n    batch.", {"items"}),
        ("for batch in tfr.iter_arrays('x', batch_size=3):\n    batch['image'].", {"astype", "shape"}),
        ("tfr.iter_arrays('x', batch_size=3).", {"state", "restore", "schema", "seed"}),
        ("with tfr.open_reader('x') as reader:\n    reader.", {"read_all", "read_pandas", "schema"}),
        ("for batch in tfr.open_reader('x'):\n    batch.", {"num_rows", "to_pandas"}),
        ("tfr.open_random('x')[3].", {"items"}),
        ("tfr.open_random('x')[1:3].", {"to_pandas"}),
        ("with tfr.open_random('x') as records:\n    records.", {"schema", "schema_source"}),
        ("for payload in tfr.RecordReader('x'):\n    payload.", {"decode"}),
        ("with tfr.open_writer('x') as writer:\n    writer.", {"write", "report"}),
        ("with tfr.RecordWriter('x') as writer:\n    writer.", {"write", "flush"}),
        ("tfr.write_tfrecord({}, 'x').", {"records", "files"}),
        ("tfr.infer_schema('x').", {"evidence", "to_python"}),
        ("tfr.describe('x').", {"columns"}),
        ("tfr.verify('x').", {"ok", "files"}),
        ("tfr.Schema({}).", {"to_tfx", "from_tfds"}),
        ("tfr.encode_example({}).", {"decode"}),
    ],
)
def test_jedi_completes_results(code: str, attributes: set[str]) -> None:
    assert completions(code) >= attributes


@needs_jedi
@pytest.mark.parametrize("name", tfr.__all__[: tfr.__all__.index("Schema")])
def test_jedi_shows_the_docstring_of_the_run_time(name: str) -> None:
    (definition,) = script(f"tfr.{name}").help(2, 4 + len(name))
    doc = inspect.cleandoc(getattr(tfr, name).__doc__)
    assert doc in definition.docstring()
