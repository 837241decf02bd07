"""What plugins and other packages add: public names and commands; and the error about a plugin that was removed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from operator import attrgetter
from pathlib import Path

import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from installed import install
from tfrecord_io.apps.cli.command_group import CommandGroup, all_commands
from tfrecord_io.base.registry import ADAPTERS, COMMANDS, FORMATS, FRAMES, NAMES, OWN, SCHEMAS, Point

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
PLUGINS = sorted({value.split(".")[2] for points in OWN.values() for value in points.values()})


def test_the_plugins_of_this_package_are_in_one_table() -> None:
    """Entry points of its own would be a second one, which nothing reads."""
    declared = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["entry-points"]
    assert [group for group in declared if group.startswith("tfrecord_io.")] == []


@pytest.mark.parametrize("group", OWN)
def test_each_point_of_a_plugin_is_there(group: str) -> None:
    for point in Point.own_points(group):
        if not point.name.startswith("beam."):  # which import Apache Beam
            assert point.load() is not None


@pytest.mark.parametrize("point", Point.own_points(NAMES), ids=lambda point: point.name)
def test_a_name_of_a_plugin_is_a_public_name(point) -> None:
    if point.name.startswith("beam."):
        pytest.importorskip("apache_beam")
    assert attrgetter(point.name)(tfr) is point.load()


@pytest.mark.parametrize("module", ["", "formats"])
def test_another_package_adds_a_public_name(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "def read_lance(path):\n    return path\n"
    name = f"{module}.read_lance".lstrip(".")
    install(tmp_path, "lance_of_tfrecord", code, NAMES, {name: "lance_of_tfrecord:read_lance"})
    monkeypatch.syspath_prepend(str(tmp_path))
    shows = getattr(tfr, module) if module else tfr
    assert "read_lance" in dir(shows)
    assert shows.read_lance("a") == "a"
    monkeypatch.delitem(vars(shows), "read_lance")


def test_a_package_does_not_replace_a_name_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (point,) = Point.own_points(NAMES)[:1]
    install(tmp_path, "other_of_tfrecord", "new = None", NAMES, {point.name: "other_of_tfrecord:new"})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert Point.find(NAMES, point.name) == point


def test_the_names_of_the_core_are_found_without_a_look_at_other_packages() -> None:
    code = (
        "import tfrecord_io as tfr, tfrecord_io.base.public_names as names\n"
        "names.Point.find = None\n"
        "tfr.read_table, tfr.formats.open_npy, tfr.io.FixedLenFeature, tfr.typing.Reader"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


COMMAND = """
import click
from tfrecord_io.apps.cli.command_group import tfr

@tfr.declare("Show")
@click.argument("path")
def lance(path):
    "Show a dataset of Lance."
    print("lance", path)
"""


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> CommandGroup:
    """The group of commands, which does not know those of other packages yet, and forgets them."""
    group = all_commands()
    monkeypatch.setattr(group, "_has_others", False)
    monkeypatch.setattr(group, "commands", {**group.commands})
    monkeypatch.setattr(group, "sections", {title: [*commands] for title, commands in group.sections.items()})
    return group


def test_another_package_adds_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: CommandGroup) -> None:
    install(tmp_path, "lance_command", COMMAND, COMMANDS, {"lance": "lance_command:lance"})
    install(tmp_path, "count_command", COMMAND.replace("lance", "count"), COMMANDS, {"count": "count_command:count"})
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(RuntimeWarning, match="the command 'count' of the package 'count_command' is left out"):
        assert "lance" in group.list_commands(None)
    assert CliRunner().invoke(group, ["lance", "a"]).output == "lance a\n"
    assert "Show a dataset of Lance." in CliRunner().invoke(group, ["--help"]).output


REMOVED = """
import sys
from operator import attrgetter

class Removed:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("tfrecord_io.plugins.{plugin}"):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Removed())
import tfrecord_io as tfr
from click.testing import CliRunner
from tfrecord_io.base.libraries import ADAPTERS
from tfrecord_io.apps.cli.command_group import all_commands
from tfrecord_io.base.registry import OWN, Point
from tfrecord_io.bytes.format.known_formats import FORMATS

calls = {{
    {groups[0]!r}: ADAPTERS.get,
    {groups[2]!r}: FORMATS.get,
    {groups[3]!r}: lambda name: attrgetter(name)(tfr),
    {groups[4]!r}: lambda name: Point.load_own({groups[4]!r}, name),
    {groups[5]!r}: lambda name: Point.load_own({groups[5]!r}, name),
}}
for group, points in OWN.items():
    for name, value in points.items():
        if ".plugins.{plugin}." not in value:
            continue
        reason = f"'{{name}}' is of tfrecord_io.plugins.{plugin}, which this installation does not have"
        if group in calls:
            try:
                calls[group](name)
            except tfr.errors.MissingDependencyError as error:
                assert reason in str(error), error
            else:
                raise AssertionError(name)
        else:
            result = CliRunner().invoke(all_commands(), [name, "--help"])
            assert result.exit_code != 0 and reason in result.stderr, result.stderr
assert CliRunner().invoke(all_commands(), ["--help"]).exit_code == 0
tfr.write_tfrecord({{"x": [1]}}, "a.tfrecord")
tfr.convert("a.tfrecord", "a.csv")
tfr.convert("a.csv", "b.tfrecord")
assert tfr.read_table("b.tfrecord").to_pydict() == {{"x": [1]}}
tfr.write_tfrecord({{"x": [1]}}, "c.tfrecord", embed_schema=False)
assert tfr.read_table("c.tfrecord").to_pydict() == {{"x": [1]}}
"""


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_that_was_removed_is_named_and_the_rest_works(plugin: str, tmp_path: Path) -> None:
    code = REMOVED.format(plugin=plugin, groups=(ADAPTERS, COMMANDS, FORMATS, NAMES, SCHEMAS, FRAMES))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
