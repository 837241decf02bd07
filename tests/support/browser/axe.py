"""The checks of axe-core: ``npm pack axe-core``, of which `AXE_CORE` is the path of ``axe.min.js``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(os.environ.get("AXE_CORE", Path(__file__).parents[3] / "build" / "axe" / "axe.min.js"))
_RUN = "axe.run().then(found => JSON.stringify(found.violations.map(each => [each.id, each.nodes.map(n => n.html)])))"


def findings(page: Any) -> list[Any]:
    """What axe-core finds wrong with a page; the test is skipped without it."""
    if not SCRIPT.is_file():
        pytest.skip("axe-core is not there: npm pack axe-core, and AXE_CORE=…/axe.min.js")
    page.evaluate(SCRIPT.read_text("utf-8") + ";0")
    found: list[Any] = json.loads(page.evaluate(_RUN))
    return found
