"""The command: write the workloads, time all contenders in one run, save the results and print the tables."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import report, tables
from benchmarks.parts import PARTS, THREADS, Settings, measure
from benchmarks.quiet import wait_until_quiet
from benchmarks.results import Results
from benchmarks.workload_files import remove_files
from benchmarks.workloads import PLAIN, SEED, VARIABLE, Variant

QUICK = Variant(share=0.1)
SPECIAL = {  # module: what it measures
    "column_index": "records of one label out of many, from an object store behind a slow link (needs s3fs)",
    "engines": "polars, DuckDB, Dask and Ray, in comparison with read_table, one process, and Ray's own reader",
    "entered": "functions and modules of the package that the usual calls enter",
    "footprint": "import time, read time and installed size, in comparison with TensorFlow",
    "images": "JPEG images decoded to arrays (needs pillow, simplejpeg and tensorflow)",
    "index_only": "columns that a column index has, beside Parquet (needs polars and duckdb)",
    "lanes": "batches of an epoch read in parts, beside those read without",
    "move": "copies of a dataset between buckets and the disk, beside rclone, s3fs and Arrow (needs s3fs)",
    "parquet": "tables and DataFrames beside Parquet, each side with its own file",
    "random_access": "single records by number and by key (peers: pip install array_record tfd-utils)",
    "remote": "an object store behind a slow link (needs s3fs)",
    "scale": "calls on datasets of 10,000 and 100,000 shards (SCALE_SHARDS=1000000: a million, too)",
    "streams": "compressed files, and one in a bucket, with 1, 2, 4 and 8 threads",
    "tensors": "tensors as raw bytes, to and from NumPy",
    "training": "shuffled batches of arrays, beside tf.data, webdataset, Grain, HF datasets and mosaicml-streaming",
}

OWN_NAMES = ("tensors", "training")  # of features that belong together by their names


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    add("--workloads", nargs="+", choices=PLAIN, default=list(PLAIN), metavar="NAME", help=", ".join(PLAIN))
    add("--threads", nargs="+", type=int, default=list(THREADS), metavar="N", help="of tfrecord_io (1 2 4 8)")
    add("--repeat", type=int, help="maximum number of rounds (default 7)")
    add("--budget", type=float, default=30.0, metavar="S", help="do not repeat contenders after S seconds (default 30)")
    add("--quick", action="store_true", help="a tenth of the rows and three rounds, for a first impression")
    add("--no-peers", action="store_true", help="only tfrecord_io and the lower bounds")
    add("--seed", type=int, help=f"of the values (default: drawn for each run; that of the tests is {SEED})")
    add("--names", choices=("own", "random"), help="names of the columns (default: random, but own with --seed)")
    add("--keep", action="store_true", help="keep the files that were written for a drawn seed")
    add("--busy", action="store_true", help="measure although other programs run; the results say so")
    add("--json", type=Path, metavar="FILE", help="merge the results into FILE (default: build/bench/seed-N.json)")
    add("--show", type=Path, metavar="FILE", help="print the tables of a file of results, without measuring")
    add("--markdown", type=Path, metavar="FILE", help="also write the tables to FILE, between its markers")
    for name, what in SPECIAL.items():
        add(f"--{name}", dest="special", action="store_const", const=name, help=f"instead, measure {what}")
    return parser.parse_args(argv)


def _variant(options: argparse.Namespace) -> Variant:
    """The one that was asked for, that of the results to be merged with, or a new one."""
    share = QUICK.share if options.quick else 1.0
    if options.seed is not None:
        return Variant(options.seed, options.names or "own", share)
    if options.json is not None and options.json.exists():
        return Variant.of(Results.load(options.json).variant)
    drawn, names = Variant.drawn(share), "own" if options.special in OWN_NAMES else options.names
    return drawn if names is None else replace(drawn, names=names)


def _measured(options: argparse.Namespace) -> Results:
    settings = Settings(options.workloads, options.repeat, options.budget, not options.no_peers, options.threads)
    path = options.json or Path(f"build/bench/seed-{Variant.current().seed}.json")
    described = os.environ[VARIABLE]
    machine = report.machine() + ", busy with other programs" * options.busy
    results = Results.load(path) if path.exists() else Results(machine, described)
    if results.variant != described:
        raise SystemExit(f"{path} has results of the variant {results.variant}, not {described}: choose another --json")
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in options.only:
        if not options.busy:
            wait_until_quiet()
        for rows, titles in measure(part, settings):
            results.merge(rows)
            results.titles |= titles
            results.rows.sort(key=lambda row: PARTS.index(row.part))
            results.save(path)
    return results


def _special(options: argparse.Namespace) -> int:
    module = importlib.import_module(f"benchmarks.special.{options.special}")
    table, passed = module.measure(options.repeat)
    text = f"{report.machine(getattr(module, 'PACKAGES', report.PACKAGES))}.\n\n{table}"
    print(text)
    if options.markdown is not None:
        report.put(options.markdown, text, options.special)
    return 0 if passed else 1


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    options.repeat = options.repeat or (3 if options.quick else 7)
    if options.show:
        return _shown(Results.load(options.show), PARTS, options)
    variant = _variant(options)
    variant.apply()
    print(f"seed {variant.seed}, {variant.names} names", file=sys.stderr)
    if options.special is not None:
        if not options.busy:
            wait_until_quiet()
        return _special(options)
    try:
        return _shown(_measured(options), options.only, options)
    finally:
        if options.seed is None and options.json is None and not options.keep:
            remove_files()


def _shown(results: Results, parts: Sequence[str], options: argparse.Namespace) -> int:
    text = tables.text(results, parts)
    print(text)
    if options.markdown is not None:
        report.put(options.markdown, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
