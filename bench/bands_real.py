"""How bands held on files of real orders: python bench/bands_real.py FILE [--firms 10]

Every 13 weeks from a year of history on, each of the firms with the most orders is forecast to the end of its data by
`cbmt_plus`, which learns its prior from the firm alone. The bands have the shipped factors: one firm has no others to
learn from. Beside them stands the raw posterior. FILE is Parquet with the columns firm_id, customer_id, order_id,
order_ts, amount.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from panel_results.document import table
from threadpoolctl import threadpool_limits

from cbmt_core.bands import LEVELS, SHIPPED, BandFactors, draws_of
from cbmt_core.bands.coverage import weighted_interval_score
from cbmt_core.bands.factors import history_scale
from cbmt_core.bands.judged import AHEAD
from cbmt_core.compose import compose_draws
from cbmt_core.models import CannotFit, build
from cbmt_core.notebook.orders import panels_from_orders

HISTORY, EVERY, LEAST_AHEAD = 52, 13, 4


def judged(file: str, firms: int) -> pd.DataFrame:
    """A row for each firm, origin and week ahead, and one for the sum of the weeks: which bands held."""
    orders = pd.read_parquet(file)
    busy = orders["firm_id"].value_counts().index[:firms]
    panels = panels_from_orders(
        orders[orders["firm_id"].isin(busy)], country="GB", firm="firm_id", customer="customer_id",
        order_time="order_ts", amount="amount", order_id="order_id",
    )  # fmt: skip
    found = []
    for panel in panels.values():
        for seen_weeks in range(HISTORY, panel.n_weeks - LEAST_AHEAD + 1, EVERY):
            seen = panel.until(panel.weeks[seen_weeks - 1].item())
            actual = panel.S[seen_weeks : seen_weeks + HISTORY]
            try:
                fitted = build("cbmt_plus").fit(seen, seed=1)
            except CannotFit:
                continue
            history = seen.since_first_order().n_weeks
            for bands, factors in (("shipped factors", SHIPPED), ("raw posterior", unchanged(history))):
                drawn = compose_draws(
                    draws_of(seen, fitted, len(actual), seed=1, model="cbmt_plus", factors=factors)
                )
                for t, (draws, happened) in enumerate(
                    zip([*drawn.sales.T, drawn.sales.sum(axis=1)], [*actual, actual.sum()], strict=True), 1
                ):
                    ends = {
                        f"{end}{level}": np.quantile(draws, 0.5 + sign * level / 200)
                        for level in LEVELS
                        for end, sign in (("low", -1), ("high", 1))
                    }
                    ahead = next((name for name, (a, b) in AHEAD.items() if a <= t <= b), "")
                    found.append(
                        {"firm": panel.firm, "bands": bands, "ahead": ahead if t <= len(actual) else "sum",
                         "actual": happened, "median": np.median(draws), **ends,
                         **{level: ends[f"low{level}"] <= happened <= ends[f"high{level}"] for level in LEVELS}}
                    )  # fmt: skip
    return pd.DataFrame(found)


def unchanged(history: int) -> BandFactors:
    """Factors that leave the posterior of so many weeks as it is."""
    return BandFactors(1 / history_scale(history), np.ones(3))


def crps(rows: pd.DataFrame) -> pd.DataFrame:
    """By kind of bands: CRPS of weeks and of sums, per cent of a firm's sales, the mean over firms."""
    scored = rows.assign(
        crps=weighted_interval_score(rows), of=np.where(rows["ahead"] == "sum", "sums", "weeks")
    )
    sums = scored.groupby(["bands", "of", "firm"])[["crps", "actual"]].sum()
    return (100 * sums["crps"] / sums["actual"]).groupby(level=["bands", "of"]).mean().unstack()  # noqa: PD010


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", help="Parquet with one row an order")
    parser.add_argument("--firms", type=int, default=10, help="firms with the most orders [%(default)s]")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        rows = judged(asked.file, asked.firms)
    groups = [name for name in (*AHEAD, "sum") if name in set(rows["ahead"])]
    held = 100 * rows.groupby(["bands", "ahead"])[list(LEVELS)].mean()
    forecasts = int((rows["ahead"] == "sum").sum()) // rows["bands"].nunique()
    print(f"{rows['firm'].nunique()} firms, {forecasts} forecasts: per cent inside\n")
    kinds = list(rows["bands"].unique())
    print(table(["bands", "level", *groups], [
        [kind, f"{level} %", *(f"{held.loc[(kind, name), level]:.1f}" for name in groups)]
        for kind in kinds for level in LEVELS]))  # fmt: skip
    scores = crps(rows)
    print("\nCRPS, per cent of sales\n")
    print(table(["bands", "weeks", "sums"], [
        [kind, *(f"{scores.loc[kind, of]:.2f}" for of in ("weeks", "sums"))] for kind in kinds]))  # fmt: skip


if __name__ == "__main__":
    main()
