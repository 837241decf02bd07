"""Values, tables and reports as text and HTML."""

from __future__ import annotations

import copy
import logging
import pickle
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.base.messages.display import byte_size, short
from tfrecord_io.base.messages.log import logger
from tfrecord_io.base.messages.printed_results import REPR_ROWS, Report, Summary, html_table, plain_table
from tfrecord_io.base.messages.similar_names import did_you_mean

HOSTILE = "\x1b[31mred\x1b[0m\x07\u202e"


@pytest.mark.fault(58)
@pytest.mark.parametrize("value", [HOSTILE, HOSTILE.encode(), [HOSTILE], {HOSTILE: HOSTILE}, [[HOSTILE]]])
def test_terminal_escapes_are_escaped(value: object) -> None:
    assert short(value, 200).isprintable()


@pytest.mark.parametrize("value", ["x" * 10_000, b"\0" * 10_000, list(range(10_000)), ["x" * 1000] * 1000])
def test_long_values_are_shortened(value: object) -> None:
    assert len(short(value)) < 120


def test_values_as_text() -> None:
    assert short(None) == "null"
    assert short(True) == "True"
    assert short(1 / 3) == "0.333333"
    assert short(1.7e9 + 0.25) == "1700000000"  # a mean of times: 1.7e+09 would be rounded to two digits
    assert short(-1.7e18) == "-1700000000000000000"
    assert short(1e300) == "1e+300"
    assert short(1.25e-7) == "1.25e-07"
    assert short(b"cat") == "b'cat'"
    assert short(b"\xff\xd8") == "2 bytes ffd8"
    assert short(b"\xff") == "1 byte ff"
    assert short([1, None]) == "[1, null]"


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20).map(float))
def test_numbers_are_shown_with_six_digits(value: float) -> None:
    assert float(short(value)) == pytest.approx(value, rel=1e-5)


def test_columns_are_aligned_and_empty_ones_omitted() -> None:
    assert plain_table(["a", "empty", "bb"], [["1", "", "x"], ["200", "", "y"]]) == "a    bb\n1    x\n200  y"


def test_table_without_rows_has_headings() -> None:
    assert plain_table(["a", "b"], []) == "a  b"


@given(st.integers(0, 10**19))
def test_sizes_have_two_digits(size: int) -> None:
    number, unit = byte_size(size).replace(",", "").split()
    factor = {"bytes": 1, "byte": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}[unit]
    assert float(number) * factor == pytest.approx(size, rel=0.05)
    assert float(number) < 1000 or unit == "PB"


@pytest.mark.fault(59)
def test_html_is_escaped() -> None:
    assert html_table(["<b>"], [["<script>"]]).count("&lt;") == 2


