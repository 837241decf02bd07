"""The steps of the hosted workflows can be run here: targets of the Makefile, scripts of dev/, or `.ci/run`."""

from __future__ import annotations

import re
import runpy
import tomllib
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr

ROOT = Path(__file__).parents[1]
if not (ROOT / ".github").is_dir():
    pytest.skip("they are not in the sdist", allow_module_level=True)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
# What only the hosted machines can do: the release needs their identity, and wheels of other platforms their systems.
# Compilers for other processors are installed there.
HOSTED = ("sudo apt-get ", "bash .ci/run", "gh release create")
SCRIPTS = {f"dev/{path.name}" for path in (ROOT / "dev").iterdir() if path.is_file() and not path.suffix}


def test_there_are_workflows() -> None:
    assert {path.stem for path in WORKFLOWS} == {"quick", "full", "nightly", "wheels", "docs", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_steps_are_targets(path: Path) -> None:
    text = path.read_text("utf-8")
    commands = re.findall(r"^\s*-? ?run: (.+)$", text, re.MULTILINE)
    matrix = re.search(r"^( +)target:\n((?:\1  - .+\n)+)", text, re.MULTILINE)
    listed = re.findall(r"- (.+)", matrix[2]) if matrix else []
    for command in [*commands, *(f"make {each}" for each in listed)]:
        if command.startswith("make ${{") or command.startswith(HOSTED):
            continue
        if command.split()[0] in SCRIPTS:
            continue
        assert command.startswith("make "), command
        words = re.findall(r"(?:[^\s']|'[^']*')+", command)[1:]
        assert {word for word in words if "=" not in word} <= TARGETS, command


def test_each_night_runs_what_a_change_need_not() -> None:
    """All tests with new examples, and the targets that `.ci/run` runs only where a change touches them."""
    text = (ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8")
    names = {"test-adapters", "wheel-test", "test-lowest", "conformance", "fuzz", "simulate", "test-border"}
    assert names <= set(re.findall(r"^ +- ([\w-]+)(?: \w+=.*)?$", text, re.MULTILINE))
    assert "- test-full STORM=1 RANDOM=1\n" in text


def test_each_night_runs_the_tests_as_on_another_machine() -> None:
    jobs = jobs_of(ROOT / ".github" / "workflows" / "nightly.yml")
    assert "- run: dev/test-elsewhere\n" in jobs["another-machine"]
    script = (ROOT / "dev" / "test-elsewhere").read_text("utf-8")
    (folder,) = re.findall(r'^folder="(.+)"$', script, re.MULTILINE)
    assert " " in folder
    assert not folder.isascii()
    assert len(folder.replace("$place", "/tmp/XXXXXXXX")) >= 60
    assert re.search(r"^TMPDIR=\$folder LANG=C TZ=Asia/Kathmandu make test$", script, re.MULTILINE)


@pytest.fixture(scope="module")
def touched() -> Any:
    return runpy.run_path(str(ROOT / ".ci" / "touched.py"))


def test_a_change_runs_what_it_touches(touched: Any) -> None:
    def of(*names: str) -> set[str]:
        return {command.split(" PYTEST_ARGS")[0] for command in touched["touched"](names)}

    assert of("docs/index.md") == set()
    assert of("docs/index.md", "tfrecord_io/read/reader.py") == {"make test-full"}
    assert "make test-adapters ONLY=torch" in of("tfrecord_io/apps/adapters/torch.py")
    assert "make test-adapters ONLY=torch" in of("tests/apps/adapters/test_torch_distributed.py")
    assert "make test-adapters ONLY=spark" in of("tfrecord_io/plugins/engines/spark.py")
    kernel = {"make test-full STORM=1", "dev/bench .venv -m benchmarks.guard", "make fuzz SECONDS=60"}
    assert of("tfrecord_io/bytes/_native/frame.cc") == {*kernel, "make conformance"}
    assert "make conformance" in of("tests/conformance/test_tfx.py")
    everything = set(touched["rules"]())
    assert set(touched["touched"](None)) == everything
    assert touched["changed"]("no such commit") is None
    for command in everything:
        program, target = command.split()[:2]
        assert program in SCRIPTS if program != "make" else target in TARGETS, command


def test_a_change_of_documented_behaviour_has_a_fragment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    missing = runpy.run_path(str(ROOT / ".ci" / "changelog.py"))["missing_fragment"]
    assert "docs/errors.md" in missing(["docs/errors.md", "tfrecord_io/errors.py"], "Fix words")
    assert missing(["docs/errors.md", "changelog.d/README.md"], "Fix words") is not None
    assert missing(["docs/errors.md", "changelog.d/errors.fixed.md"], "Fix words") is None
    assert missing(["docs/errors.md"], "Fix words\n\nChangelog: none") is None
    assert missing(["tfrecord_io/errors.py", "dev/glossary.md"], "Fix words") is None


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_are_bounded_and_have_few_permissions(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE)
    assert text.count("runs-on:") == text.count("timeout-minutes:")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash_and_keep_no_credentials(path: Path) -> None:
    text = path.read_text("utf-8")
    for action in re.findall(r"uses: (.+)$", text, re.MULTILINE):
        assert re.fullmatch(r"\./\.github/workflows/\w+\.yml|[\w./-]+@[0-9a-f]{40} # v[\d.]+", action), action
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def jobs_of(path: Path) -> dict[str, str]:
    """The text of each job, by its name."""
    _, _, jobs = path.read_text("utf-8").partition("\njobs:\n")
    parts = re.split(r"^  ([\w-]+):.*\n", jobs, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_each_job_of_the_release_has_the_rights_of_its_task_alone() -> None:
    """What runs code of the repository can neither publish nor change it; what publishes runs none."""
    jobs = jobs_of(ROOT / ".github" / "workflows" / "release.yml")
    rights = {name: set(re.findall(r"^      ([\w-]+: write)", text, re.MULTILINE)) for name, text in jobs.items()}
    assert rights["full"] == rights["wheels"] == set()
    assert rights["build"] == {"id-token: write", "attestations: write"}
    assert rights["publish"] == {"id-token: write"}
    assert rights["page"] == {"contents: write"}
    assert [name for name, text in jobs.items() if "environment: pypi" in text] == ["publish"]
    for name in ("publish", "page"):
        assert "checkout" not in jobs[name]
        assert "run: make" not in jobs[name]
    assert "run: dev/dist check" in jobs["build"]


def test_no_wheel_is_made_without_its_kernel() -> None:
    """It would be for all platforms, and be installed instead of the sdist."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    build, wheels = settings["scikit-build"], settings["cibuildwheel"]
    assert "overrides" not in build
    assert build["wheel"].keys() == {"packages", "py-api", "exclude"}
    assert all(part.get("test-command") != "" for part in (wheels, wheels["macos"], wheels["windows"]))


def test_a_wheel_has_no_source_of_the_kernel() -> None:
    excluded = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["scikit-build"]["wheel"]["exclude"]
    native = {path.suffix for path in (ROOT / "tfrecord_io" / "bytes" / "_native").iterdir() if path.is_file()}
    assert native - {".py", ".pyi", ".so"} == {pattern.removeprefix("**") for pattern in excluded}


@pytest.fixture(scope="module")
def dist_check() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / ".ci" / "dist_check.py"))


def test_what_may_be_published(dist_check: dict[str, Any]) -> None:
    faults = dist_check["faults_of_wheel"]
    licences = [f"tfrecord_io-0.1.0.dist-info/licenses/{name}" for name in dist_check["LICENCES"]]
    assert len(licences) == 4
    kernel = "tfrecord_io/bytes/_native/_kernel.abi3.so"
    assert faults("tfrecord_io-0.1.0-cp312-abi3-manylinux_2_28_x86_64.whl", [kernel, *licences]) == []
    found = faults("tfrecord_io-0.1.0-py3-none-any.whl", licences[1:])
    assert [fault[:7] for fault in found] == ["is for ", "has no ", "lacks L"]


def test_what_a_description_must_say(dist_check: dict[str, Any]) -> None:
    def metadata(text: str) -> Message:
        message = Message()
        message["Version"] = "0.1.0"
        message.set_payload(text)
        return message

    faults, line = dist_check["faults_of_metadata"], dist_check["RELEASE"]
    assert faults(metadata(f"{line}\n[a](https://example.org)"), "0.1.0") == []
    assert len(faults(metadata("[a](docs/index.md)"), "0.2.0")) == 3


def test_the_recipe_for_conda_has_the_dependencies_and_the_version() -> None:
    text = (ROOT / ".ci" / "recipe.yaml").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    stated = {
        name.removeprefix("python-"): bound for name, bound in re.findall(r"^    - ([\w-]+) ([<>=].*)$", text, re.M)
    }
    for needed in project["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)([^;]*)(?:;.*)?", needed).groups()  # type: ignore[union-attr]
        assert stated[name] == bound, needed
    assert f'version: "{tfr.__version__}"' in text


BUILDS = ("CMakeLists.txt", "Makefile", "tests/fuzz/Makefile", *sorted(SCRIPTS))


@pytest.mark.parametrize("build", BUILDS)
def test_paths_of_the_package_that_builds_name_exist(build: str) -> None:
    named = re.findall(r"tfrecord_io(?:/\w+)+", (ROOT / build).read_text("utf-8"))
    assert [path for path in named if not any(ROOT.glob(f"{path}*"))] == []
