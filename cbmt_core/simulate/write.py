"""Write an economy to a folder: files of orders as a user would have them, and the truth beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cbmt_core.errors import ConfigError
from cbmt_core.simulate.economy import Economy, FirmSpec
from cbmt_core.simulate.orders import sample_orders
from cbmt_core.simulate.truth import truth_of

__all__ = ["FORMATS", "write_economy", "write_orders"]

FORMATS = ("parquet", "csv.gz", "csv")


def write_economy(
    economy: Economy,
    folder: Path,
    *,
    file_format: str = "parquet",
    on_firm: Callable[[FirmSpec, int], None] | None = None,
) -> None:
    """Write `orders/<slug>.<file_format>` and `truth/<slug>.json` for every firm.

    Args:
        economy: firms to write.
        folder: where; made if missing.
        file_format: one of `FORMATS`.
        on_firm: called with each firm and its number of orders.
    """
    if file_format not in FORMATS:
        raise ConfigError(f"unknown file format {file_format!r}; choose one of {', '.join(FORMATS)}")
    orders, truth = folder / "orders", folder / "truth"
    orders.mkdir(parents=True, exist_ok=True)
    truth.mkdir(parents=True, exist_ok=True)
    for spec in economy.specs():
        frame = sample_orders(economy, spec)
        write_orders(frame, orders / f"{spec.slug}.{file_format}")
        (truth / f"{spec.slug}.json").write_text(truth_of(economy, spec).to_json(), encoding="utf-8")
        if on_firm is not None:
            on_firm(spec, len(frame))


def write_orders(frame: pd.DataFrame, path: Path) -> None:
    """Write one firm's orders atomically, in the format of the path's suffix."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    # A hidden name, so that a folder read meanwhile, or after a crash, does not show half a file.
    unfinished = path.with_name(f".{path.name}.unfinished")
    if path.name.endswith(".parquet"):
        pyarrow.parquet.write_table(
            table, unfinished, compression="zstd", use_dictionary=["firm", "industry"]
        )
    else:
        compression = "gzip" if path.name.endswith(".gz") else None
        with pa.output_stream(unfinished, compression=compression) as stream:
            pyarrow.csv.write_csv(_plain(table), stream)
    unfinished.replace(path)


def _plain(table: pa.Table) -> pa.Table:
    """The table without dictionary types, which CSV lacks, and with times in whole seconds."""
    names = pa.schema(
        [
            (field.name, pa.string())
            if pa.types.is_dictionary(field.type)
            else (field.name, pa.timestamp("s"))
            if pa.types.is_timestamp(field.type)
            else field
            for field in table.schema
        ]
    )
    return table.cast(names)
