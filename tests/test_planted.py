"""The faults that ``python tests/mutation/planted.py`` plants are of the code as it is."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PLANTED = runpy.run_path(str(ROOT / "tests" / "mutation" / "planted.py"))
FAULTS = [fault for name in ("FAULTS", "SECOND_FAULTS", "THIRD_FAULTS") for fault in PLANTED[name]]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_the_text_of_a_fault_is_in_its_file(fault: Any) -> None:
    path = ROOT / "tfrecord_io" / fault.file
    assert path.read_text("utf-8").count(fault.old) == 1, "tests/mutation/planted.py: follow the change of the code"
