"""The page in headless Chromium: rows at any place, filters, records, keys; light and dark, wide and narrow.

Skipped where Chromium is not installed (``apt-get install chromium``).
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from browser.axe import findings
from rounds import COMPLETE
from waiting import wait_for

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

MANY = 10_000_000 if COMPLETE else 300_000  # rows, which are higher than an element may be
HOSTILE = "<script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">"
SHOWN = "[...document.querySelectorAll('#view:not(:has(.waiting)) .row')]"  # once all rows in sight are there


def wait(page: Any, condition: str, seconds: float = 20) -> Any:
    """Wait until a JavaScript expression holds; returns its value."""
    deadline = time.monotonic() + seconds
    while not (value := page.evaluate(f"(value => value instanceof Element || value)({condition})")):
        assert time.monotonic() < deadline, (condition, page.messages)
        time.sleep(0.05)
    return value


def problems(page: Any) -> list[str]:
    """What the browser reports, but for entries of its history that no key or click made."""
    page.evaluate("new Promise(done => setTimeout(done, 100))")  # what the page has caused so far arrives
    return [message for message in page.messages if "NavigationEntryMarkedSkippable" not in message]


def press(page: Any, *keys: str, control: bool = False) -> None:
    """Press keys."""
    for key in keys:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            page.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=2 if control else 0, **text)


def numbers(page: Any) -> list[int]:
    """The numbers of the rows in sight."""
    shown = page.evaluate(f"{SHOWN}.map(row => row.querySelector('[role=rowheader]').textContent).join(' ')")
    return [int(number.replace(",", "")) for number in shown.split()]


def texts(page: Any) -> list[str]:
    """The first cell of the rows in sight."""
    shown: list[str] = page.evaluate(f"{SHOWN}.map(row => row.querySelector('[role=gridcell]').textContent)")
    return shown


@pytest.fixture
def browse() -> Iterator[Any]:
    """Serve a source until the test ends; returns the address."""
    servers: list[tfr.typing.BrowseServer] = []

    def serve(source: Any, **keywords: Any) -> str:
        servers.append(tfr.browse(source, open_page=False, **keywords))
        return servers[-1].url

    yield serve
    for server in servers:
        server.close()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Images with boxes, one of them broken, and values of other kinds."""
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (300, 200), (90, 160, 220)).save(out, "JPEG")
    boxes = {
        f"image/object/bbox/{axis}": pa.array([[v]] * 6)
        for axis, v in zip(("ymin", "xmin", "ymax", "xmax"), (0.2, 0.3, 0.6, 0.7), strict=True)
    }
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(6 * 30, dtype=np.float32).reshape(6, 5, 6))
    data = {
        "image/encoded": [out.getvalue()] * 5 + [b"\xff\xd8\xff broken"],
        "label": list("abcabc"),
        "caption": ["long " * 200, None, "", "x", "y", "z"],
        "vector": [[0.5, 1.5, -1.0]] * 6,
        "tensor": tensor,
        "bytes": [bytes(range(200, 256))] * 6,
        **boxes,
    }
    tfr.write_tfrecord(pa.table(data), tmp_path / "photos.tfrecord", float64="round")
    return tmp_path / "photos.tfrecord"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_is_quiet_accessible_and_fits(
    page: Any, browse: Any, photos: Path, tmp_path: Path, width: int, dark: bool
) -> None:
    url = browse(photos)
    page.open(url, width, dark=dark)
    wait(page, f"{SHOWN}.length == 6 && document.querySelectorAll('#view img').length")
    seen = [(what, findings(page)) for what in ("table",)]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("columns", "take", "help", "sql"):
        page.evaluate(f"$('{name}').click()")
        wait(page, "$('panel').open")
        seen.append((name, findings(page)))
        assert page.evaluate("$('panel').getBoundingClientRect().right") <= width
        page.evaluate("$('panel').close()")
    page.evaluate("openColumn(1)")
    wait(page, "document.querySelector('#panel .values')")
    seen.append(("column", findings(page)))
    page.evaluate("$('panel').close(), openRow(2)")
    wait(page, "!$('record').hidden && document.querySelector('#content img')")
    seen.append(("record", findings(page)))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [each for each in seen if each[1]] == []
    assert problems(page) == []
    assert {request for request in page.requests if not request.startswith(url)} == set()


