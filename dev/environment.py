"""Make a virtual environment that runs this tree: python dev/environment.py NAME

An environment is the folder `.venv-NAME`; ``build``, ``test`` and ``dev`` share `.venv`. The package is installed as
editable: an edit of Python needs nothing, an edit of C++ a `make`, which compiles the changed files into
`tfrecord_io/bytes/_native/`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# setuptools builds packages that the index has as sources only (pyftpdlib): nothing is built in isolation.
BUILD = ["scikit-build-core>=1.1", "nanobind>=2.9", "cmake>=3.25", "ninja", "setuptools>=70.1"]
TESTS = ["pytest", "pytest-timeout", "hypothesis"]
BUCKET = ["moto[server]", "s3fs"]
TENSORFLOW = ["tensorflow-cpu", "tensorflow-metadata", "protobuf<7"]


@dataclass(frozen=True)
class Environment:
    """The contents of a virtual environment."""

    extras: str = ""  # of this package
    packages: tuple[str, ...] = ()
    first: tuple[str, ...] = ()  # small builds of large libraries, where the index has them; a failure is passed
    bare: tuple[str, ...] = ()  # installed without their own requirements
    folder: str = ""
    has_package: bool = True
    tests: str = ""  # of an adapter: which examples of the documentation it runs, as an expression of pytest's -k


# tfx-bsl is installed bare: it wants Apache Beam and much of Google Cloud, 1 GB that its coders never import.
# The training benchmark has mosaicml-streaming, which wants another version of transformers than datasets does.
TORCH = ("torch==2.13.0+cpu",)
ENVIRONMENTS = {
    "build": Environment(packages=tuple(BUILD), folder=".venv", has_package=False),
    "docs": Environment(packages=("mkdocs-material>=9.8", "mkdocs-llmstxt>=0.5"), has_package=False),
    "test": Environment("test", folder=".venv"),
    "dev": Environment("test,dev", folder=".venv"),
    "conformance": Environment("test", (*TENSORFLOW, "tensorflow-datasets"), bare=("tfx-bsl", "tfrecord")),
    "bench": Environment(
        "s3,polars,duckdb,ray,jpeg",
        (*TENSORFLOW, "crc32c", "tfrecord", "dask[dataframe,distributed]"),
        bare=("tfx-bsl",),
    ),
    "training": Environment(
        packages=(
            *("tensorflow-cpu", "torch", "webdataset", "grain", "array_record", "datasets"),
            *("pillow", "zstd", "Brotli", "python-snappy"),
        ),
        first=TORCH,
        bare=("mosaicml-streaming", "catalogue"),
    ),
}
ADAPTERS = {
    "torch": Environment(
        "torch",
        (
            *(*TESTS, *BUCKET, "ml_dtypes", "pillow", "scikit-learn"),
            *("torchdata", "lightning", "transformers", "accelerate"),
        ),
        first=TORCH,
        tests="pytorch or kaggle or two-tower or howto/distributed",
    ),
    "ray": Environment("ray", (*TESTS, "ml_dtypes", *BUCKET), tests="(ray and not array and not xarray)"),
    "spark": Environment("spark", (*TESTS, *BUCKET)),
    "tf": Environment(
        packages=(*TESTS, "tensorflow-cpu", "ml_dtypes", "pillow"), tests="tensorflow.md or tf.data or Keras"
    ),
    "hf": Environment(
        "hf,sparse",
        (*TESTS, "pillow", "ml_dtypes", "deltalake", "pyiceberg[sql-sqlite]", "pylance"),
        tests="howto/hf or Hugging or Lance",
    ),
    "keras": Environment("keras", (*TESTS, "torch"), first=TORCH),
    "grain": Environment("grain", (*TESTS, "jax", "pillow"), tests="jax"),
    "daft": Environment("daft", (*TESTS, "ray[data]<2.60", *BUCKET)),
    "beam": Environment("beam", TESTS),
}


def path_of(name: str) -> Path:
    """The folder of an environment."""
    environment = (ENVIRONMENTS | ADAPTERS)[name]
    return ROOT / (environment.folder or f".venv-{name}")


def make(name: str) -> None:
    """Make an environment, or bring it up to date."""
    environment = (ENVIRONMENTS | ADAPTERS)[name]
    folder = path_of(name)
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)

    def install(*arguments: str, check: bool = True) -> None:
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
        subprocess.run(command, cwd=ROOT, check=check)

    if environment.first:
        install(*environment.first, check=False)
    if environment.has_package:
        install(*BUILD)
        # Without CMake, which dev/build-kernel runs: one build folder serves all environments.
        editable = ["--no-build-isolation", "-C", "wheel.cmake=false", "-C", "wheel.py-api=py3", "-e"]
        install(*editable, f".[{environment.extras}]" if environment.extras else ".", *environment.packages)
        use_plain_path(python)
    else:
        install(*environment.packages)
    if environment.bare:
        install("--no-deps", *environment.bare)
    if environment.extras == "test":
        install_azurite(folder)


def use_plain_path(python: Path) -> None:
    """Replace the import hook of scikit-build-core by the path of this tree.

    The hook has precedence over ``PYTHONPATH``, by which tests put a changed copy of the package first.
    """
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    place = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    for path in Path(place).glob("_editable_*tfrecord_io.*"):
        path.unlink()
    (Path(place) / "tfrecord_io-editable.pth").write_text(f"{ROOT}\n", "utf-8")


def install_azurite(folder: Path) -> None:
    """Install the server that the tests of Azure talk to, a program for Node; without it they are skipped."""
    npm = shutil.which("npm")
    options = ["--silent", "--no-audit", "--no-fund", "--prefix", str(folder / "azurite")]
    if npm is None or subprocess.run([npm, "install", *options, "azurite@3"], check=False).returncode != 0:
        print("azurite cannot be installed: the tests of Azure are skipped", file=sys.stderr)


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    for name in sys.argv[1:]:
        make(name)
