"""Run each step of a release that one machine can do, and a table of what was run and what was not.

A step that succeeded for this commit is not repeated: build/release-check/<commit>.json keeps the results, so that a
stopped run goes on. STEPS="wheels lint" runs these only, SKIP="fuzz mutation" all others; AGAIN=1 repeats all.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "build" / "release-check"


@dataclass(frozen=True)
class Step:
    name: str
    command: str
    shows: str


STEPS = [
    Step("lint", "make lint types", "style, types"),
    Step("resolve", "dev/resolve", "all extras in one call, with TensorFlow 2.18, 2.21 and the newest"),
    Step(
        "api",
        "make test-full "
        "PYTEST_ARGS='tests/test_public_api.py tests/base/test_registry.py tests/end_to_end/test_older_versions.py'",
        "the public interface, and files of older versions",
    ),
    Step("docs", "make docs", "the site: links, search, 404"),
    Step(
        "wheels", ".ci/wheels build", "wheels for manylinux_2_28 of this processor: 3.11, and abi3 for 3.12 and later"
    ),
    Step("audit", ".ci/wheels audit", "auditwheel, abi3audit, stripped, at most 3 MB"),
    Step("sdist", ".ci/wheels sdist", "the sdist is the same from a used tree and a clone; it builds offline"),
    Step(
        "dist",
        "rm -rf build/dist && mkdir build/dist && cp build/release/*.whl build/release/*.tar.gz build/dist "
        "&& dev/dist check build/dist && dev/dist sbom build/dist",
        "what would be published: kernels, licences, links, twine check --strict; the list of components",
    ),
    Step("readme", "dev/readme-check", "the commands of README.md in a fresh environment"),
    Step("bare", ".ci/wheels bare", "bare environments without a compiler, lowest and newest dependencies"),
    Step("abi3", "make test-abi3", "the tests on the wheel of the stable ABI"),
    Step("lowest", "make test-lowest", "the tests on the lowest dependencies, with each interpreter of LOWEST"),
    Step("arm", "make test-platforms ONLY=arm", "the kernel for aarch64, under qemu"),
    Step("windows", "make test-platforms ONLY=windows", "the kernel for Windows, under Wine"),
    Step("test", "make test-full STORM=1", "all tests, all rounds"),
    Step("adapters", "make test-adapters", "the adapters of large libraries"),
    Step("border", "make test-border", "the tests of the rest without each plugin"),
    Step("conformance", "make conformance", "what TensorFlow and others read and write"),
    Step("sanitize", "make sanitize", "the kernel under sanitizers, also of threads"),
    Step("coverage", "make coverage", "the branches of the kernel"),
    Step("mutation", "make mutation", "changes that a test must find"),
    Step("fuzz", "make fuzz SECONDS=3600", "mutated inputs"),
    Step("speed", "dev/bench .venv -m benchmarks.guard", "the fast paths are taken"),
]
HOSTED = {
    "wheels of other platforms": "musllinux, aarch64 as built natively, macOS arm64 and x86-64, Windows (wheels.yml)",
    "publishing": "attestations, trusted publishing, the page of the release (release.yml)",
    "the site online": "pages (docs.yml)",
    "free-threaded Python": "the sdist builds and works, with the lock enabled; no wheel: see dev/development.md",
}


# A release sets it from its repository: the description's links lead there.
ENVIRONMENT = {"TFRECORD_IO_ADDRESS": "https://example.org/owner/tfrecord_io"} | os.environ


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def targets() -> set[str]:
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    return {name for line in lines if line[:1].isalpha() and ":" in line for name in line.partition(":")[0].split()}


def outcome(step: Step, log: Path) -> str:
    words = step.command.split()
    absent = {word for word in words[1:] if "=" not in word} - targets() if words[0] == "make" else set()
    if absent:
        return f"not here: the Makefile has no {', '.join(sorted(absent))}"
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            step.command, shell=True, cwd=ROOT, env=ENVIRONMENT, stdout=file, stderr=subprocess.STDOUT
        )
    return "passed" if done.returncode == 0 else f"FAILED, see {log.relative_to(ROOT)}"


def main() -> int:
    commit = output("git", "rev-parse", "--short", "HEAD") + (
        "-changed" if output("git", "status", "--porcelain") else ""
    )
    only, skipped = os.environ.get("STEPS", "").split(), os.environ.get("SKIP", "").split()
    if unknown := {*only, *skipped} - {step.name for step in STEPS}:
        print(
            f"no such step: {' '.join(sorted(unknown))}; steps: {' '.join(step.name for step in STEPS)}",
            file=sys.stderr,
        )
        return 2
    RECORD.mkdir(parents=True, exist_ok=True)
    path = RECORD / f"{commit}.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for step in STEPS:
        is_done = results.get(step.name, {}).get("outcome") == "passed" and not os.environ.get("AGAIN")
        if is_done or step.name in skipped or (only and step.name not in only):
            continue
        print(f"=== {step.name}: {step.command}", flush=True)
        begin = time.monotonic()
        found = outcome(step, RECORD / f"{step.name}.log")
        results[step.name] = {"outcome": found, "seconds": round(time.monotonic() - begin)}
        path.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(f"\ntfrecord_io, commit {commit}, {platform.platform()}\n")
    for step in STEPS:
        result = results.get(step.name, {"outcome": "not run", "seconds": 0})
        print(f"{step.name:17} {result['outcome']:32} {result['seconds']:5} s  {step.command}: {step.shows}")
    print("\nOnly the hosted workflows can run:")
    for name, text in HOSTED.items():
        print(f"{name:26} {text}")
    return int(any(result["outcome"].startswith("FAILED") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
