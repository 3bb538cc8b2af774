"""Forecast accuracy: means, medians, ranks, selection, families, horizons and industries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from cbmt_core.evaluation import ALL_INDUSTRIES
from cbmt_core.exhibits.evidence import Evidence
from cbmt_core.exhibits.exhibit import FIRMS, LABEL, MODEL, OUTCOME, Exhibit, number, table
from cbmt_core.exhibits.models import (
    BENCHMARKS,
    DIRECT,
    FULL_MODEL,
    INDUSTRY_MODELS,
    NESTED_MODELS,
    REPRESENTATIVES,
)
from cbmt_core.metrics import FULL, HORIZONS, OUTCOMES
from cbmt_core.schema import Column

__all__ = ["EXHIBITS"]

METRIC = Column("metric", "VARCHAR", "smape or mase")
GAP = number("gap", "percent by which the reference's error is lower; NULL for the reference")
MEAN, SD = number("mean", "mean across firms"), number("sd", "standard deviation across firms")
BY_OUTCOME = tuple(number(name, f"for {name}") for name in OUTCOMES)


def _full(rows: pd.DataFrame, metric: str | None = None) -> pd.DataFrame:
    rows = rows[rows["horizon"] == FULL]
    return rows if metric is None else rows[rows["metric"] == metric]


def _by_outcome(rows: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Rows in the order of outcomes and metrics; models keep theirs."""
    rows = _full(rows)
    parts = [
        rows[(rows["outcome"] == outcome) & (rows["metric"] == metric)]
        for outcome in OUTCOMES
        for metric in metrics
    ]
    return pd.concat(parts)


def evaluation(evidence: Evidence, metrics: Sequence[str]) -> pd.DataFrame:
    return _by_outcome(evidence.among(REPRESENTATIVES), metrics)


def medians(evidence: Evidence) -> pd.DataFrame:
    rows = _by_outcome(evidence.among(REPRESENTATIVES), ("smape", "mase"))
    return rows.drop(columns="gap").rename(columns={"median_gap": "gap"})


