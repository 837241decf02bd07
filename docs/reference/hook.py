"""What MkDocs shows in place of docs/reference/api.md: the page that `make reference` has written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "build" / "reference" / "api.md"


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    return PAGE.read_text(encoding="utf-8") if page.file.src_uri == "reference/api.md" else text
