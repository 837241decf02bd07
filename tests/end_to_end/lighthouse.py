"""Lighthouse's scores of the pages of the site: at least 95 of 100 in each category.

``dev/lighthouse`` builds the site and runs this; ``dev/lighthouse index.html howto/shards/index.html`` scores
these. The site is served compressed, as hosts of static pages do. Needs npx, and Chromium in `CHROME_PATH`.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LEAST = 0.95
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
COMPRESSED = (".html", ".css", ".js", ".json", ".svg")


class Compressed(SimpleHTTPRequestHandler):
    """Files of a folder, text compressed by gzip."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            return self.send_error(404)
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        if path.suffix in COMPRESSED:
            data = gzip.compress(data)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the report is the output."""


def scores(url: str) -> dict[str, float]:
    """The score of each category for one page, between 0 and 1."""
    options = ["--quiet", "--output=json", f"--only-categories={','.join(CATEGORIES)}"]
    command = ["npx", "--yes", "lighthouse", url, *options, "--chrome-flags=--headless=new --no-sandbox"]
    done = subprocess.run(command, check=True, capture_output=True, timeout=300)
    found = json.loads(done.stdout)["categories"]
    return {category: found[category]["score"] or 0.0 for category in CATEGORIES}


def main(site: str, *pages: str) -> int:
    """Print the scores of the pages, by default all; return the number of those below `LEAST`."""
    found = pages or sorted(str(path.relative_to(site)) for path in Path(site).rglob("index.html"))
    low = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Compressed, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for page in found:
            values = scores(f"http://127.0.0.1:{server.server_port}/{page.removesuffix('index.html')}")
            low += min(values.values()) < LEAST
            print(page, *(f"{name} {value:.2f}" for name, value in values.items()), flush=True)
        server.shutdown()
    return low


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 1))
