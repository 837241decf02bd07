"""What MkDocs shows besides docs/: the pages that `make reference` has written, and the releases of CHANGELOG.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "reference"
# What the search box ranks higher or lower: the reference has every word, so that the pages of tasks come before it.
BOOSTS = {
    "reference": 0.5,
    "cli.md": 0.3,
    "howto/browse.md": 2,
    "howto/damaged-files.md": 4,
    "howto/kaggle.md": 2,
    "howto/report.md": 2,
    "faq.md": 1.2,
    "installation.md": 2,
}


def on_files(files: Files, config: Any, **_: Any) -> Files:
    for path in sorted(SITE.glob("*.md")):
        if path.stem not in ("api", "commands"):
            files.append(File.generated(config, f"reference/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(text: str, page: Any, config: Any, **_: Any) -> str:
    page.meta["search"] = {"boost": BOOSTS.get(page.file.src_uri, BOOSTS.get(page.file.src_uri.partition("/")[0], 1))}
    if page.file.src_uri == "reference/api.md":
        return (SITE / "api.md").read_text(encoding="utf-8")
    if page.file.src_uri == "cli.md":
        return text.replace("<!-- commands -->", (SITE / "commands.md").read_text(encoding="utf-8"))
    if page.file.src_uri == "help.md":
        repository = f"[the repository]({config.repo_url})" if config.repo_url else "the repository"
        return text.replace("the repository", repository).replace("<!-- changelog -->", changelog())
    return text


def on_post_page(html: str, **_: Any) -> str:
    """A name for the search box, which screen readers say; and no elements for names and signs in code.

    Two of three elements of a page of the reference were such signs, whose colours hardly differ from that of text.
    """
    html = re.sub(r'<span class="(?:n|w|p|o)">([^<]*)</span>|<span></span>', r"\1", html)
    return html.replace('role="dialog">', 'role="dialog" aria-label="Search">')


def changelog() -> str:
    """The releases, with their headings below that of the page."""
    releases = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("<!-- towncrier -->")[2]
    releases = re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", releases)  # links into the repository
    return re.sub(r"^(#+) ", r"#\1 ", releases, flags=re.MULTILINE)
