"""Google Cloud Storage where gcsfs makes more requests than needed, waits for no answer, or ignores a generation."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from tfrecord_io.store.filesystem.retries import http_status

_OURS = "_get_bucket_type"  # of gcsfs: the kind of a bucket


def ask_over_https(fs: Any) -> None:
    """Let gcsfs find out the kind of a bucket over HTTPS: its own call over gRPC waits for minutes if that is blocked.

    Parameters
    ----------
    fs : gcsfs.GCSFileSystem
    """
    if hasattr(fs, _OURS) and _OURS not in vars(fs):
        setattr(fs, _OURS, partial(_bucket_type, fs))


async def _bucket_type(fs: Any, bucket: str) -> Any:
    kinds = sys.modules[getattr(type(fs), _OURS).__module__].BucketType
    try:
        layout = await fs._call("GET", "b/{}/storageLayout", bucket, json_out=True)
    except Exception as error:  # of any library
        is_refused = isinstance(error, FileNotFoundError) or http_status(error) in (400, 401, 403)
        return kinds.NON_HIERARCHICAL if is_refused else kinds.UNKNOWN  # which is asked again
    if layout.get("locationType") == "zone":
        return kinds.ZONAL_HIERARCHICAL
    has_folders = layout.get("hierarchicalNamespace", {}).get("enabled")
    return kinds.HIERARCHICAL if has_folders else kinds.NON_HIERARCHICAL


async def google_info(fs: Any, name: str, *, is_file: bool = False) -> dict[str, Any]:
    """The description of an object or a folder, as the ``info`` of gcsfs gives it, by one request for an object.

    gcsfs also asks for a folder of that name, and again for the object if there is none. A name that can only be a file
    is not looked for as a folder.

    Raises
    ------
    FileNotFoundError
        There is no such object or folder.
    """
    name = name.rstrip("/")
    bucket, key, generation = fs.split_path(name)
    if not key:
        return dict(await fs._info(name))
    try:
        return dict(await fs._get_object(name))
    except FileNotFoundError:
        if is_file:
            raise
    if await _has_folders(fs, bucket):
        return dict(await fs._get_directory_info(name, bucket, key, generation))
    if not any(await fs._do_list_objects(name, max_results=1)):
        raise FileNotFoundError(name)
    return {"name": f"{bucket}/{key}", "size": 0, "type": "directory"}


async def read_range(fs: Any, name: str, begin: int, end: int, generation: str | None) -> bytes:
    """The bytes [begin, end) of a generation of an object: gcsfs before 2026.9 reads those of the newest one.

    Raises
    ------
    FileNotFoundError
        There is no such object, or another one has its name.
    """
    url = fs.url(name)
    if generation and "&generation=" not in url:
        url += f"&generation={generation}"
    _, content = await fs._call("GET", url, headers={"Range": f"bytes={begin}-{end - 1}"})
    return bytes(content)


async def rewrite(fs: Any, source: str, target: str, generation: str | None) -> dict[str, Any]:
    """Let the store copy an object, replacing this generation ("0": of none) or, with None, of any.

    Returns what the store states of the copy.
    """
    path, keys = "b/{}/o/{}/rewriteTo/b/{}/o/{}", (*fs.split_path(source)[:2], *fs.split_path(target)[:2])
    more: dict[str, Any] = {"headers": {"Content-Type": "application/json"}, "json_out": True}
    more["sourceGeneration"] = fs.split_path(source)[2]
    if generation is not None:
        more["ifGenerationMatch"] = generation
    answer = await fs._call("POST", path, *keys, **more)
    while not answer["done"]:  # of a large object
        answer = await fs._call("POST", path, *keys, rewriteToken=answer["rewriteToken"], **more)
    return dict(answer["resource"])


async def google_listing(fs: Any, folder: str) -> list[dict[str, Any]]:
    """The objects and folders in a folder, as the ``ls`` of gcsfs gives them, without a look at an empty one.

    Raises
    ------
    FileNotFoundError
        There is nothing.
    """
    bucket, key, _ = fs.split_path(folder.rstrip("/"))
    if not key or await _has_folders(fs, bucket):
        return list(await fs._ls(folder, detail=True))
    objects, prefixes = await fs._do_list_objects(folder)
    if not objects and not prefixes:
        raise FileNotFoundError(folder)
    folders = ({"name": f"{bucket}/{prefix.rstrip('/')}", "size": 0, "type": "directory"} for prefix in prefixes)
    return [*folders, *objects]


async def google_page(fs: Any, folder: str, token: str, most: int) -> tuple[list[dict[str, Any]], str | None] | None:
    """The next page of objects below a folder, in the form of gcsfs' ``find``, and the token of the page after.

    None where folders exist of their own.
    """
    bucket, key, _ = fs.split_path(folder)
    if await _has_folders(fs, bucket):
        return None
    prefix = f"{key.rstrip('/')}/"
    page = await fs._call(
        "GET", "b/{}/o", bucket, prefix=prefix, maxResults=most, pageToken=token or None, json_out=True
    )
    return [fs._process_object(bucket, item) for item in page.get("items", ())], page.get("nextPageToken")


async def _has_folders(fs: Any, bucket: str) -> bool:
    """True if the bucket has folders without objects in them."""
    asks = getattr(fs, "_is_bucket_hns_enabled", None)
    return asks is not None and bool(await asks(bucket))


def decoded_address(fs: Any, name: str) -> tuple[Any, str, dict[str, str]]:
    """The web server, address and headers of an object with a ``Content-Encoding``, such as gzip, to read it decoded.

    Ranges are those of the stored bytes, and the size is theirs.
    """
    from fsspec.implementations.http import HTTPFileSystem

    url, parameters = fs.url(name), fs._get_params({})
    project = "".join(f"&{key}={value}" for key, value in parameters.items())
    http = HTTPFileSystem(encoded=True, **({} if fs.session_kwargs is None else {"client_kwargs": fs.session_kwargs}))
    return http, url + project, fs._get_headers({})


def is_encoded(info: Mapping[str, Any] | None) -> bool:
    """True if Google Cloud Storage stores an object encoded, and the client decodes the response."""
    return bool(info) and (info or {}).get("contentEncoding", "identity") != "identity"
