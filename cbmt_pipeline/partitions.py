"""The firm partition: one key a firm or segment, added as firms appear in the data."""

from __future__ import annotations

import dagster as dg

__all__ = ["FIRM_PARTITIONS", "firm_partitions"]

FIRM_PARTITIONS = "firm"

firm_partitions = dg.DynamicPartitionsDefinition(name=FIRM_PARTITIONS)
