"""The measurements of a run: saved as JSON, merged part by part, and compared: ``python -m benchmarks.results A B``."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import report

CHANGE = 0.05  # ratios within it of 1 are not marked


@dataclass(slots=True)
class Row:
    """One contender on one case.

    Attributes
    ----------
    role : str
        "own", "peer" or "floor".
    seconds : float or None
        The best time, scaled to all rows; None if it failed, or where time is not what is measured.
    share : float
        Part of the rows that it ran with.
    numbers : dict
        Further figures, such as bytes at the peak.
    """

    part: str
    case: str
    contender: str
    role: str = "own"
    seconds: float | None = None
    setting: str = ""
    share: float = 1.0
    error: str | None = None
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.part, self.case, self.contender


@dataclass(slots=True)
class Results:
    """The rows of a run, in the order in which they were measured, and where it ran."""

    machine: str
    variant: str
    titles: dict[str, str] = field(default_factory=dict)  # of the cases
    rows: list[Row] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> Results:
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**content, "rows": [Row(**row) for row in content["rows"]]})

    def save(self, path: Path) -> None:
        head = {name: value for name, value in asdict(self).items() if name != "rows"}
        rows = ",\n  ".join(json.dumps(_rounded(row), ensure_ascii=False) for row in self.rows)
        text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
        path.write_text(f'{text},\n "rows": [\n  {rows}\n ]\n}}\n', encoding="utf-8")

    def merge(self, rows: Iterable[Row]) -> None:
        """Add rows; each replaces an older one of its part, case and contender."""
        by_key = {row.key: row for row in [*self.rows, *rows]}
        order = {row.key: None for row in self.rows} | dict.fromkeys(by_key)
        self.rows = [by_key[key] for key in order]

    def find(self, part: str, case: str, contender: str) -> Row | None:
        return next((row for row in self.rows if row.key == (part, case, contender)), None)

    def cases(self, part: str) -> dict[str, list[Row]]:
        """The rows of a part, by case."""
        cases: dict[str, list[Row]] = {}
        for row in self.rows:
            if row.part == part:
                cases.setdefault(row.case, []).append(row)
        return cases

    def title(self, case: str) -> str:
        return self.titles.get(case, case)


def _rounded(row: Row) -> dict[str, Any]:
    """The fields that say something, times with microseconds."""
    content = {name: value for name, value in asdict(row).items() if value not in (None, "", {}, 1.0)}
    if row.seconds is not None:
        content["seconds"] = round(row.seconds, 6)
    return content


def geometric_mean(values: Iterable[float]) -> float:
    """
    >>> geometric_mean([2, 8])
    4.0
    """
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def comparison(before: Results, after: Results) -> str:
    """A table of the times that both runs have, with their ratio; ▲ marks what became faster, ▼ what became slower."""
    rows, ratios = [], {}
    for row in after.rows:
        old = before.find(*row.key)
        if row.role != "own" or old is None or not old.seconds or not row.seconds:
            continue
        ratio = row.seconds / old.seconds
        ratios.setdefault(row.part, []).append(ratio)
        mark = " ▲" if ratio < 1 - CHANGE else " ▼" if ratio > 1 + CHANGE else "  "
        names = [row.part, after.title(row.case), row.contender]
        rows.append([*names, f"{old.seconds:.4f}", f"{row.seconds:.4f}", f"{ratio:.2f}×{mark}"])
    means = [f"{part}: {geometric_mean(values):.2f}× ({len(values)} rows)" for part, values in ratios.items()]
    table = report.table(["part", "case", "contender", "before", "after", "after / before"], rows)
    return f"{table}\n\nGeometric mean: {', '.join(means)}." if rows else "No row is in both."


def main(before: str, after: str) -> None:
    print(comparison(Results.load(Path(before)), Results.load(Path(after))))


if __name__ == "__main__":
    main(*sys.argv[1:])
