"""No message shows the password of a URL, or a signature in its query; programs have the URL as it is."""

from __future__ import annotations

import logging
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from limited import limited
from servers import Web
from tfrecord_io.apps.cli.command_group import all_commands
from tfrecord_io.base.messages.display import printable
from tfrecord_io.base.messages.url_secrets import hide_secrets, secret_url
from tfrecord_io.errors import DecodeError

SECRET = "qzSecret"
QUERIES = (
    f"sig={SECRET}",
    f"v=1&X-Amz-Signature={SECRET}&X-Amz-Security-Token={SECRET}%2F&X-Amz-Date=2",
    f"token={SECRET}.a.{SECRET}",
    f"sv=2024&se=2026&sig={SECRET}%3D&spr=https",
    f"AWSAccessKeyId={SECRET}&Signature={SECRET}&Expires=1",
)


S3_OPTIONS = {"key": "k", "endpoint_url": "http://127.0.0.1:9", "config_kwargs": {"odd": SECRET}}


def secret(url: str, query: str = QUERIES[0]) -> str:
    return f"{url.replace('://', f'://user:{SECRET}@')}?{query}"


@pytest.fixture
def address(web: Web, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """The URL of a file with secrets; of some files there are contents."""
    tfr.write_tfrecord({"x": [1, 2, 3]}, tmp_path / "good.tfrecord")
    content = (tmp_path / "good.tfrecord").read_bytes()
    web.files.update({"good.tfrecord": content, "cut.tfrecord": content[:-3], "bad.tfrecord": b"?" * 100})
    with limited(backoff_seconds=0.001):
        yield lambda name: secret(web.url(name))


def holders(folder: Path) -> list[Path]:
    """The files in a folder that hold a secret."""
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


COMMANDS: list[list[str]] = [
    *(["cat"], ["count"], ["describe"], ["get", "1"], ["head"], ["schema"], ["tail"], ["verify"], ["report", "OUT"]),
    *(["clean"], ["adopt"], ["compact"], ["index"], ["delete", "--where", "x = 1"]),
    *(
        ["count", "OTHER"],
        ["verify", "OTHER"],
        ["diff", "OTHER"],
        ["salvage", "OUT"],
        ["convert", "OUT.parquet"],
        ["copy", "OUT"],
        ["dedupe", "OUT"],
    ),
    *(["explode", "OUT"], ["implode", "OUT"], ["merge", "OUT"], ["shuffle", "OUT"], ["sample", "OUT", "-n", "1"]),
    ["split", "OUT", "--shards", "2"],
]


@pytest.mark.plugins("browse", "report")
def test_each_command_is_tried() -> None:
    elsewhere = {"browse": "it serves until it is stopped", "sql": "its argument is a query"}
    lacking = sorted(all_commands().commands.keys() - {command[0] for command in COMMANDS} - elsewhere.keys())
    assert not lacking, f"add {', '.join(lacking)} to COMMANDS, with the arguments behind the path"


@pytest.mark.matrix
@pytest.mark.usefixtures("own_log")
@pytest.mark.parametrize(
    "name", ["none.tfrecord", "cut.tfrecord", "bad.tfrecord", "*.tfrecord", "x@3", "good.tfrecord"]
)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_show_no_secrets(address: Callable[[str], str], tmp_path: Path, command: list[str], name: str) -> None:
    words = [command[0], address(name), *(word.replace("OUT", str(tmp_path / "out")) for word in command[1:])]
    words = [address("good.tfrecord") if word == "OTHER" else word for word in words]
    result = CliRunner().invoke(all_commands(), ["-vv", "--debug", *words])
    assert SECRET not in result.output
    assert not holders(tmp_path)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output


def no_secrets(call: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> BaseException | None:
    """Make a call; its error. No text about it has a secret."""
    error = None
    caplog.set_level(logging.DEBUG, "tfrecord_io")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as caught:  # of any kind
            error = caught
    shown = [*(str(each.message) for each in warned), *(record.getMessage() for record in caplog.records)]
    if error is not None:
        shown += [*traceback.format_exception(error), repr(error)]
        error.__cause__ = error.__context__ = None  # which tblib, that Dask may have loaded, would pickle, too
        copied = pickle.loads(pickle.dumps(error))
        shown += [str(copied), repr(copied)]
    assert not [text for text in shown if SECRET in text]
    return error


def shown(data: tfr.Dataset) -> Iterator[Any]:
    """What a dataset hands out."""
    yield from (data, data.filter("x > 1"), data.take(1))
    yield from (data.reader(), tfr.RandomAccess(data), tfr.iter_arrays(data, batch_size=1))


CALLS: dict[str, Callable[[str, str], Any]] = {
    "read_table": lambda url, out: tfr.read_table(url),
    "dataset": lambda url, out: tfr.dataset(url),
    "schema": lambda url, out: tfr.dataset(url, schema={"x": "int64"}).to_table(),
    "skip": lambda url, out: tfr.read_table(url, on_error="skip"),
    "stop": lambda url, out: tfr.read_table(url, on_error="stop"),
    "iter_arrays": lambda url, out: list(tfr.iter_arrays(url, batch_size=2)),
    "random_access": lambda url, out: tfr.RandomAccess(url)[0],
    "write": lambda url, out: tfr.write_tfrecord({"x": [1]}, url),
    "verify": lambda url, out: print(repr(tfr.verify(url))),
    "shown": lambda url, out: [print(repr(each), each) for each in shown(tfr.dataset(url))],
    "summary": lambda url, out: print(tfr.verify(url), tfr.salvage(url, f"{out}.tfrecord")),
    "explain": lambda url, out: print(tfr.dataset(url).filter("x > 1").explain(), tfr.dataset(url).describe()),
    "kwargs": lambda url, out: tfr.read_table(url, storage_options={"client_kwargs": {"no_such": SECRET}}),
    "size": lambda url, out: tfr.read_table(url, storage_options={"block_size": SECRET}),
    "s3": lambda url, out: tfr.read_table("s3://b/a", storage_options=S3_OPTIONS),
    "ftp": lambda url, out: tfr.write_tfrecord({"x": [1]}, f"ftp://user:{SECRET}@127.0.0.1:9/a"),
    "options": lambda url, out: tfr.read_table(url, storage_options={"no_such": SECRET}),
    "wrong": lambda url, out: tfr.read_table(url, storage_options={"client_kwargs": SECRET}),
    "chained": lambda url, out: tfr.read_table(f"simplecache::{url}"),
    "zip": lambda url, out: tfr.read_table(f"zip://a.tfrecord::{url}"),
    "parquet": lambda url, out: tfr.convert(url.replace(".tfrecord", ".parquet"), out),
    "array": lambda url, out: tfr.convert(url.replace(".tfrecord", ".npy"), out),
    "folder": lambda url, out: tfr.convert(url.replace(".tfrecord", ".zarr"), out),
    "images": lambda url, out: tfr.formats.open_image_folder(url),
    "coco": lambda url, out: tfr.formats.open_coco(url, "."),
    "voc": lambda url, out: tfr.formats.open_voc(url),
    "yolo": lambda url, out: tfr.formats.open_yolo(url),
    "resume": lambda url, out: tfr.convert(url, f"{out}/", resume=True),
    "bucket": lambda url, out: tfr.read_table(url.replace("http:", "none:")),
    "host": lambda url, out: tfr.read_table(f"http://user:{SECRET}@/a?sig={SECRET}"),
    "port": lambda url, out: tfr.read_table(f"http://user:{SECRET}@host:port/a?sig={SECRET}"),
}


@pytest.mark.matrix
@pytest.mark.parametrize(
    "name", ["none.tfrecord", "cut.tfrecord", "bad.tfrecord", "*.tfrecord", "x@3", "good.tfrecord"]
)
@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_calls_show_no_secrets(
    address: Callable[[str], str],
    tmp_path: Path,
    call: Callable[[str, str], Any],
    name: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    no_secrets(lambda: call(address(name), str(tmp_path / "out")), caplog)
    assert SECRET not in capsys.readouterr().out
    assert not holders(tmp_path)


def test_servers_that_refuse_show_no_secrets(
    address: Callable[[str], str], web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    for status in (403, 500, 418):
        web.refused = status
        assert isinstance(no_secrets(lambda: tfr.read_table(address("none.tfrecord")), caplog), OSError)
    web.failures = 1000
    assert isinstance(no_secrets(lambda: tfr.read_table(address("good.tfrecord")), caplog), OSError)


def test_programs_have_the_url_as_it_is(address: Callable[[str], str]) -> None:
    with pytest.raises(FileNotFoundError) as absent:
        tfr.read_table(address("none.tfrecord"))
    assert absent.value.filename == address("none.tfrecord")
    with pytest.raises(tfr.TFRecordError) as damaged:
        tfr.read_table(address("cut.tfrecord"))
    assert damaged.value.path == address("cut.tfrecord")
    (file,) = tfr.verify(address("good.tfrecord")).files
    assert (file.path, file.status) == (address("good.tfrecord"), "good")


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_no_secret_is_kept(query: str) -> None:
    url = secret("https://host/a.tfrecord", query)
    for shown in (hide_secrets(url), printable(url), str(DecodeError("odd", path=url)), repr(secret_url(url))):
        assert SECRET not in shown
        assert "https://user:…@host/a.tfrecord?" in shown
        for kept in ("v=1", "X-Amz-Date=2", "sv=2024", "se=2026", "spr=https", "Expires=1"):
            assert (kept in shown) == (kept in url)


@pytest.mark.parametrize(
    "path",
    [
        *("a?sig=b", "/d/a?sig=b&token=c", "user:word@host/a?sig=b", "d/x://a:b@c", "file:///d/a?sig=b"),
        *("s3://bucket/a?.tfrecord", "s3://bucket/a:b@8", "abfs://box@account.dfs/a", "https://host:80/a@8?design=1"),
    ],
)
def test_other_paths_are_shown_as_they_are(path: str) -> None:
    assert hide_secrets(path) == printable(path) == path
    assert str(FileNotFoundError(2, "no such file", secret_url(path))) == str(
        FileNotFoundError(2, "no such file", path)
    )


def test_a_local_file_of_such_a_name_is_named_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        tfr.read_table(tmp_path / "a?sig=b")
    assert f"{tmp_path}/a?sig=b" in str(caught.value)
