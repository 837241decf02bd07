"""Parse small XML files of unknown origin with expat: a DOCTYPE is refused, so there are no entities to expand."""

from __future__ import annotations

from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from tfrecord_io.errors import DecodeError, printable

MAX_BYTES = 16 << 20
_MOST_LEVELS = 64


def parse_xml(content: bytes, path: str) -> Element:
    """The root element of an XML document.

    Raises
    ------
    DecodeError
        It is not well-formed, has a DOCTYPE or is too deep.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MOST_LEVELS:
            raise _error(f"elements are nested more than {_MOST_LEVELS} levels deep", parser, path)
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*_: object) -> NoReturn:
        reason = "it has a DOCTYPE, which may define entities that expand without limit"
        raise _error(reason, parser, path, advice="remove the DOCTYPE: annotations need none")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise _error(f"not well-formed XML: {expat.ErrorString(error.code)}", parser, path) from None
    except (LookupError, ValueError) as error:  # of a declared encoding that does not exist
        if isinstance(error, DecodeError):
            raise
        raise _error(f"not readable as XML: {printable(error, 100)}", parser, path) from None
    return builder.close()


def _error(reason: str, parser: expat.XMLParserType, path: str, advice: str | None = None) -> DecodeError:
    where = f"line {parser.ErrorLineNumber}, column {parser.ErrorColumnNumber + 1}"
    return DecodeError(f"{reason} ({where})", path=path, expected="XML", advice=advice)