def test_images_are_shown_with_their_boxes(page: Any, browse: Any, photos: Path) -> None:
    page.open(browse(photos), 1280)
    wait(page, f"{SHOWN}.length == 6")
    wait(page, "[...document.querySelectorAll('#view .image img')].every(i => i.complete && i.naturalWidth > 0)")
    assert page.evaluate("document.querySelectorAll('#view .picture rect').length") == 5
    assert page.evaluate("document.querySelectorAll('#view .broken').length") == 1
    same = """[...document.querySelectorAll('#view .picture svg')].every(svg => {
        const [a, b] = [svg, svg.parentElement.querySelector('img')].map(e => e.getBoundingClientRect());
        return ['left', 'right', 'top', 'bottom'].every(side => Math.abs(a[side] - b[side]) < 1)})"""
    assert page.evaluate(same)


def test_any_row_of_many_is_a_scroll_a_key_or_a_number_away(page: Any, browse: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(10)}, tmp_path / "ten", embed_schema=False)
    (tmp_path / "many.tfrecord").write_bytes((tmp_path / "ten").read_bytes() * (MANY // 10))
    page.open(browse(tmp_path / "many.tfrecord"), 1280)
    wait(page, f"$('count').textContent == '{MANY:,} rows'", 60)
    wait(page, f"{SHOWN}.length > 5")
    assert numbers(page)[:3] == [0, 1, 2]
    page.evaluate("scroller.focus()")
    press(page, "End", control=True)
    wait(page, f"{SHOWN}.at(-1)?.dataset.row == {MANY - 1}")
    assert texts(page)[-1] == "9"
    page.evaluate("scroller.scrollTop = scroller.scrollHeight / 2")
    middle = wait(page, f"(row => row > 1000 && row < {MANY - 1000} && row)(Number({SHOWN}[0]?.dataset.row))")
    assert abs(middle - MANY / 2) < MANY / 50
    page.evaluate("scroller.scrollTop += 36")
    wait(page, f"{SHOWN}[0]?.dataset.row == {middle + 1} || {SHOWN}[0]?.dataset.row == {middle + 2}")
    time.sleep(0.4)  # the bar is set to the place of these rows
    assert abs(int(page.evaluate(f"{SHOWN}[0].dataset.row")) - middle) <= 2
    page.evaluate(f"$('goto').value = '{MANY - 1000:,}', $('jump').requestSubmit()")
    wait(page, f"{SHOWN}[0]?.dataset.row == {MANY - 1000}")
    press(page, "ArrowDown", "ArrowDown", "PageDown")
    row = int(page.evaluate("state.row"))
    assert row > MANY - 998
    press(page, "Enter")
    wait(page, "!$('record').hidden")
    assert page.evaluate("location.hash") == f"#many:{row}"
    press(page, "j")
    wait(page, f"location.hash == '#many:{row + 1}'")
    press(page, "Escape")
    wait(page, f"$('record').hidden && {SHOWN}.some(each => each.dataset.row == {row + 1})")


def test_a_link_opens_a_record(page: Any, browse: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(90)}, tmp_path / "train@3")
    page.open(browse(tmp_path) + "#train-00001:4", 1280)
    wait(page, "!$('record').hidden && $('content').textContent.includes('34')")


def test_a_filter_is_completed_counted_and_changed(page: Any, browse: Any, tmp_path: Path) -> None:
    data = {"label": ["cat", "dog", "cow"] * 1000, "x": np.arange(3000)}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    page.open(browse(tmp_path / "a.tfrecord"), 1280)
    wait(page, "$('count').textContent == '3,000 rows'")
    press(page, "/")
    assert page.evaluate("document.activeElement.id") == "where"
    page.call("Input.insertText", text="la")
    wait(page, "$('hints').textContent == 'label'")
    press(page, "ArrowDown")
    press(page, "Enter")
    page.call("Input.insertText", text="== ")
    wait(page, "$('hints').textContent.includes(\"'dog'\")")
    page.call("Input.insertText", text="'dog'")
    page.evaluate("$('search').requestSubmit()")
    wait(page, "$('count').textContent == '1,000 of 3,000 rows'")
    wait(page, f"{SHOWN}.length > 5 && {SHOWN}.every(row => row.textContent.includes('dog'))")
    assert set(texts(page)) == {"dog"}
    assert numbers(page)[:3] == [1, 4, 7]
    page.evaluate("$('where').value = 'x ==', $('search').requestSubmit()")
    wait(page, "!$('message').hidden")
    page.evaluate("$('where').value = '', $('search').requestSubmit()")
    wait(page, "$('count').textContent == '3,000 rows' && $('message').hidden")


def test_columns_are_hidden_searched_and_pinned(page: Any, browse: Any, tmp_path: Path) -> None:
    columns = 5000 if COMPLETE else 1000
    tfr.write_tfrecord({f"c{at:05}": [at, at] for at in range(columns)}, tmp_path / "wide.tfrecord")
    page.open(browse(tmp_path / "wide.tfrecord"), 1280)
    wait(page, f"{SHOWN}.length == 2")
    assert page.evaluate("document.querySelectorAll('#view .cell').length") < 100
    page.evaluate("scroller.scrollLeft = scroller.scrollWidth")
    wait(page, f"{SHOWN}[0]?.textContent.endsWith('{columns - 1}')")
    page.evaluate("togglePin(7)")
    wait(page, f"{SHOWN}[0]?.querySelector('.pinned + .pinned')?.textContent == '7'")
    assert page.evaluate("document.querySelector('#head .pinned + .pinned').title") == "c00007"
    page.evaluate("openRow(1)")
    wait(page, "document.querySelector('#content section h2')?.textContent == 'c00007'")  # of 500 columns, the first
    page.evaluate("close()")
    page.evaluate("choose([7, 3])")
    wait(page, "document.querySelectorAll('#head .cell').length == 3")
    page.evaluate("$('columns').click()")
    page.evaluate("document.querySelector('#panel input').value = '0099'")
    page.evaluate("document.querySelector('#panel input').dispatchEvent(new Event('input'))")
    assert page.evaluate("document.querySelectorAll('#panel li').length") == 11


def test_hostile_files_do_nothing(page: Any, browse: Any, tmp_path: Path) -> None:
    data = {HOSTILE: [HOSTILE] * 3, "n" * 5000: ["y" * 1_000_000] * 3, "json": [json.dumps({HOSTILE: HOSTILE})] * 3}
    tfr.write_tfrecord(data, tmp_path / f"{HOSTILE.replace('/', '')}.tfrecord")
    page.open(browse(tmp_path), 1280)
    wait(page, f"{SHOWN}.length == 3")
    page.evaluate("openColumn(0)")
    wait(page, "document.querySelector('#panel .values')")
    page.evaluate("$('panel').close(), openRow(1)")
    wait(page, "document.querySelectorAll('#content section').length == 3")
    assert page.evaluate("document.querySelectorAll('#content script, #content img[src=x], #view script').length") == 0
    assert "hacked" not in page.evaluate("document.title").replace(HOSTILE.replace("/", ""), "")
    assert problems(page) == []


def test_a_file_that_grows_shows_its_rows_on_reload(page: Any, browse: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [1, 2, 3]}, path, embed_schema=False)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    url = browse(path)
    page.open(url, 1280)
    wait(page, "document.querySelector('#view .damage')?.textContent.includes('still being written')")
    path.write_bytes(whole * 2)
    page.open(url, 1280)
    wait(page, f"$('count').textContent == '6 rows' && {SHOWN}.length == 6")
    assert texts(page) == ["1", "2", "3"] * 2