def _wide(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """A row a model, a column an outcome; firms are those of total sales."""
    if rows.empty:
        return pd.DataFrame()
    cells = rows.set_index(["model", "outcome"])[value].unstack("outcome")  # noqa: PD010
    firms = rows[rows["outcome"] == "total_sales"].set_index("model")
    return cells.loc[firms.index].join(firms[["label", "firms", "models_ranked"]]).reset_index()


def ranks(evidence: Evidence, models: Sequence[str], value: str) -> pd.DataFrame:
    return _wide(_full(evidence.among(models), "smape"), value)


def model_selection(evidence: Evidence) -> pd.DataFrame:
    rows = _full(evidence.among(BENCHMARKS))
    return _total_sales(rows[rows["model"].isin(BENCHMARKS)]).assign(
        representative=lambda f: f["model"].isin(REPRESENTATIVES) if len(f) else []
    )


def direct_comparison(evidence: Evidence) -> pd.DataFrame:
    return _total_sales(_full(evidence.compared([FULL_MODEL, DIRECT])))


def _total_sales(rows: pd.DataFrame) -> pd.DataFrame:
    """Both metrics of total sales side by side; the tests are those of SMAPE."""
    rows = rows[rows["outcome"] == "total_sales"]
    smape, mase = (rows[rows["metric"] == metric].set_index("model") for metric in ("smape", "mase"))
    figures = ["mean", "sd", "median"]
    return smape.join([smape[figures].add_prefix("smape_"), mase[figures].add_prefix("mase_")]).reset_index()


def families(evidence: Evidence) -> pd.DataFrame:
    """Means of the families, then what each adds: 100 (B - A) / B of variant A over baseline B."""
    rows = _full(evidence.compared(NESTED_MODELS), "smape")
    if rows.empty:
        return pd.DataFrame()
    means = _wide(rows, "mean").set_index("model").loc[list(NESTED_MODELS)]
    firms = int(means["firms"].iloc[0])
    has = {"single_task": ("No", "No"), "joint": ("Yes", "No"), FULL_MODEL: ("Yes", "Yes")}
    names = {"single_task": "Single-task", "joint": "Joint", FULL_MODEL: "Full"}
    outcomes = list(OUTCOMES)
    out = [
        {"panel": "mean SMAPE", "family": names[name], **_parts(*has[name]), **means.loc[name, outcomes]}
        for name in NESTED_MODELS
    ]
    for baseline, variant in (("single_task", "joint"), ("joint", FULL_MODEL), ("single_task", FULL_MODEL)):
        b, a = means.loc[baseline, outcomes], means.loc[variant, outcomes]
        added = (x if x == y else f"{x} to {y}" for x, y in zip(has[baseline], has[variant], strict=True))
        contrast = f"{names[variant]} vs. {names[baseline].lower()}"
        out.append({"panel": "improvement", "family": contrast, **_parts(*added), **(100 * (b - a) / b)})
    return pd.DataFrame(out).assign(firms=firms)


def _parts(shared: str, aligned: str) -> dict[str, object]:
    return {"shared_representation": shared, "revenue_alignment": aligned}


def horizons(evidence: Evidence) -> pd.DataFrame:
    rows = evidence.among(REPRESENTATIVES)
    rows = rows[rows["metric"] == "smape"]
    full = evidence.accuracy.loc[evidence.accuracy["horizon"] == FULL, "weeks"].max() if len(rows) else 0
    weeks = {**HORIZONS, FULL: full}
    parts = [
        rows[(rows["outcome"] == outcome) & (rows["horizon"] == horizon)].assign(weeks=length)
        for outcome in OUTCOMES
        for horizon, length in weeks.items()
    ]
    return pd.concat(parts)


def industries(evidence: Evidence) -> pd.DataFrame:
    """Industries from the easiest to the hardest for the reference."""
    rows = _full(evidence.summary, "smape")
    rows = rows[(rows["outcome"] == "total_sales") & (rows["industry"] != ALL_INDUSTRIES)]
    own = rows[rows["model"] == evidence.reference].sort_values("mean")
    order = {name: k for k, name in enumerate(own["industry"])}
    rows = evidence.ordered(rows, INDUSTRY_MODELS)
    rows = rows.sort_values("industry", key=lambda names: names.map(order), kind="stable")
    return rows.assign(se=rows["sd"] / np.sqrt(rows["firms"].astype(float)))


def _rank_exhibit(
    name: str, meaning: str, paper: str, note: str, make: Callable[[Evidence], pd.DataFrame]
) -> Exhibit:
    ranked = Column("models_ranked", "INTEGER", "models ranked: those that forecast all five outcomes")
    return Exhibit(table(name, meaning, MODEL, LABEL, FIRMS, ranked, *BY_OUTCOME), paper, note, make)


ALL_RANKED = (FULL_MODEL, *BENCHMARKS)
RANK_NOTE = "SMAPE over the full holdout; 1 is best, ties share the mean rank."

EXHIBITS = (
    Exhibit(
        table(
            "evaluation_smape",
            "SMAPE over the holdout of the representative models.",
            OUTCOME, MODEL, LABEL, FIRMS, MEAN, GAP, SD,
        ),
        "Table: Evaluation with SMAPE Measure (tab:eval_main)",
        "The gap is 100 (model - reference) / model; ROPC and AOV are weighted by cohort size.",
        partial(evaluation, metrics=("smape",)),
    ),
    Exhibit(
        table(
            "evaluation_mean",
            "Mean SMAPE and MASE over the holdout of the representative models.",
            OUTCOME, METRIC, MODEL, LABEL, FIRMS, MEAN, GAP, SD,
        ),
        "Table: Mean Forecast Accuracy Under SMAPE and MASE (tab:eval_all)",
        "MASE divides by the naive error of the same weeks; firms where nothing moves have none.",
        partial(evaluation, metrics=("smape", "mase")),
    ),
    Exhibit(
        table(
            "evaluation_median",
            "Median SMAPE and MASE over the holdout of the representative models.",
            OUTCOME, METRIC, MODEL, LABEL, FIRMS, number("median", "median across firms"), GAP,
        ),
        "Table: Median Forecast Accuracy Under SMAPE and MASE (tab:median)",
        "The gap is that of the medians.",
        medians,
    ),
    _rank_exhibit(
        "average_rank",
        "Average rank of the representative models among all of the paper's.",
        "Table: Relative Performance Measured by Average Rank (tab:avg_rank)",
        RANK_NOTE,
        partial(ranks, models=REPRESENTATIVES, value="average_rank"),
    ),
    _rank_exhibit(
        "average_rank_all",
        "Average rank of every model of the paper.",
        "Table: Average Forecast-Accuracy Rank Across All Model Variants (tab:append_avg_rank)",
        RANK_NOTE,
        partial(ranks, models=ALL_RANKED, value="average_rank"),
    ),
    _rank_exhibit(
        "first_rank",
        "Share of firms on which each model of the paper ranks first.",
        "Table: Probability of Ranking First Across All Model Variants (tab:append_p_rank1)",
        "SMAPE over the full holdout; a firm with ties for the first rank is divided between them.",
        partial(ranks, models=ALL_RANKED, value="first_rank"),
    ),
    Exhibit(
        table(
            "model_selection",
            "Total-sales errors of every benchmark variant.",
            MODEL, LABEL, FIRMS,
            *(number(f"{m}_{s}", f"{s} {m.upper()}") for m in ("smape", "mase") for s in ("mean", "median")),
            Column("representative", "BOOLEAN", "whether the shorter tables show it"),
        ),
        "Table: Benchmark Model Comparison and Main-Text Representatives (tab:wa_model_selection)",
        "All variants over the same firms.",
        model_selection,
    ),
    Exhibit(
        table(
            "direct_comparison",
            "Total-sales errors of CBMT and of the model that forecasts total sales alone.",
            MODEL, LABEL, FIRMS, number("smape_mean", "mean SMAPE"), number("smape_sd", "its deviation"),
            number("smape_median", "median SMAPE"), number("mase_mean", "mean MASE"),
            number("mase_median", "median MASE"), number("difference", "mean SMAPE minus CBMT's, paired"),
            number("difference_low", "lower end of its 95 % bootstrap interval"),
            number("difference_high", "upper end of its 95 % bootstrap interval"),
            number("t_p", "p value of the paired t test"),
            number("wilcoxon_p", "p value of the signed-rank test"),
        ),
        "Table: Weekly Total-Sales Accuracy: CBMT versus Tuned Direct Model (tab:wa_direct_sales_results)",
        "The two over the firms both have. Empty until both have run.",
        direct_comparison,
    ),
    Exhibit(
        table(
            "families",
            "Mean SMAPE of the single-task, joint and full families, and what each adds.",
            Column("panel", "VARCHAR", "mean SMAPE, or improvement in percent of the baseline's"),
            Column("family", "VARCHAR", "model family, or variant vs. baseline"),
            Column("shared_representation", "VARCHAR", "whether the drivers share one network"),
            Column("revenue_alignment", "VARCHAR", "whether training aligns their product with sales"),
            FIRMS, *BY_OUTCOME,
        ),
        "Table: Diagnostic Ablations for Joint Customer-Base Forecasting (tab:mechanism_improvements)",
        "Families are tuned each in its own way, so differences describe and do not identify causes. "
        "Empty until all three have run.",
        families,
    ),
    Exhibit(
        table(
            "horizon",
            "Mean SMAPE by weeks ahead of the representative models.",
            OUTCOME, MODEL, LABEL, Column("horizon", "VARCHAR", "1q, 2q, 3q or full"),
            Column("weeks", "INTEGER", "weeks after the origin"), FIRMS, MEAN, SD,
        ),
        "Figure: Forecast Accuracy Across Projection Horizons (fig:hetero_horizon)",
        "Each horizon holds all weeks from the first.",
        horizons,
    ),
    Exhibit(
        table(
            "industry",
            "Mean total-sales SMAPE by industry.",
            Column("industry", "VARCHAR", "industry as given, (none) for firms without one"),
            MODEL, LABEL, FIRMS, MEAN, number("se", "standard error; NULL for one firm"),
        ),
        "Figure: Average Total-Sales Forecast Error by Industry (fig:hetero_industry_sales)",
        "Industries are ordered by the reference's error.",
        industries,
    ),
)  # fmt: skip
