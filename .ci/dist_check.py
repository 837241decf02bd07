"""dev/dist check FOLDER: whether a folder has what may be published, and nothing else.

One sdist and at least one wheel of the version, which is also that of the tag in TAG, if it is set. Each wheel is for
one platform and has its kernel and the licences of what is linked in: `none-any` would be installed wherever there is
no other wheel, in place of the sdist, and has no kernel. The description has no link that only the repository has,
and is one that the package index can show (``twine check --strict``).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "reference"))
from readme import RELEASE, relative_links  # noqa: E402

LICENCES = ("LICENSE", *(f"licenses/{path.name}" for path in (ROOT / "licenses").glob("*.txt")))


def faults_of_wheel(name: str, files: list[str]) -> list[str]:
    """What is wrong with a wheel of this name with these files."""
    found = []
    if name.endswith("-none-any.whl"):
        found.append("is for all platforms, and would be installed in place of the sdist")
    if not any(re.fullmatch(r"tfrecord_io/bytes/_native/_kernel\..*(so|pyd)", file) for file in files):
        found.append("has no kernel")
    found += [f"lacks {each}" for each in LICENCES if not any(f.endswith(f".dist-info/licenses/{each}") for f in files)]
    return found


def faults_of_metadata(metadata: Message, version: str) -> list[str]:
    text = str(metadata.get_payload())
    found = [f"links to {each}, which only the repository has" for each in relative_links(text)[:3]]
    if metadata["Version"] != version:
        found.append(f"has version {metadata['Version']}, not {version}")
    if RELEASE not in text:
        found.append(f"does not say '{RELEASE}'")
    return found


def contents(path: Path) -> tuple[list[str], Message]:
    """The files of a wheel or an sdist, and its metadata."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            metadata = archive.read(next(name for name in names if name.endswith(".dist-info/METADATA")))
    else:
        with tarfile.open(path) as archive:
            names = archive.getnames()
            file = archive.extractfile(next(name for name in names if re.fullmatch(r"[^/]+/PKG-INFO", name)))
            assert file is not None
            metadata = file.read()
    return names, message_from_string(metadata.decode())


def main(folder: Path) -> int:
    source = (ROOT / "tfrecord_io" / "__init__.py").read_text(encoding="utf-8")
    version = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)[0]
    paths = sorted(folder.iterdir())
    kinds = [path.name.rpartition(".")[2] for path in paths]
    found = [] if kinds.count("gz") == 1 else [f"{folder} has {kinds.count('gz')} sdists, not one"]
    if "whl" not in kinds:
        found.append(f"{folder} has no wheel")
    if (tag := os.environ.get("TAG")) and tag != f"v{version}":
        found.append(f"the tag {tag} is not that of version {version}")
    for path in paths:
        files, metadata = contents(path)
        faults = faults_of_wheel(path.name, files) if path.suffix == ".whl" else []
        found += [f"{path.name} {fault}" for fault in faults + faults_of_metadata(metadata, version)]
    for fault in found:
        print(fault, file=sys.stderr)
    shown = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, paths)], check=False)
    return int(bool(found) or shown.returncode != 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