def test_two_readers_have_filters_of_their_own(page: Any, browse: Any, tmp_path: Path) -> None:
    import httpx

    tfr.write_tfrecord({"x": np.arange(1000)}, tmp_path / "a.tfrecord")
    url = browse(tmp_path / "a.tfrecord")
    page.open(url, 1280)
    wait(page, "$('count').textContent == '1,000 rows'")
    page.evaluate("search('x < 10')")
    wait_for(lambda: httpx.get(url + "search", params={"where": "x >= 990"}).json()["complete"])
    rows = httpx.get(url + "rows", params={"first": 0, "count": 5, "columns": "0", "where": "x >= 990"}).json()["rows"]
    assert [row["n"] for row in rows] == [990, 991, 992, 993, 994]
    wait(page, "$('count').textContent == '10 of 1,000 rows'")


def test_a_page_in_the_frame_of_a_notebook(
    page: Any, browse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    tfr.write_tfrecord({"x": np.arange(7)}, tmp_path / "a.tfrecord")
    server = tfr.browse(tmp_path / "a.tfrecord")
    (tmp_path / "notebook.html").write_text(f"<!doctype html><meta charset=utf-8>{server._repr_html_()}", "utf-8")
    page.open(tmp_path / "notebook.html", 900)
    deadline = time.monotonic() + 20
    while not server._readers:  # the frame is another process, whose requests this tab does not see
        assert time.monotonic() < deadline, page.messages
        page.evaluate("new Promise(done => setTimeout(done, 50))")
    assert problems(page) == []
    server.close()
