"""The optional libraries of the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

# The requirements of each optional library, by extra; an adapter has the name of its extra, with "_" for "-".
_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {
    name.replace("-", "_"): needs
    for name, needs in _PROJECT["optional-dependencies"].items()
    if name not in ("all", "test", "dev")
}


def library(extra: str) -> str:
    """The module that an extra installs.

    >>> library("spark")
    'pyspark'
    """
    name = re.split(r"[^\w.]", EXTRAS[extra][0])[0].partition(".")[0]
    return {"pillow": "PIL"}.get(name, name)
