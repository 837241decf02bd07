"""The main job on real input: a DataFrame becomes a TFRecord file and comes back equal, then the file is looked at."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import pandas as pd
from rich.console import Console

import tfrecord_io as tfr
from tfrecord_io.cli.tables import description_table

DATA = Path(__file__).parent / "data" / "penguins.csv"


def penguins() -> pd.DataFrame:
    """Text, categories, nullable integers and float64, with missing values in most columns."""
    dtypes = {"species": "category", "island": "category", "sex": "str"}
    dtypes |= {"flipper_length_mm": "Int64", "body_mass_g": "Int64", "year": "int16"}
    return pd.read_csv(DATA, dtype=dtypes)


def main() -> None:
    console = Console()
    df = penguins()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "penguins.tfrecord"

        console.print(f"[bold]1. There and back[/]   {len(df)} penguins, {df.shape[1]} columns, {df.isna().sum().sum()} missing values")
        tfr.write_tfrecord(df, path, float64="raw")
        back = tfr.read_tfrecord(path)
        pd.testing.assert_frame_equal(back, df)
        console.print(f"   DataFrame → {path.name} ({path.stat().st_size:,} bytes) → DataFrame: equal, dtypes included\n")

        console.print("[bold]2. The default[/]   TFRecord has no float64: values are rounded to float32, and that is said")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", tfr.PrecisionWarning)
            tfr.write_tfrecord(df, path)
        warning = next(w for w in caught if issubclass(w.category, tfr.PrecisionWarning))
        console.print(f"   PrecisionWarning: {warning.message}\n", highlight=False)

        console.print("[bold]3. A look at the file[/]")
        console.print(f"   verify: {tfr.verify(path)}\n", highlight=False)
        console.print(description_table(tfr.describe(path)))


if __name__ == "__main__":
    main()
