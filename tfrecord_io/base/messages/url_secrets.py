"""Hide the secrets of URLs in messages: passwords, signatures, tokens and keys.

Tests: tests/laws/test_secrets_of_urls.py.
"""

from __future__ import annotations

import re

_MESSAGE_BYTES = 1024

# URLs in a text, or urllib3's part of a URL; not paths of the local disk, where names may have all these signs.
# The patterns are compiled when needed.
_URL = r"(?:(?<![\w./+-])(?!file:|local:)[A-Za-z][A-Za-z0-9+.-]*://|(?<=exceeded with url: )/)[^\s\"<>]+"
_PASSWORD = r"(?<=://)([^/?#:]*:)[^/?#]+(?=@)"
_SECRET = (
    r"(?i)([?&;#](?:[\w.-]*(?:signature|token|secret|passw|credential|access_?key|api_?key)[\w.-]*"
    r"|(?:[\w.-]*[._-])?(?:sig|key|pwd|pass|auth|authorization|code|jwt))=)[^\s&;#'\"]*[^\s&;#'\".:,)\]}]"
)


def hide_secrets(text: str, *, shorten: bool = False) -> str:
    """Hide passwords in URLs, and signatures and tokens in their queries; paths stay as they are.

    If asked, shorten the text to what a message has at most, 1,024 bytes of UTF-8.

    >>> hide_secrets("https://user:x@host/a.tfrecord?v=1&sig=x: not found"), hide_secrets("a?sig=b")
    ('https://user:…@host/a.tfrecord?v=1&sig=…: not found', 'a?sig=b')
    """
    if "@" in text or "?" in text or "#" in text:
        text = re.sub(_URL, lambda url: re.sub(_SECRET, r"\1…", re.sub(_PASSWORD, r"\1…", url[0])), text)
    if not shorten or len(encoded := text.encode("utf-8", "backslashreplace")) <= _MESSAGE_BYTES:
        return text
    return encoded[: _MESSAGE_BYTES - len("…".encode())].decode("utf-8", "ignore") + "…"


class SecretURL(str):
    """A URL with secrets: programs have it as it is, and no message of an OSError, and no ``repr``, shows these."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(hide_secrets(self))


def secret_url(path: str) -> str:
    """The ``filename`` for an OSError: the path, as a `SecretURL` if it is a URL with secrets."""
    return path if hide_secrets(path) == path else SecretURL(path)
