"""Public calls: errors for keywords that they do not have.

Tests: tests/test_mistakes.py and tests/test_likely_mistakes.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import CO_VARARGS
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
Moved = Callable[[], Mapping[str, str]]


def check_keywords(function: F, *, moved: Moved | None = None) -> F:
    """Make a public call raise a helpful TypeError for a keyword that it does not have.

    `moved` returns how keywords are written that are options of a format, by name.
    """
    code = function.__code__  # `inspect.signature` of all public calls would take milliseconds of each import
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    by_position = list(parameters[: code.co_argcount])
    max_args = sys.maxsize if code.co_flags & CO_VARARGS else code.co_argcount

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if len(args) > max_args:
            from tfrecord_io.base.options.other_names import too_many_arguments  # for mistakes only

            raise too_many_arguments(function, by_position, args)
        for name in keywords:
            if name not in parameters:
                raise _unknown_keyword(function, name, parameters, {} if moved is None else moved())
        try:
            return function(*args, **keywords)
        except OSError as error:
            if isinstance(error.filename, str):
                from tfrecord_io.base.messages.url_secrets import secret_url

                error.filename = secret_url(error.filename)
            raise

    return call  # type: ignore[return-value]


def _unknown_keyword(
    function: Callable[..., Any], name: str, parameters: Collection[str], options: Mapping[str, str]
) -> TypeError:
    # For mistakes only. The options of reading name the keywords of datasets, for calls that write, too.
    import tfrecord_io.base.options.read  # noqa: F401
    from tfrecord_io.base.options.other_names import OTHER_NAMES, unknown_keyword

    meant = OTHER_NAMES.meant_keywords(name)
    meant = [] if any(keyword in parameters for keyword in meant) else meant
    instead = next((options[keyword] for keyword in (name, *meant) if keyword in options), None)
    return unknown_keyword(name, parameters, function, instead)
