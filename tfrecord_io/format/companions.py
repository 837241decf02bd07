"""The names of companion features: ``x/shape`` and ``x/dtype`` state the shape and dtype of the bytes in ``x``."""

from __future__ import annotations


def companions(feature: str) -> tuple[str, str]:
    """Names of the shape and the dtype companion of a raw feature."""
    return f"{feature}/shape", f"{feature}/dtype"


def feature_of_companion(name: str) -> str | None:
    """The feature with the companion `name`, None if that has not the form of a companion.

    >>> feature_of_companion("x/shape")
    'x'
    """
    feature, slash, last = name.rpartition("/")
    return feature if slash and last in ("shape", "dtype") else None
