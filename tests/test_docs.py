"""The examples in the documentation run: Python blocks and commands."""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import importlib.util
import inspect
import io
import re
import runpy
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from extras import library
from tfrecord_io.apps.cli import tfr as command
from tfrecord_io.base.public_names import SHOWN_IN

ROOT = Path(__file__).parent.parent
# docs is the site; dev is for those who change the code; examples are programs.
FOLDERS = ("docs", "dev", "examples")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(p.relative_to(ROOT).as_posix() for folder in FOLDERS for p in (ROOT / folder).rglob("*.md")),
]
# Pages and the fixtures that they need.
NEEDS = {
    "docs/howto/buckets.md": ["example_buckets"],
    "docs/howto/daily-job.md": ["example_buckets"],
    "docs/public-datasets.md": ["public_datasets"],
    "README.md": ["photos", "example_buckets"],
}
# Pages that need a library: if it is too large for the test environment, they run by make test-adapters.
LIBRARIES = {
    "docs/howto/browse.md": "uvicorn",
    "docs/howto/pytorch.md": "torch",
    "docs/howto/kaggle.md": "torch",
    "docs/howto/distributed.md": "torch",
    "docs/howto/tensorflow.md": "tensorflow",
    "docs/howto/jax.md": "grain",
    "docs/howto/hf.md": "datasets",
    "docs/howto/xarray.md": "xarray",
    "docs/howto/spark.md": "pyspark",
    "examples/two-tower.md": "torch",
}
# Sections that need a library of their own, by their headings; each runs apart, after the blocks that belong to none.
SECTIONS = {
    "docs/howto/other-formats.md": {
        "HDF5 and Zarr": "zarr",
        "ArrayRecord": "array_record",
        "Delta, Iceberg and Lance": "lance",
    },
    "docs/howto/distributed.md": {
        "accelerate": "accelerate",  # before a Trainer makes a state that forks have, too
        "Lightning": "lightning",
        "Hugging Face Trainer": "transformers",
    },
    "docs/howto/queries.md": {"Polars": "polars", "DuckDB": "duckdb"},
    "docs/howto/scale.md": {"Dask": "dask", "Ray": "ray", "Daft": "daft", "Beam": "apache_beam"},
    "docs/howto/tensorflow.md": {"Keras": "keras"},
}
COMMANDS_OF_PLUGINS = {"docs/howto/tfds.md": ["vision"]}  # where the command fails first, by an exit code
COLUMNS = 88  # of code at the width of the text, in a window of 1,280 pixels
# A block of text right after one of Python is what this prints.
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[int, str, str, str]]:
    """(line, language, text, printed text) of each fenced block that runs."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start()) + 2, m[1], m[2], m[3] or "") for m in BLOCK.finditer(text)]


def blocks_of(page: str, section: str) -> list[tuple[int, str, str, str]]:
    """The blocks of a page without those of other sections that need a library."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    under = [line.removeprefix("## ") if line.startswith("## ") else "" for line in lines]
    found = []
    for block in blocks(page):
        heading = next((name for name in reversed(under[: block[0]]) if name), "")
        if heading == section or heading not in SECTIONS.get(page, {}):
            found.append(block)
    return found


def run_console(text: str, where: str) -> None:
    """Run the commands; those with lines below them print these."""
    for command_line, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text.replace("\\\n", " "), re.MULTILINE):
        if command_line.startswith("tfr "):
            arguments = shlex.split(command_line.removeprefix("tfr "), comments=True)
            done = CliRunner(env={"COLUMNS": str(COLUMNS)}).invoke(command, arguments)
            assert done.exit_code == 0, f"{where}: {command_line}: {done.output}"
            assert trimmed(printed) in ("", trimmed(done.stdout)), f"{where}: {command_line}"


def trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def run_blocks(page: str, examples: list[tuple[int, str, str, str]], namespace: dict[str, Any]) -> None:
    for line, language, text, printed in examples:
        if language == "python":  # padded, so that a traceback shows the page's own line
            code = compile("\n" * (line - 1) + text, str(ROOT / page), "exec", dont_inherit=True)
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code, namespace)
            assert trimmed(printed) in ("", trimmed(output.getvalue())), f"{page}:{line}"
        else:
            run_console(text, f"{page}:{line}")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder with 100 images, in a folder for each of two classes."""
    image = pytest.importorskip("PIL.Image")
    for i in range(100):
        path = tmp_path / "photos" / ("cat" if i < 60 else "dog") / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (20 + i, 30), (i, 2 * i, 0)).save(path)
    return tmp_path / "photos"


@pytest.fixture
def public_datasets(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data / "public", tmp_path, dirs_exist_ok=True)
    shutil.copytree(data / "tfds" / "episodes", tmp_path / "bridge" / "0.1.0")


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.PrecisionWarning")
@pytest.mark.parametrize(
    ("page", "section"),
    [
        pytest.param(page, section, marks=pytest.mark.plugins(*COMMANDS_OF_PLUGINS.get(page, ())))
        for page in PAGES
        if blocks(page)
        for section in ("", *SECTIONS.get(page, ()))
    ],
)
def test_page_runs(
    page: str, section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The blocks of a page run in their order, in one namespace and an empty folder."""
    for fixture in NEEDS.get(page, ()):
        request.getfixturevalue(fixture)
    for name in filter(None, (LIBRARIES.get(page), SECTIONS.get(page, {}).get(section))):
        pytest.importorskip(name)
    if section == "Polars" and importlib.metadata.version("polars") < "2":
        pytest.skip("polars 1 has no extension types: tensors lose their shape")
    monkeypatch.chdir(tmp_path)
    run_blocks(page, blocks_of(page, section), {"__name__": page})


