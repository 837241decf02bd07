"""A DataFrame is written to a TFRecord file and read back unchanged; a report shows what the file contains."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import pandas as pd

import tfrecord_io as tfr

DATA = Path(__file__).resolve().parent / "data" / "penguins.csv"
FILE = Path("penguins.tfrecord")
REPORT = Path(__file__).resolve().parents[1] / "build" / "demo" / "report.html"


def penguins() -> pd.DataFrame:
    """Text, categories, nullable integers and float64, with missing values in most columns."""
    dtypes = {"species": "category", "island": "category", "sex": "str"}
    dtypes |= {"flipper_length_mm": "Int64", "body_mass_g": "Int64", "year": "int16"}
    return pd.read_csv(DATA, dtype=dtypes)


def round_trip(df: pd.DataFrame) -> None:
    print(f"1. Round trip: {len(df)} penguins, {df.shape[1]} columns, {df.isna().sum().sum()} missing values")
    tfr.write_tfrecord(df, FILE, float64="raw")
    back = tfr.read_tfrecord(FILE)
    pd.testing.assert_frame_equal(back, df)
    print(f"   DataFrame → {FILE} → DataFrame: equal, including dtypes")
    print(f"   {', '.join(sorted({str(t) for t in back.dtypes}))}\n")


def write_with_defaults(df: pd.DataFrame) -> None:
    print("2. By default: TFRecord has no float64, so values are rounded to float32, with a warning")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tfr.write_tfrecord(df, FILE)
    for warning in caught:
        print(f"   {warning.category.__name__}: {warning.message}\n")
    assert [w.category for w in caught] == [tfr.errors.PrecisionWarning]


def inspect() -> None:
    print("3. The file")
    report = tfr.verify(FILE)
    print(f"   {report}")
    assert report.ok
    print(tfr.describe(FILE))


def report() -> None:
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    written = tfr.report(FILE, REPORT)
    print(f"\n4. The report about {len(written.statistics[0].features)} features: open it in a browser")
    print(f"   {REPORT.as_uri()}")


def main() -> None:
    df = penguins()
    with tempfile.TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)
        try:
            round_trip(df)
            write_with_defaults(df)
            inspect()
            report()
        finally:
            os.chdir(before)


if __name__ == "__main__":
    main()
