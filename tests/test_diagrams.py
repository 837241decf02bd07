"""The pictures of the documentation are up to date with the text that they are drawn from."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tfrecord_io as tfr

DOCS = Path(__file__).parents[1] / "docs"
DEMOS = DOCS.parent / "examples" / "demos"


@pytest.fixture(scope="module")
def architecture() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "diagrams" / "architecture.py"))


def test_architecture_is_up_to_date(architecture: dict[str, Any]) -> None:
    drawn = architecture["render"](architecture["parse"](architecture["SOURCE"].read_text(encoding="utf-8")))
    assert architecture["TARGET"].read_text(encoding="utf-8") == drawn, "run: make reference DIAGRAMS=1"


def test_performance_is_up_to_date() -> None:
    """The pictures are those of the saved results, and the pages state the figures of Parquet's picture."""
    performance = runpy.run_path(str(DOCS / "diagrams" / "performance.py"))
    measured = json.loads(performance["SOURCE"].read_text(encoding="utf-8"))
    ratios = performance["beside_parquet"](performance["PAGE"].read_text(encoding="utf-8"))
    drawings = {
        "performance.svg": performance["render"](measured),
        "parquet.svg": performance["render_parquet"](ratios),
    }
    for name, drawn in drawings.items():
        assert (DOCS / "images" / name).read_text(encoding="utf-8") == drawn, "run: make reference DIAGRAMS=1"
        root = ElementTree.fromstring(drawn)
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
    page = (DOCS / "performance.md").read_text(encoding="utf-8")
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    for call, values in ratios.items():
        own, parquet = call.split(" ÷ ")
        assert f"| `{own}` ÷ `{parquet}` | {values[-1]:.2f} | {min(values[:-1]):.2f} | {max(values[:-1]):.2f} |" in page
        assert f"`{own}` {values[-1]:.2f}" in readme


def test_architecture_is_well_formed(architecture: dict[str, Any]) -> None:
    root = ElementTree.parse(architecture["TARGET"]).getroot()
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


def test_unknown_lines_are_refused(architecture: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unknown line: lane: x"):
        architecture["parse"]("row:\nlane: x\n")


def test_architecture_has_the_floors_of_the_code(architecture: dict[str, Any]) -> None:
    """The numbers in the boxes are the floors that test_layout.py enforces."""
    floors = runpy.run_path(str(Path(__file__).with_name("test_layout.py")))["FLOORS"]
    drawing = architecture["parse"](architecture["SOURCE"].read_text(encoding="utf-8"))
    for box in [*drawing.bars.values(), *(box for row in drawing.rows for box in row.boxes.values())]:
        low, _, high = box.floor.replace(", ", "–").partition("–")
        paths = [*box.path.split(), *(line for line in box.lines if line.endswith("/"))]
        units = [re.match(r"(apps/)?\w+", path) for path in paths]
        found = {floors[unit[0]] for unit in units if unit}
        assert {min(found), max(found)} == {int(low), int(high or low)}, box.path


def lines_of(drawing: str) -> list[str]:
    """The lines of a picture, each with zeros for its numbers: the sizes of JPEG files depend on the library."""
    texts = ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")
    return [re.sub(r"0x[0-9a-f]+|[0-9][0-9,.]*", "0", text.text or "") for text in texts]


@pytest.fixture(scope="module")
def casts() -> dict[str, Any]:
    if not DEMOS.exists() or sys.platform == "win32":
        pytest.skip("the demonstrations are not installed, or there is no terminal for them")
    pytest.importorskip("PIL")
    return runpy.run_path(str(DOCS / "diagrams" / "casts.py"))


def test_casts_show_what_the_commands_print(casts: dict[str, Any]) -> None:
    for path, drawn in casts["casts"]().items():
        shown = path.read_text(encoding="utf-8")
        assert lines_of(shown) == lines_of(drawn), "run: make reference DIAGRAMS=1"
        width, height = re.search(r'viewBox="0 0 (\d+) (\d+)"', shown).groups()
        assert f"images/{path.name}){{ width={width} height={height} " in (DOCS / "index.md").read_text(
            encoding="utf-8"
        )


def test_killed_training_goes_on_with_the_very_next_batch(casts: dict[str, Any], tmp_path: Path) -> None:
    for demo in DEMOS.glob("*.py"):
        shutil.copy(demo, tmp_path)
    run = casts["run"]
    assert run("python meadow.py", tmp_path) == []
    whole = run("python train.py", tmp_path)
    killed, resumed = run("python train.py --kill-after 3", tmp_path), run("python train.py", tmp_path)
    assert (killed[-1], resumed[0]) == ("Killed", "going on after batch 3")
    assert killed[:-1] + resumed[1:] == whole
    assert len(whole) == 8


def test_the_demonstration_has_the_arrays_that_its_picture_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of TensorFlow are compared by tests/conformance/test_demonstration.py."""
    pytest.importorskip("PIL")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(DEMOS / "meadow.py"), run_name="__main__")
    arrays = runpy.run_path(str(DEMOS / "with_tfrecord_io.py"))["arrays"]
    measured = (DOCS / "diagrams" / "beside_tensorflow.txt").read_text(encoding="utf-8")
    assert re.findall(r"^equal: (.*)$", measured, re.MULTILINE) == [
        f"{name} {array.dtype} {list(array.shape)}" for name, array in arrays.items()
    ]


def test_the_page_of_the_demonstration_has_images_and_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(DEMOS / "meadow.py"), run_name="__main__")
    page = tfr.report("meadow.tfrec", "page.html").html
    assert page.count("<img") >= 24
    assert page.index("<h2>Images: image") < page.index("<h2>Features")
    assert '<b title="caption">' in page
    assert "<rect" in page
