"""Public calls: errors for keywords that they do not have.

Tests: tests/test_mistakes.py and tests/test_likely_mistakes.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from tfrecord_io.base.display import secret_url
from tfrecord_io.base.options.did_you_mean import meant_keywords, too_many_arguments, unknown_keyword

F = TypeVar("F", bound=Callable[..., Any])
Moved = Callable[[], Mapping[str, str]]


def check_keywords(function: F, *, moved: Moved | None = None) -> F:
    """Make a public call raise a helpful TypeError for a keyword that it does not have.

    `moved` returns how keywords are written that are options of a format, by name.
    """
    parameters = inspect.signature(function).parameters
    by_position = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    max_args = len(parameters) if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()) else len(by_position)

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if len(args) > max_args:
            raise too_many_arguments(function, by_position, args)
        for name in keywords:
            if name not in parameters:
                meant = [] if any(keyword in parameters for keyword in meant_keywords(name)) else meant_keywords(name)
                options = {} if moved is None else moved()
                instead = next((options[keyword] for keyword in (name, *meant) if keyword in options), None)
                raise unknown_keyword(name, parameters, function, instead)
        try:
            return function(*args, **keywords)
        except Exception as error:
            if isinstance(error, OSError) and isinstance(error.filename, str):
                error.filename = secret_url(error.filename)
            raise

    return call  # type: ignore[return-value]
