"""Invented orders for examples."""

from __future__ import annotations

import pandas as pd

__all__ = ["example_orders"]


def example_orders(firms: int = 1, *, scale: float = 0.01, seed: int = 20260626) -> pd.DataFrame:
    """Orders of simulated firms from 2016 to the beginning of 2020, one row an order.

    Args:
        firms: how many.
        scale: share of the customers of a firm of the usual size.
        seed: the same seed gives the same orders.

    >>> orders = example_orders()
    >>> list(orders.columns)
    ['firm', 'customer', 'order_id', 'order_time', 'amount', 'industry']
    """
    from cbmt_core.simulate import Economy, sample_orders

    economy = Economy(firms=firms, scale=scale, seed=seed)
    return pd.concat([sample_orders(economy, spec) for spec in economy.specs()], ignore_index=True)