class Tags(HTMLParser):
    """The tags and attributes of HTML, as a browser reads it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}


SCRIPTS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table><iframe srcdoc='<script>alert(1)</script>'>",
    '"><svg onload=alert(1)>',
    "&lt;b&gt;<!--",
    HOSTILE,
]


@pytest.mark.fault(59)
@pytest.mark.parametrize("text", SCRIPTS)
def test_names_and_values_of_a_file_run_no_script_in_a_notebook(engine: str, tmp_path: Path, text: str) -> None:
    """In names of files and columns, in texts, bytes and categories, and in the error of a damaged file."""
    folder = tmp_path / "".join(c for c in text if c.isprintable() and c != "/")
    folder.mkdir()
    path, damaged = folder / "a.tfrecord", folder / "b.tfrecord"
    data = {text: [text, text], "bytes": [text.encode(), b"\xff"], "kind": pd.Categorical([text, text])}
    data["s"] = [{text: 1}, {text: 2}]
    reports = [tfr.write_tfrecord(pd.DataFrame(data), path), tfr.verify(path), tfr.read_metadata(path)]
    described = tfr.describe(path)
    damaged.write_bytes(path.read_bytes()[:-1])
    with tfr.open_reader([path, damaged], on_error="skip") as reader, pytest.warns(tfr.errors.DamagedDataWarning):
        reader.read_all()
    schema = tfr.infer_schema(path)
    again = [tfr.diff(path, path), tfr.salvage(damaged, folder / "c.tfrecord")]
    declared = tfr.Schema({text: tfr.scalar("string", default=text), "s": pa.struct([(text, pa.int64())])})
    dataset = tfr.dataset(path, filters=[(text, "==", text)])
    shown_as_tables = [reader.report, schema, declared, dataset, dataset.pieces(1)[0], *again]
    for report in (*reports, described, *described.columns, tfr.verify(damaged), *shown_as_tables):
        shown = report._repr_html_()
        assert Tags(shown).found <= {"div", "table", "thead", "tbody", "tr", "th", "td"}
        assert shown.isprintable()


def test_schemas_and_what_was_read_are_tables_in_a_notebook(tmp_path: Path) -> None:
    schema = tfr.Schema({f"c{i}": "int64" for i in range(100)} | {"id": tfr.scalar("int32", required=True)})
    assert schema._repr_html_().count("<tr>") == 102  # all columns
    assert "<td>id</td><td>int32</td><td>required</td>" in schema._repr_html_()
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": range(10)}, path)
    assert tfr.infer_schema(path)._repr_html_().startswith("<div><div>Schema inferred from 10 records</div><table>")
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    with tfr.open_reader(path, on_error="skip") as reader, pytest.warns(tfr.errors.DamagedDataWarning):
        reader.read_all()
    assert repr(reader.report).startswith("Read 9 records of 1 file, ")
    assert reader.report._repr_html_().count("<tr>") == 2
    assert "payload CRC mismatch" in reader.report._repr_html_()


class Rows(Report):
    def __init__(self, count: int) -> None:
        self.count = count

    def _summary(self) -> Summary:
        rows = [(f"{i}<", "x" * 1000) for i in range(self.count)]
        return Summary("title <", ["a", "b"], rows, ["line <" + "y" * 10_000] * self.count)


def test_text_and_html_have_the_same_bounded_rows() -> None:
    text, shown = repr(Rows(1000)), Rows(1000)._repr_html_()
    assert f"\n{REPR_ROWS - 1}<" in text
    assert f"\n{REPR_ROWS}<" not in text
    assert f"… and {1000 - REPR_ROWS} more rows" in text
    assert f"… and {1000 - REPR_ROWS} more rows" in shown
    assert max(map(len, text.splitlines())) <= 1000
    assert shown.count("<tr>") == REPR_ROWS + 1
    assert "<" not in shown.replace("&lt;", "").replace("<t", "").replace("</t", "").replace("<d", "").replace(
        "</d", ""
    )
    assert "\n999<" in str(Rows(1000))
    assert repr(Rows(2)) == str(Rows(2))


@pytest.fixture
def reports(tmp_path: Path) -> dict[str, Report]:
    data = {f"{HOSTILE}<b>": [b"\xff\xd8" * 5000, b"<i>"], "y": [0.1, 0.5], "n": [1, None]}
    with pytest.warns(tfr.errors.PrecisionWarning):
        written = tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    path = tmp_path / "a.tfrecord"
    described = tfr.describe(path)
    read = {"describe": described, "column": described.columns[0], "metadata": tfr.read_metadata(path)}
    return {"write": written, "verify": tfr.verify(path), **read}


def test_paths_in_tables_are_whole(tmp_path: Path) -> None:
    """They can be pasted, also those of more than `CELL_WIDTH` characters."""
    folder = tmp_path / ("Größe mit Leerzeichen " * 8) / ("x" * 100)
    folder.mkdir(parents=True)
    good, damaged = (tfr.write_tfrecord({"b": [b"a", b"\xff"], "n": [1, 2]}, folder / name).path for name in "ab")
    with open(damaged, "ab") as file:
        file.write(b"\0" * 20)
    with tfr.open_reader([good, damaged], on_error="skip") as reader, pytest.warns(tfr.errors.DamagedDataWarning):
        reader.read_all()
    shown: dict[str, list[Any]] = {
        good: [
            tfr.infer_schema(good),
            tfr.dataset(good).explain(),
            tfr.delete(good, filters=[("n", "==", 1)], dry_run=True),
        ],
        damaged: [reader.report, tfr.verify([good, damaged]), tfr.salvage(damaged, tmp_path / "c", dry_run=True)],
    }
    for path, reports in shown.items():
        for report in reports:
            table = report._summary()
            assert any(path in line for line in plain_table(table.headings, table.rows, table.paths).splitlines())
            assert path in repr(report)
            assert path in report._repr_html_()


@pytest.mark.fault(58)
@pytest.mark.parametrize("name", ["write", "verify", "describe", "column", "metadata"])
def test_reports_show_neither_raw_bytes_nor_control_characters(reports: dict[str, Report], name: str) -> None:
    report = reports[name]
    for text in (repr(report), str(report), report._repr_html_()):
        assert text.replace("\n", "").isprintable()
        assert len(text) < 2000
        assert "\\xff" not in text
    assert "<b>" not in report._repr_html_()


def test_reports_print_as_tables(reports: dict[str, Report]) -> None:
    assert repr(reports["write"]).endswith(", y, n\ncolumn  rounded\ny       1")
    assert "a.tfrecord: 2 records, 10 kB, columns " in repr(reports["write"])
    assert "a.tfrecord: good, 2 intact records, 10 kB" in repr(reports["verify"])
    assert repr(reports["describe"]).startswith("2 records\ncolumn")
    assert repr(reports["metadata"]).startswith("Metadata of 1 file, 10 kB, schema embedded\ncolumn")
    assert reports["describe"]._repr_html_().startswith("<div><div>2 records</div><table><thead><tr><th>column</th>")


def test_a_written_file_is_a_line_with_its_columns(tmp_path: Path) -> None:
    written = tfr.write_tfrecord({"x": [1, 2], "": ["a", "b"]}, tmp_path / "a.tfrecord.gz")
    assert repr(written).endswith(f'a.tfrecord.gz: 2 records, {written.bytes} bytes, gzip, columns x, ""')
    wide = tfr.write_tfrecord({f"f{i}": [1] for i in range(30)}, tmp_path / "wide.tfrecord")
    assert repr(wide).endswith(", f18, f19 and 10 more")


def test_what_is_written_to_folders_names_one_and_counts_several(tmp_path: Path) -> None:
    days = {"day": ["05-01", "05-02"], "x": [1, 2]}
    assert repr(tfr.write_tfrecord(days, tmp_path, partition_by="day")).endswith(", columns x, in 2 folders")
    more = {"day": ["05-01"] * 2000, "x": range(2000)}
    late = tfr.write_tfrecord(more, tmp_path, partition_by="day", mode="append", max_shard_bytes=10_000)
    assert len(late.files) > 1
    assert repr(late).endswith(", columns x, in day=05-01")


def test_many_shards_are_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a@40"
    written = tfr.write_tfrecord({"x": range(80)}, path)
    assert "a@40: 40 files, 80 records, " in repr(written)
    assert repr(tfr.verify(path)).startswith("40 files: good, 80 intact records, ")
    assert repr(tfr.read_metadata(path)).startswith("Metadata of 40 files, ")
    assert all(len(repr(report).splitlines()) <= 3 for report in (written, tfr.verify(path), tfr.read_metadata(path)))


def test_bad_files_are_listed(tmp_path: Path) -> None:
    for i in range(40):
        (tmp_path / f"{i:02}.tfrecord").write_bytes(b"\0" * 20)
    report = tfr.verify(tmp_path)
    assert repr(report).startswith("40 files: 40 damaged; 0 intact records, 800 bytes\nfile ")
    assert repr(report).endswith(f"… and {40 - REPR_ROWS} more")
    lines = str(report).splitlines()
    assert len(lines) == 1 + 41 + 40  # the sums, the table, and a line for each problem
    assert lines[42].startswith("CorruptRecordError: ")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([], "uint8[0]"),
        ([[], []], "uint8[2, 0]"),
        (7, "uint8[] 7"),
        ([[[1], [2]], [[3], [4]]], "uint8[2, 2, 1] 1, 2, 3, 4"),
        ([list(range(28))] * 28, "uint8[28, 28] 0, 1, 2, 3, …"),
        (["\x1b[31m"], "uint8[1] \\x1b[31m"),
    ],
)
def test_tensors_show_their_shape(value: object, shown: str) -> None:
    assert short(value, dtype="uint8") == shown


@given(st.lists(st.text(max_size=20), max_size=30), st.text(max_size=20))
def test_a_question_names_one_known_name(names: list[str], name: str) -> None:
    asked: list[str] = []
    question = did_you_mean(name, names, lambda known: asked.append(known) or "<name>")
    assert set(asked) <= set(names)
    assert len(asked) <= 1
    assert question == ("did you mean '<name>'?" if asked else "")
    if name in names:
        assert asked[0].casefold() == name.casefold()


def test_a_slip_of_the_keyboard_is_recognized() -> None:
    names = ["image/encoded", "label", "Weight", "text/first", "text/second"]
    assert did_you_mean("lable", names) == "did you mean 'label'?"
    assert did_you_mean("labels", names) == "did you mean 'label'?"
    assert did_you_mean("weight", names) == "did you mean 'Weight'?"
    assert did_you_mean("image", names) == "did you mean 'image/encoded'?"  # the only name with this beginning
    assert did_you_mean("encoded", names) == "did you mean 'image/encoded'?"


@pytest.mark.parametrize("name", ["x", "la", "table", "text", "code", ""])
def test_nothing_far_fetched_is_suggested(name: str) -> None:
    assert did_you_mean(name, ["image/encoded", "label", "Weight", "text/first", "text/second"]) == ""
    assert did_you_mean(name, []) == ""


def test_what_a_result_is_not_has_an_error_with_what_it_has(tmp_path: Path) -> None:
    tfr.write_tfrecord({"label": [1, 2]}, tmp_path / "a.tfrecord")
    description: Any = tfr.describe(tmp_path / "a.tfrecord")
    has = "valid names: columns, files, headings, records, rows, suggestions, title, to_dict"
    with pytest.raises(AttributeError, match=f"^'Description' object has no attribute 'to_pandas'; {has}$"):
        description.to_pandas()
    with pytest.raises(TypeError, match=f"^'Description' object is not subscriptable; {has}$"):
        description["label"]
    metadata: Any = tfr.read_metadata(tmp_path / "a.tfrecord")
    with pytest.raises(AttributeError, match=r"did you mean 'schema_source'\?"):
        _ = metadata.schema_sources
    assert not hasattr(description, "_repr_png_")
    assert pickle.loads(pickle.dumps(description)) == copy.deepcopy(description) == description


def test_the_log_hides_secrets_and_escapes_what_is_not_a_number(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger.name):
        logger.debug("%s of %d: %s", "https://u:secret@host/a\x1b[1m", np.int64(3), OSError("http://u:secret@host/b"))
    assert "secret" not in caplog.text
    assert "\x1b" not in caplog.text
    assert " of 3: " in caplog.text