def test_a_page_of_a_large_library_runs_in_its_environment() -> None:
    """By a word of the expression that dev/environment.py gives to the tests of an adapter."""
    environments = runpy.run_path(str(ROOT / "dev" / "environment.py"))["ADAPTERS"]
    libraries, words = {}, {}
    for name, environment in environments.items():
        packages = "\n".join([*environment.packages, *environment.first])
        extras = map(library, filter(None, environment.extras.split(",")))
        libraries[name] = {*extras, *re.findall(r"^\w+", packages, re.MULTILINE)}
        words[name] = {*re.findall(r"[\w./-]+", (environment.tests or name).lower())} - {"and", "or", "not"}
    for page in LIBRARIES | SECTIONS:
        for section in ("", *SECTIONS.get(page, ())):
            needed = {LIBRARIES.get(page), SECTIONS.get(page, {}).get(section)}
            names = [name for name in environments if needed & libraries[name]]
            shown = f"{page}-{section}".lower()
            assert not names or any(word in shown for name in names for word in words[name]), f"{page}: {section}"


PUBLIC_MODULES = {"tfr": tfr, **{f"tfr.{name}": getattr(tfr, name) for name in SHOWN_IN}}


def test_calls_have_the_keywords_of_the_functions() -> None:
    """Also of the blocks that do not run here: they parse, and what they use of tfrecord_io exists."""
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in re.findall(r"^```py(?:thon)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            check_calls(page, ast.parse(block))


def check_calls(page: str, tree: ast.Module) -> None:
    calls = {call.func: call for call in ast.walk(tree) if isinstance(call, ast.Call)}
    for node in ast.walk(tree):
        module, _, name = ast.unparse(node).rpartition(".") if isinstance(node, ast.Attribute) else ("", "", "")
        if module in PUBLIC_MODULES:
            assert hasattr(PUBLIC_MODULES[module], name), f"{page}: {module}.{name}"
            item = getattr(PUBLIC_MODULES[module], name)
            unknown = unknown_keywords(calls[node], item) if node in calls else None
            assert not unknown, f"{page}: {module}.{name}() has no keyword {unknown}"


def unknown_keywords(call: ast.Call, function: object) -> set[str]:
    """The keywords of a call of a function that its signature does not have."""
    if not inspect.isfunction(function):
        return set()
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return set()
    return {keyword.arg for keyword in call.keywords if keyword.arg is not None} - {*parameters}


def test_links_lead_somewhere() -> None:
    """Those of the changelog, too, and of its fragments, which become lines of CHANGELOG.md."""
    changes = [(ROOT, file) for file in (ROOT / "CHANGELOG.md", *(ROOT / "changelog.d").glob("*.md"))]
    for folder, file in [*(((ROOT / page).parent, ROOT / page) for page in PAGES), *changes]:
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", file.read_text(encoding="utf-8")):
            assert folder.joinpath(target).exists(), f"{file} links to {target}"


@pytest.mark.parametrize("index", ["docs/index.md", "dev/decisions/index.md"])
def test_index_links_every_page_of_its_folder(index: str) -> None:
    folder = (ROOT / index).parent
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} - {"index.md"}
    linked = set(re.findall(r"\]\(([^)#\s]+)", (ROOT / index).read_text(encoding="utf-8")))
    assert pages <= linked, f"{index} does not link {', '.join(sorted(pages - linked))}"


WORDS = ["atomic", "authentication", "round-robin", "truncated", "record offsets", "range requests", "row count"]
WORDS += ["out of range", "unknown dimension", "companion feature", "memory"]


def test_words_that_users_search_for_are_in_the_documentation() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8").lower() for page in PAGES)
    assert [word for word in WORDS if word not in text] == []


