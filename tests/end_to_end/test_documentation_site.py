"""The documentation as a site in headless Chromium: ``make docs`` builds it, and runs this.

Skipped where the site is not built, or Chromium is not installed (``apt-get install chromium``).
"""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Page, page  # noqa: F401
from questions import QUESTIONS

SITE = Path(__file__).parents[2] / "build" / "site"
PAGES = sorted(file.parent.relative_to(SITE).as_posix() for file in SITE.rglob("index.html"))
SEARCH = """new Promise(async done => {
    const query = document.querySelector("[data-md-component=search-query]")
    query.focus()
    query.value = %r
    query.dispatchEvent(new Event("keyup", {bubbles: true}))
    const found = () => [...document.querySelectorAll(".md-search-result__link")].map(link => link.href)
    while (!found().length) await new Promise(tick => setTimeout(tick, 50))
    done(found())
})"""

# The links of the menu that are shown.
MENU = """[...document.querySelectorAll(".md-nav--primary a")]
    .filter(link => link.offsetParent).map(link => link.href.split("#")[0])"""

# Blocks of code that are wider than the text; printed text may be, also in examples of docstrings.
CUT = """[...document.querySelectorAll("div.highlight:not(.language-text, .language-pycon) pre > code")]
    .filter(code => code.scrollWidth > code.clientWidth).map(code => code.innerText)"""

pytestmark = pytest.mark.skipif(not PAGES, reason="the site is not built: make docs")


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site in a folder of its host, as it is published."""
    folder = tmp_path_factory.mktemp("host")
    (folder / "tfrecord_io").symlink_to(SITE, target_is_directory=True)
    handler = functools.partial(_Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/tfrecord_io/"
        server.shutdown()
        thread.join()


def messages(page: Page) -> list[str]:  # noqa: F811
    """What the browser reports, except for the labels of the theme's switches, which it hides with their fields."""
    return [message for message in page.messages if "FormLabelForMatchesNonExistingId" not in message]


@pytest.mark.parametrize(("width", "names"), [(390, PAGES), (1280, PAGES[::4])])
def test_pages_fit_the_window_and_need_no_other_site(
    page: Page,  # noqa: F811
    address: str,
    width: int,
    names: list[str],
) -> None:
    for name in names:
        page.open(f"{address}{name}/", width, dark=width == 390)
        assert messages(page) == [], name
        assert [url for url in page.requests if not url.startswith(address)] == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert page.evaluate("document.querySelectorAll('article h1').length") == 1, name
        assert width < 1280 or page.evaluate(CUT) == [], name


@pytest.mark.parametrize(
    ("query", "target"),
    [
        ("read_arrays", "reference/read/#read_arrays"),
        ("coco boxes", "howto/object-detection/"),
        ("S3 credentials", "howto/buckets/"),
    ],
)
def test_the_search_box_finds_pages(page: Page, address: str, query: str, target: str) -> None:  # noqa: F811
    page.open(address, 1280)
    found = [
        url.replace(address, "").split("?")[0] + "#" + url.partition("#")[2] for url in page.evaluate(SEARCH % query)
    ]
    assert any(url.startswith(target) for url in found[:6]), found
    assert messages(page) == []


def test_the_index_of_the_search_is_fetched_when_the_box_is_used(page: Page, address: str) -> None:  # noqa: F811
    page.open(f"{address}quickstart/", 1280)
    assert f"{address}search/search_index.json" not in page.requests
    assert page.evaluate(SEARCH % "gzip")
    assert page.requests.count(f"{address}search/search_index.json") == 1
    page.open(f"{address}quickstart/?h=gzip", 1280)  # a result of the search, with its words highlighted
    assert page.evaluate("document.querySelectorAll('article mark').length")


@pytest.mark.parametrize("words", QUESTIONS)
def test_the_words_of_users_find_their_page(page: Page, address: str, words: str) -> None:  # noqa: F811
    """Among the first three pages."""
    page.open(address, 1280)
    urls = [url.replace(address, "").partition("?")[0].partition("#")[0] for url in page.evaluate(SEARCH % words)]
    first = [url.rstrip("/") or "." for url in dict.fromkeys(urls)][:3]
    assert set(first) & {*QUESTIONS[words].split()}, first
    assert first[0] != "faq" or "faq" in QUESTIONS[words]


def test_answers_are_two_clicks_away(page: Page, address: str) -> None:  # noqa: F811
    """A link of the first page, or of a tab's menu."""
    page.open(address, 1280)
    links = "[...document.querySelectorAll(%r)].map(link => link.href.split('#')[0])"
    near = {*page.evaluate(links % "article a")}
    tabs = page.evaluate(links % ".md-tabs a")
    for tab in tabs:
        page.open(tab, 1280)
        near |= {*page.evaluate(MENU)}
    for words, targets in QUESTIONS.items():
        assert near & {address if target == "." else f"{address}{target}/" for target in targets.split()}, words


def test_the_notebook_is_a_page(page: Page, address: str) -> None:  # noqa: F811
    page.open(f"{address}notebooks/first-steps/", 1280)
    assert page.evaluate("document.querySelectorAll('article pre').length") >= 12  # code, and what it prints
    assert page.evaluate("[...document.querySelectorAll('article img')].every(image => image.naturalWidth > 100)")
    assert page.evaluate("document.querySelectorAll('article img').length") == 1


def test_the_text_for_language_models(address: str) -> None:
    short, full = ((SITE / name).read_text("utf-8") for name in ("llms.txt", "llms-full.txt"))
    assert "(http" in short
    assert "howto/images" in short
    assert "dev/" not in short
    assert "def read_table" in full or "read_table(" in full
