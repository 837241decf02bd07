"""What MkDocs shows besides docs/: pages of `make reference`, the releases of CHANGELOG.md, the notebook."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "reference"
NOTEBOOK = "notebooks/first-steps.ipynb"
# What the search box ranks higher or lower: the reference has every word, so that the pages of tasks come before it.
BOOSTS = {
    "reference": 0.5,
    "changelog.md": 0.3,
    "cli.md": 0.3,
    "howto/browse.md": 2,
    "howto/damaged-files.md": 4,
    "howto/kaggle.md": 2,
    "howto/report.md": 2,
    "faq.md": 1.2,
    "installation.md": 2,
    "notebooks": 2,
}


def on_files(files: Files, config: Any, **_: Any) -> Files:
    for path in sorted(SITE.glob("*.md")):
        if path.stem not in ("api", "commands", "file-formats"):
            files.append(File.generated(config, f"reference/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, "changelog.md", content=f"# Changelog\n\n{changelog()}"))
    pictures: list[bytes] = []
    parts = [f"The [notebook]({Path(NOTEBOOK).name}) itself runs in Jupyter.", *notebook_parts(pictures)]
    title = parts.pop(1)
    files.append(File.generated(config, NOTEBOOK.replace(".ipynb", ".md"), content="\n\n".join([title, *parts])))
    for number, picture in enumerate(pictures):
        files.append(File.generated(config, NOTEBOOK.replace(".ipynb", f"-{number}.png"), content=picture))
    return files


def notebook_parts(pictures: list[bytes]) -> Iterator[str]:
    """The cells of the notebook as Markdown, with what they print; the pictures are appended."""
    for cell in json.loads((ROOT / "docs" / NOTEBOOK).read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                pictures.append(base64.b64decode(data["image/png"]))
                yield f"![what the cell shows]({Path(NOTEBOOK).stem}-{len(pictures) - 1}.png)"
            else:
                yield f"```text\n{''.join(output.get('text') or data['text/plain'])}\n```"


def on_page_markdown(text: str, page: Any, config: Any, **_: Any) -> str:
    text = text.replace(NOTEBOOK, NOTEBOOK.replace(".ipynb", ".md"))
    page.meta["search"] = {"boost": BOOSTS.get(page.file.src_uri, BOOSTS.get(page.file.src_uri.partition("/")[0], 1))}
    if page.file.src_uri == "reference/api.md":
        return (SITE / "api.md").read_text(encoding="utf-8")
    if page.file.src_uri == "cli.md":
        for place, made in (("commands", "commands.md"), ("formats", "file-formats.md")):
            text = text.replace(f"<!-- {place} -->", (SITE / made).read_text(encoding="utf-8"))
        return text
    if page.file.src_uri == "faq.md" and config.repo_url:
        return text.replace("in the repository", f"in [the repository]({config.repo_url})")
    return text


def on_post_page(html: str, **_: Any) -> str:
    """A name for the search box, which screen readers say; and no elements for names and signs in code.

    Two of three elements of a page of the reference were such signs, whose colours hardly differ from that of text.
    """
    html = re.sub(r'<span class="(?:n|w|p|o)">([^<]*)</span>|<span></span>', r"\1", html)
    return html.replace('role="dialog">', 'role="dialog" aria-label="Search">')


def changelog() -> str:
    """The releases, without links into the repository."""
    releases = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("<!-- towncrier -->")[2]
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", releases)