INTERNALS = [page for page in PAGES if page.startswith(("dev/architecture", "dev/decisions", "docs/extend"))]
SOURCES = (ROOT / "tfrecord_io" / "bytes" / "_native").is_dir()  # the kernel's C++ files are not installed
PACKAGE = ROOT / "tfrecord_io" if SOURCES else Path(importlib.util.find_spec("tfrecord_io").origin).parent


def named_files(page: str) -> set[str]:
    """The files and folders of the repository that a page names in backticks."""
    names = set(re.findall(r"`([\w./*]+(?:/|\.py|\.cc|\.h|\.json))`", (ROOT / page).read_text(encoding="utf-8")))
    return {name for name in names if "/" in name or name.endswith(".py")}


def locate(name: str) -> Path:
    top, _, rest = name.partition("/")
    if top == "tfrecord_io":
        return PACKAGE / rest
    return ROOT / name if top in ("tests", "docs", "dev", "benchmarks") else PACKAGE / name


@pytest.mark.plugins("browse", "engines", "report", "tensorflow", "vision")
@pytest.mark.parametrize("page", INTERNALS)
def test_named_files_exist(page: str) -> None:
    missing = {name for name in named_files(page) if not locate(name).exists()}
    if not SOURCES:
        missing = {name for name in missing if not name.endswith((".cc", ".h")) and not name.startswith("benchmarks")}
    assert not missing, f"{page} names files that do not exist: {', '.join(sorted(missing))}"


def test_the_path_of_a_record_is_that_of_the_code() -> None:
    """Each row `file` | `name` of the architecture's tables is a class or a function of that file."""
    text = (ROOT / "dev" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+\.py)` \| `(\w+)` \|", text, re.MULTILINE)
    assert len(rows) > 20
    for file, name in rows:
        code = locate(file).read_text(encoding="utf-8")
        assert re.search(rf"^\s*(?:class|def) {name}\b", code, re.MULTILINE), f"{file} has no {name}"


def test_the_readme_goes_from_a_folder_of_images_to_training(
    photos: Path, example_buckets: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of that section alone, after the import of the first example, do all that its title says."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text("utf-8")
    begin = text.index("## From a folder of images to training")
    first, last = (text.count("\n", 0, at) for at in (begin, text.index("\n## ", begin)))
    namespace: dict[str, Any] = {"tfr": tfr}
    run_blocks("README.md", [block for block in blocks("README.md") if first < block[0] < last], namespace)

    page = Path("photos.html").read_text("utf-8")
    assert page.count("<img") > 0
    assert "cat" in page
    counts = {part: tfr.count(f"photos-parts/{part}.tfrecord") for part in ("train", "validation", "test")}
    assert counts == {"train": 80, "validation": 10, "test": 10}
    assert tfr.count("s3://my-bucket/train@2") == 80
    assert namespace["images"].shape == (16, 64, 64, 3)  # the last batch: 80 = 32 + 32 + 16
    assert namespace["images"].dtype == np.uint8
    assert set(namespace["labels"].tolist()) == {0, 1}


# The table of tools in the README: name, page, line of code.
TOOLS = re.findall(
    r"^\| \[?([\w. ]+)(?:\]\((.+)\))? \| `(tfr\..+)` \|$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE
)


@pytest.mark.parametrize(("page", "call"), [tool[1:] for tool in TOOLS], ids=[tool[0] for tool in TOOLS])
def test_a_tool_of_the_readme_works(page: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, _, anchor = page.partition("#")
    sections = {name.lower(): library for name, library in SECTIONS.get(page, {}).items()}
    for name in filter(None, (LIBRARIES.get(page), sections.get(anchor))):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord({"image": np.zeros((20, 4, 4), "uint8"), "label": np.arange(20) % 10}, "images.tfrecord.gz")
    assert eval(call, {"tfr": tfr}) is not None


def test_the_readme_has_a_table_of_tools() -> None:
    assert len(TOOLS) >= 8


def test_demo_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "demo" / "run.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "equal, including dtypes" in shown
    assert "PrecisionWarning: " in shown
    assert "bill_length_mm" in shown


def test_code_fits_the_width_of_the_text() -> None:
    """Printed text may be wider."""
    wide = [
        f"{page}: {line}"
        for page in PAGES
        if page == "README.md" or page.startswith("docs/")
        for language, text in re.findall(
            r"^```(\w+)\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        if language != "text"
        for line in text.splitlines()
        if len(line) > COLUMNS
    ]
    assert wide == []


def test_the_site_is_short() -> None:
    """Pages of docs/, without those that are made of docstrings and helps when the site is built.

    The limit of words is 41,500 since datasets that grow are followed, jobs are tried again, and training moves between
    numbers of workers.
    """
    pages = [*(ROOT / "docs").rglob("*.md")]
    assert len(pages) <= 44
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 41_500
    for name in ("performance", "reliability"):
        assert len((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split()) <= 800, name
