"""Batches of firms: split firms into runs, and run a batch; fail only the bad partitions."""

from collections.abc import Callable

import dagster as dg
import duckdb

from cbmt_core.errors import CbmtError
from cbmt_core.names import Unit
from cbmt_pipeline.plain_errors import plain
from cbmt_pipeline.progress import tell

__all__ = ["BATCH", "EXPECTED", "contiguous_batches", "for_each_firm"]

EXPECTED = (CbmtError, duckdb.Error, OSError)
"""Errors that concern one firm only; the other firms of the batch continue."""
BATCH = 50
"""Firms in one run: starting a run costs more than making a small firm's tables."""


def for_each_firm(context: dg.AssetExecutionContext, make: Callable[[Unit], None]) -> None:
    """Call `make`, which records the firm's materialisations, for every firm of the run. Firms that fail are not
    recorded; the failure raised at the end names them.
    """
    keys = list(context.partition_keys)
    failed = {}
    for done, key in enumerate(keys, start=1):
        unit = Unit.from_key(key)
        try:
            make(unit)
            context.log.info(f"{done}/{len(keys)} {unit.name}")
            tell(key, "", 1.0)
        except EXPECTED as error:
            failed[unit.name] = plain(error) or str(error)
            context.log.error(f"{done}/{len(keys)} {unit.name}: {failed[unit.name]}")
    if failed:
        reasons = "\n".join(f"{firm}: {why}" for firm, why in failed.items())
        raise dg.Failure(
            f"{len(failed)} of {len(keys)} firms are not usable"
            f"{'; the others are done' if len(failed) < len(keys) else ''}.\n{reasons}",
            metadata=dict(list(failed.items())[:50]),
            allow_retries=False,
        )


def contiguous_batches(keys: list[str], wanted: list[str], size: int) -> list[list[str]]:
    """Split `wanted` into runs of neighbours in `keys`, each of at most `size`: a run takes a range."""
    chosen = set(wanted)
    batches: list[list[str]] = []
    previous = None
    for key in keys:
        if key in chosen:
            if previous in chosen and batches and len(batches[-1]) < size:
                batches[-1].append(key)
            else:
                batches.append([key])
        previous = key
    return batches
