"""The notebook runs, and shows what its cells give. ``python tests/test_notebook.py`` writes its outputs again."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebooks" / "first-steps.ipynb"


def _shown(value: Any) -> dict[str, Any] | None:
    """The output of a cell whose last line is `value`, as Jupyter stores it."""
    if value is None:
        return None
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if callable(as_png := getattr(value, "_repr_png_", None)):
        data = {"image/png": base64.b64encode(as_png()).decode(), "text/plain": ["a picture"]}
    return {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of the cells, which run one after the other in the current directory."""
    namespace: dict[str, Any] = {}
    found = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None  # type: ignore[attr-defined]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(tree, NOTEBOOK.name, "exec"), namespace)
            value = None if last is None else eval(compile(last, NOTEBOOK.name, "eval"), namespace)
        text = printed.getvalue().splitlines(keepends=True)
        stream = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
        found.append([*stream, *([] if (shown := _shown(value)) is None else [shown])])
    return found


def _texts(outputs: list[list[dict[str, Any]]]) -> list[list[Any]]:
    """Without pictures, which each version of Pillow compresses in its own way."""
    return [[output.get("text") or output["data"]["text/plain"] for output in cell] for cell in outputs]


@pytest.mark.skipif(not NOTEBOOK.exists(), reason="the documentation is not installed")
def test_the_notebook_shows_what_its_cells_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert _texts(run(notebook)) == _texts(stored), "run: python tests/test_notebook.py"
    assert any("image/png" in output.get("data", {}) for cell in stored for output in cell)


if __name__ == "__main__":
    content = json.loads(NOTEBOOK.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        made = iter(run(content))
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = next(made)
    NOTEBOOK.write_text(json.dumps(content, indent=1, ensure_ascii=False) + os.linesep, "utf-8")
