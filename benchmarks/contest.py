"""Run contenders in separate processes, alternating on one machine.

A process constructs its contender, reports that, and then runs once for each line it receives: the index of a setting.
Rounds alternate between the processes, so that a slow moment of the machine affects all of them. In the first round
every setting runs; later rounds repeat the best one. The best time counts.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.workloads import WORKLOADS, Workload


@dataclass(frozen=True, slots=True)
class Contender:
    """A class, ``module:Class``, and the keywords that it is constructed with after the workload."""

    spec: str
    label: str
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: str, **options: Any) -> Contender:
        name = contender_class(spec).name
        threads = options.get("threads")
        return cls(spec, name if threads is None else f"{name}, {threads} thread{'s' * (threads != 1)}", options)


def contender_class(spec: str) -> Any:
    module, _, name = spec.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(slots=True)
class Result:
    """Best time of a contender on a workload in seconds, scaled to all rows if it ran with a share of them."""

    name: str
    seconds: float = math.inf
    setting: str = ""
    share: float = 1.0
    runs: int = 0
    size: float = 0.0  # of the written file in bytes, scaled likewise
    error: str | None = None


@dataclass(slots=True)
class _Process:
    """The process of one contender, seen from the parent."""

    result: Result
    child: subprocess.Popen[str]
    settings: list[str] = field(default_factory=list)
    best: int = 0
    spent: float = 0.0

    @classmethod
    def start(cls, contender: Contender, workload: str) -> _Process:
        options = json.dumps(contender.options)
        command = [sys.executable, "-m", "benchmarks.contest", contender.spec, workload, options]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        return cls(Result(contender.label), child)

    def wait(self) -> None:
        """Until it is ready to run."""
        hello = self._answer()
        self.settings = hello.get("settings", [])
        self.result.share = hello.get("share", 1.0)

    def _answer(self) -> dict[str, Any]:
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        answer = json.loads(line) if line else {"error": f"the process ended with code {self.child.wait()}"}
        self.result.error = answer.get("error")
        return answer

    def run(self, index: int) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(f"{index}\n")
        self.child.stdin.flush()
        answer = self._answer()
        if self.result.error is not None:
            return
        seconds = answer["seconds"]
        self.spent += seconds
        self.result.runs += 1
        self.result.size = answer.get("size", 0) / self.result.share
        if seconds / self.result.share < self.result.seconds:
            self.result.seconds = seconds / self.result.share
            self.result.setting = self.settings[index]
            self.best = index

    def stop(self) -> None:
        if self.child.stdin is not None:
            self.child.stdin.close()
        self.child.wait()
        if self.child.stdout is not None:
            self.child.stdout.close()


def contest(
    contenders: Sequence[Contender], workload: Workload, repeat: int, budget: float, path: Path | None = None
) -> list[Result]:
    """Run contenders alternately, for at most `repeat` rounds and about `budget` seconds each.

    `path` is brought into the page cache: the workload's, unless another one is given.
    """
    path = path or workload.path
    for file in path.iterdir() if path.is_dir() else [path]:
        file.read_bytes()
    processes = [_Process.start(contender, workload.name) for contender in contenders]
    try:
        for process in processes:
            process.wait()
        for round_ in range(repeat):
            for process in processes:
                if process.result.error is not None or (round_ and process.spent > budget):
                    continue
                for index in range(len(process.settings)) if round_ == 0 else (process.best,):
                    if process.result.error is None:
                        process.run(index)
    finally:
        for process in processes:
            process.stop()
    return [process.result for process in processes]


def serve(spec: str, name: str, options: str) -> None:
    """The child process: construct the contender, then time one run for each line."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not mix with the answers
    try:
        make = contender_class(spec)  # its module may define the workload
        workload = WORKLOADS[name]
        contender = make(workload, **json.loads(options))
    except Exception as error:  # libraries that are not installed or fail are reported in the table
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), file=answers)
        return
    settings = [_text(setting) for setting in contender.settings]
    print(json.dumps({"settings": settings, "share": contender.share}), file=answers)
    expected = getattr(contender, "rows", None) or round(workload.rows * contender.share)
    for line in sys.stdin:
        print(json.dumps(_timed(contender, contender.settings[int(line)], expected)), file=answers)
    getattr(contender, "close", lambda: None)()


def _timed(contender: Any, setting: Any, expected: int) -> dict[str, Any]:
    try:
        begin = time.perf_counter()
        result = contender.run(setting)
        seconds = time.perf_counter() - begin
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    count = contender.count(result)
    if count != expected:
        return {"error": f"{count} rows instead of {expected}"}
    return {"seconds": seconds, "size": getattr(contender, "size", int)()}


def _text(setting: Any) -> str:
    parts = (setting,) if isinstance(setting, str) else setting
    return " ".join(str(part) for part in parts if part != "")


if __name__ == "__main__":
    serve(*sys.argv[1:])
