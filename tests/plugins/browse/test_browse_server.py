"""The server: what it answers, to whom, and that nothing of a file becomes HTML."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.errors import MissingDependencyError
from waiting import wait_for

pytest.importorskip("starlette")
testclient = pytest.importorskip("starlette.testclient")
pytest.importorskip("uvicorn")

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e\x1b"


class Client:
    """Requests to the application of a server, which is not started."""

    def __init__(self, server: tfr.typing.BrowseServer) -> None:
        self.server = server
        self.base = server.url[: -len(server.url.split("/")[-2]) - 2]
        self.token = server.url.split("/")[-2]
        self._client = testclient.TestClient(server._server.config.app, base_url=self.base)

    def get(self, name: str, headers: dict[str, str] | None = None, **query: Any) -> Any:
        return self._client.get(f"/{self.token}/{name}", params=query, headers=headers or {})

    def ask(self, name: str, **query: Any) -> Any:
        answer = self.get(name, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait(self, name: str, **query: Any) -> Any:
        """The answer once it is complete."""

        def complete_answer() -> Any:
            answer = self.ask(name, **query)
            return answer if answer["complete"] else None

        return wait_for(complete_answer)

    def search(self, where: str) -> Any:
        return self.wait("search", where=where)

    def find_all(self, rows: int) -> None:
        self.server._pages.dataset.map.find(rows)


@pytest.fixture
def client() -> Iterator[Any]:
    """Serve a source, until the test ends."""
    from tfrecord_io.plugins.browse.browse_server import make_server

    made: list[tfr.typing.BrowseServer] = []

    def serve(source: Any, other: Any = None, **keywords: Any) -> Client:
        made.append(make_server(source, {}, other, **keywords))
        return Client(made[-1])

    yield serve
    for server in made:
        server.close()


@pytest.fixture
def words(tmp_path: Path) -> Path:
    tfr.write_tfrecord({"n": np.arange(100), "word": ["cat", "dog", None, ""] * 25}, tmp_path / "words.tfrecord")
    return tmp_path / "words.tfrecord"


class _Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}


def markup(texts: Any) -> _Tags:
    """The elements and attributes in all texts of an answer."""
    parser = _Tags()
    parser.feed(json.dumps(texts, ensure_ascii=False).replace('\\"', '"'))
    return parser


def test_rows_are_cells_of_html(client: Any, words: Path) -> None:
    answer = client(words).ask("rows", first=1, count=3, columns="0,1")
    assert [row["at"] for row in answer["rows"]] == ["words:1", "words:2", "words:3"]
    cells = [row["cells"][1] for row in answer["rows"]]
    assert cells == [
        '<span class="text">dog</span>',
        '<span class="null">null</span>',
        '<span class="null">empty text</span>',
    ]
    assert answer["rows"][0]["cells"][0] == '<span class="num">1</span>'


def test_a_search_gives_the_rows_and_how_to_get_them(client: Any, words: Path) -> None:
    served = client(words)
    served.find_all(100)
    assert served.search("word == 'cat' and n > 50")["count"] == 12
    found = served.ask("rows", first=0, count=2, columns="0", where="word == 'cat' and n > 50")["rows"]
    assert [row["n"] for row in found] == [52, 56]
    lines = served.ask("lines", where="n > 97", columns="0")
    table = eval(lines["python"], {"tfr": tfr})
    assert table.to_pydict() == {"n": [98, 99]}
    assert lines["command"] == f"tfr cat {words} --where 'n > 97' -c n"
    answer = served.get("search", where="n >")
    assert answer.status_code == 400
    assert "n >" in answer.json()["error"]
    assert "filters=" not in answer.json()["error"]


def test_types_are_named_by_their_dtype(client: Any, tmp_path: Path) -> None:
    columns = {"z": np.zeros((2, 3), "complex64"), "x": np.zeros((2, 3, 4), "float32")}
    tfr.write_tfrecord(columns, tmp_path / "a.tfrecord")
    info = client(tmp_path / "a.tfrecord").ask("info")
    types = [html.unescape(info["forms"][number]["type"]) for number in info["form_of"]]
    assert types == ["tensor<complex64>[3]", "tensor<float32>[3, 4]"]


def test_lines_name_a_column_whose_name_is_a_pattern(client: Any, tmp_path: Path) -> None:
    names = ["!a", "b*", "bc", "*", "c[0]", "c0"]
    tfr.write_tfrecord({name: [1] for name in names}, tmp_path / "a.tfrecord")
    served = client(tmp_path / "a.tfrecord")
    for at, name in enumerate(names):
        lines = served.ask("lines", columns=str(at))
        assert eval(lines["python"], {"tfr": tfr}).column_names == [name]


def test_a_record_shows_what_is_stored(client: Any, words: Path) -> None:
    served = client(words)
    page = served.ask("record", at="words:1")
    assert page["n"] == 1
    for part in ("dog", "good", "As stored: 2 features", "<dt>Checksum</dt>", str(words)):
        assert part in page["html"]
    assert served.get("record", at="words:100").status_code == 400
    assert served.get("record", at="other:1").status_code == 400


def test_a_damaged_record_is_a_row_that_says_what_is_wrong(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": np.arange(10)}, path, embed_schema=False)
    data = bytearray(path.read_bytes())
    size = len(data) // 10
    data[5 * size + 15] ^= 1
    path.write_bytes(data)
    served = client(path)
    rows = served.ask("rows", first=0, count=10, columns="0")["rows"]
    assert ["damage" in row for row in rows] == [at == 5 for at in range(10)]
    assert "payload CRC mismatch" in rows[5]["damage"]
    assert "payload CRC mismatch" in served.ask("record", at="a:5")["html"]


def test_nothing_of_a_file_becomes_markup(client: Any, tmp_path: Path) -> None:
    data = {
        HOSTILE: [HOSTILE] * 3,
        "json": [json.dumps({HOSTILE: [HOSTILE]})] * 3,
        "bytes": [HOSTILE.encode()] * 3,
        "list": [[HOSTILE, HOSTILE]] * 3,
    }
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    served = client(tmp_path / "a.tfrecord")
    served.find_all(3)
    info = served.ask("info")
    answers = [served.ask("rows", first=0, count=3, columns="0,1,2,3"), served.ask("record", at="a:0")]
    answers += [{key: info[key] for key in ("headings", "forms")}]
    for column in range(4):
        answers.append(served.wait("summary", column=column, all=1)["html"])
    if info["sql"]:
        answers.append(served.ask("sql", query=f"SELECT '{HOSTILE.replace(chr(39), '')}' AS \"{'<b>'}\""))
    found = markup(answers)
    assert not found.tags & {"script", "iframe", "b" + "ase", "object", "form", "style", "link"}
    assert not {name for name in found.attributes if name.startswith("on")}
    assert "\u202e" not in json.dumps(answers, ensure_ascii=False)
    assert "&lt;script&gt;" in json.dumps(answers)


def test_only_the_page_itself_is_answered(client: Any, words: Path) -> None:
    served = client(words)
    assert served.get("info").status_code == 200
    for headers in (
        {"host": "example.com"},
        {"host": f"example.com:{served.server.port}"},
        {"host": "127.0.0.1:1"},
        {"origin": "http://example.com"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    ):
        assert served.get("info", headers).status_code == 403, headers
    assert served.get("info", {"host": f"localhost:{served.server.port}"}).status_code == 200
    for path in ("/", "/info", f"/{served.token[:-1]}/info", f"/{served.token}/../info", f"/{served.token}/etc/passwd"):
        assert served._client.get(path).status_code == 404, path
    assert served._client.post(f"/{served.token}/info").status_code == 405
    assert len(served.token) >= 32


def test_the_policy_lets_the_page_load_nothing_from_elsewhere(client: Any, words: Path) -> None:
    served = client(words)
    for name in ("", "page.js", "page.css", "info"):
        headers = served.get(name).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
    page = served.get("").text
    assert not re.search(r"https?://|<script>|\sstyle=|\son\w+=", page)


def test_whole_values_are_given_as_what_they_are(client: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"b": [b"<html>" * 100], "s": ["<html>"], "x": [1]}, tmp_path / "a.tfrecord")
    served = client(tmp_path / "a.tfrecord")
    answer = served.get("value", address=0, column="b")
    assert answer.content == b"<html>" * 100
    assert answer.headers["content-type"] == "application/octet-stream"
    part = served.get("value", {"range": "bytes=6-11"}, address=0, column="b")
    assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"<html>", "bytes 6-11/600")
    assert answer.headers["content-security-policy"] == "sandbox"
    assert served.get("value", address=0, column="s").headers["content-type"] == "text/plain; charset=utf-8"
    assert served.get("value", address=0, column="x").status_code == 400
    assert served.get("value", address=7, column="b").status_code == 400
    assert served.get("value", address=-1, column="b").status_code == 400
    assert served.get("value", address=1 << 50, column="b").status_code == 400


def test_large_values_are_shown_by_their_first_bytes(client: Any, tmp_path: Path) -> None:
    cells = [b"<b>first" * 2_000_000, b"small"]
    tfr.write_tfrecord({"n": [1, 2], "big": cells}, tmp_path / "a.tfrecord")
    served = client(tmp_path / "a.tfrecord")
    first, second = served.ask("rows", first=0, count=2, columns="0,1")["rows"]
    assert first["cells"][0] == '<span class="num">1</span>'
    assert "16 MB" in first["cells"][1]
    assert "&lt;b&gt;first" in first["cells"][1]
    assert "small" in second["cells"][1]
    page = served.ask("record", at="a:0")["html"]
    assert 'href="value?address=0&amp;column=big"' in page
    assert "good" in page
    part = served.get("value", {"range": "bytes=15999992-"}, address=0, column="big")
    assert (part.status_code, part.content, part.headers["content-range"]) == (
        206,
        b"<b>first",
        "bytes 15999992-15999999/16000000",
    )
    assert served.get("value", address=0, column="big").content == cells[0]
    assert "1 large value not looked at" in served.wait("summary", column=1, all=1)["html"]


def test_sql_reads_the_data_and_no_other_file(client: Any, words: Path, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    served = client(words)
    assert "<td>25</td>" in served.ask("sql", query="SELECT count(*) FROM data WHERE word = 'cat'")["html"]
    (tmp_path / "secret.csv").write_text("a\nsecret\n")
    for query in (
        f"SELECT * FROM '{tmp_path}/secret.csv'",
        f"SELECT * FROM read_text('{tmp_path}/secret.csv')",
        f"COPY data TO '{tmp_path}/out.csv'",
        "SET enable_external_access = true",
        "SELECT * FROM self",
    ):
        assert served.get("sql", query=query).status_code == 400, query
    assert not (tmp_path / "out.csv").exists()
    assert "the query is empty" in served.get("sql", query=" ; ").json()["error"]
    narrow = client(tfr.dataset(words, columns=["word"]))
    columns = narrow.ask("sql", query="SELECT column_name FROM (DESCRIBE data)")["html"]
    assert "<td>word</td>" in columns
    assert "<td>n</td>" not in columns


@pytest.mark.parametrize("key", [None, "id"])
def test_two_datasets_are_shown_where_they_differ(client: Any, tmp_path: Path, key: str | None) -> None:
    a = {"id": [1, 2, 3], "x": [10, 20, 30]}
    b = {"id": [1, 2, 3], "x": [10, 21, 30]} if key is None else {"id": [3, 2, 1], "x": [30, 21, 10]}
    tfr.write_tfrecord(a, tmp_path / "a.tfrecord")
    tfr.write_tfrecord(b, tmp_path / "b.tfrecord")
    served = client(tmp_path / "a.tfrecord", tmp_path / "b.tfrecord", key=key)
    assert served.ask("info")["files"].endswith(f"; + is b.tfrecord, by {key or 'row'}")
    cells = [row["cells"][1] for row in served.ask("rows", first=0, count=3, columns="0,1")["rows"]]
    assert ["<ins>" in cell for cell in cells] == [False, True, False]
    assert "<del>" in cells[1]
    assert "21" in cells[1]


def test_rows_wait_for_the_keys_of_the_other_dataset(client: Any, words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tfrecord_io.plugins.browse import browsed_dataset

    monkeypatch.setattr(browsed_dataset, "_KEY_BYTES", 1000)
    served = client(words, words, key="n")
    answer = served.get("rows", first=0, count=3, columns="0,1")
    assert (answer.status_code, "keys of more than 1.0 kB" in answer.json()["error"]) == (400, True)


def test_what_is_taken_away_reads_as_the_page_does(client: Any, tmp_path: Path) -> None:
    with tfr.RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"no message")
    lines = client(tmp_path / "a.tfrecord").ask("lines")
    assert lines["command"].endswith("--record-type bytes")
    assert eval(lines["python"], {"tfr": tfr}).to_pydict() == {"record": [b"no message"]}


def test_keys_are_found_by_value(client: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"k": ["a", None, "b", "c"], "v": [[1], [2], [3], [4]]}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"k": ["c", "a", None], "v": [[4], [9], [2]]}, tmp_path / "b.tfrecord")
    served = client(tmp_path / "a.tfrecord", tmp_path / "b.tfrecord", key="k")
    shown = [row["cells"] for row in served.ask("rows", first=0, count=4, columns="0,1")["rows"]]
    assert ["no such row" in cells[0] for cells in shown] == [False, True, True, False]
    assert ["<ins>" in cells[1] for cells in shown] == [True, False, False, False]
    by_lists = client(tmp_path / "a.tfrecord", tmp_path / "b.tfrecord", key="v")
    assert by_lists.get("rows", first=0, count=4).status_code == 400


def test_features_of_sequences_have_their_steps(client: Any, tmp_path: Path) -> None:
    schema = {"x": "int64", "frames": tfr.sequence("int64")}
    tfr.write_tfrecord(
        {"x": [1], "frames": [[1, 2, 3]]}, tmp_path / "a.tfrecord", schema=schema, record_type="sequence_example"
    )
    page = client(tmp_path / "a.tfrecord").ask("record", at="a:0")["html"]
    assert "3 steps" in page


def test_a_server_runs_until_it_is_closed(words: Path) -> None:
    import httpx

    with tfr.browse(words, open_page=False) as server:
        assert repr(server) == f"<BrowseServer at {server.url}>"
        assert f'<iframe src="{server.url}"' in server._repr_html_()
        assert httpx.get(server.url).status_code == 200
        with httpx.stream("GET", server.url + "events") as events:
            line = next(events.iter_lines())
        assert json.loads(line.removeprefix("data: "))["total"] >= 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.url)


def test_none_is_no_dataset() -> None:
    with pytest.raises(TypeError, match="not NoneType"):
        tfr.browse(None, open_page=False)  # type: ignore[arg-type]


def test_a_column_for_keys_has_to_exist(client: Any, words: Path) -> None:
    with pytest.raises(tfr.errors.FeatureNotFoundError):
        client(words, words, key="nothing")


def test_a_missing_library_is_named(words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingDependencyError, match="tfrecord_io\\[browse\\]"):
        tfr.browse(words, open_page=False)


def test_files_in_a_bucket_are_shown_before_all_are_opened(client: Any) -> None:
    for at in range(12):
        data = {"n": [at]} if at < 11 else {"n": [at], "late": ["x"]}
        tfr.write_tfrecord(data, f"memory://browse/part-{at:02}.tfrecord")
    served = client("memory://browse/part-*")
    assert not served.server._pages.opened.done()
    served.server._pages.open()
    assert served.ask("info")["plain"] == ["n"]
    assert [row["cells"] for row in served.ask("rows", first=2, count=1, columns="0")["rows"]] == [
        ['<span class="num">2</span>']
    ]
    wait_for(lambda: served.server._pages.status()["version"] != 1)
    assert served.ask("info")["plain"] == ["n", "late"]
    assert "x" in served.ask("rows", first=11, count=1, columns="0,1")["rows"][0]["cells"][1]


def test_a_server_of_files_that_are_not_there_says_so() -> None:
    from tfrecord_io.plugins.browse.browse_server import make_server

    server = make_server("memory://browse-nothing/a.tfrecord", {})
    with pytest.raises(FileNotFoundError, match="browse-nothing"):
        server.run()
    with pytest.raises(FileNotFoundError, match="browse-nothing"):
        tfr.browse("memory://browse-nothing/a.tfrecord", open_page=False)
