"""Tables of the evaluation: errors, comparisons of models, and bridges."""

from __future__ import annotations

from cbmt_core.schema.kinds import (
    FIRM,
    HORIZON,
    INTERVAL,
    MODEL,
    ORIGIN,
    OUTCOME,
    PURPOSE,
    REFERENCE,
    SOURCES,
    Column,
    Table,
)

__all__ = ["COMPARISON_TABLES"]

COMPARISON_TABLES = (
    Table(
        "accuracy",
        "Errors of each model's forecast of each firm over the weeks observed since.",
        ("firm", "model", "origin", "outcome", "horizon"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            OUTCOME,
            HORIZON,
            Column("weeks", "INTEGER", "weeks of the horizon"),
            Column("smape", "DOUBLE", "symmetric mean absolute percentage error, 0 to 200", nullable=True),
            Column(
                "mase",
                "DOUBLE",
                "mean absolute error over that of last week's value; NULL where nothing moved",
                nullable=True,
            ),
        ),
        partitioned=False,
    ),
    Table(
        "accuracy_failure",
        "Firms and models without a complete score, each with the reason.",
        ("firm", "model", "origin"),
        (FIRM, MODEL, ORIGIN, Column("reason", "VARCHAR", "why")),
        partitioned=False,
        schema="diagnostic",
    ),
    Table(
        "accuracy_summary",
        "Models compared across whole firms (no segments), each comparison over the firms all its models have.",
        ("metric", "outcome", "horizon", "industry", "model"),
        (
            Column("metric", "VARCHAR", "smape or mase"),
            OUTCOME,
            HORIZON,
            Column("industry", "VARCHAR", "industry, (none) for firms without one, (all) for all firms"),
            MODEL,
            REFERENCE,
            Column("firms", "INTEGER", "firms compared, the same for every model"),
            Column("mean", "DOUBLE", "mean error"),
            Column("sd", "DOUBLE", "standard deviation across firms; NULL for one firm", nullable=True),
            Column("median", "DOUBLE", "median error"),
            Column("gap", "DOUBLE", "percent by which the reference's mean error is lower", nullable=True),
            Column("median_gap", "DOUBLE", "the same of the median error", nullable=True),
            Column("models_ranked", "INTEGER", "models that forecast all five outcomes"),
            Column("average_rank", "DOUBLE", "mean rank among them, 1 is best", nullable=True),
            Column("first_rank", "DOUBLE", "share of firms where it is best; ties are shared", nullable=True),
            Column("difference", "DOUBLE", "mean of its error minus the reference's", nullable=True),
            Column("difference_low", "DOUBLE", INTERVAL.format("lower"), nullable=True),
            Column("difference_high", "DOUBLE", INTERVAL.format("upper"), nullable=True),
            Column("t_p", "DOUBLE", "p value of the paired t test; NULL below 10 firms", nullable=True),
            Column(
                "wilcoxon_p", "DOUBLE", "p value of the signed-rank test; NULL below 10 firms", nullable=True
            ),
            Column(
                "win_rate", "DOUBLE", "share of firms where it errs less than the reference", nullable=True
            ),
        ),
        partitioned=False,
    ),
    Table(
        "bridge",
        "Change in sales between two windows and its three sources, as it happened and as models forecast it.",
        ("firm", "model", "origin", "purpose", "baseline_first", "target_first"),
        (
            FIRM,
            Column("model", "VARCHAR", "name of the model, or realised for what happened"),
            Column("origin", "DATE", "last week seen; the last target week for what happened"),
            PURPOSE,
            Column("baseline_first", "DATE", "first week of the baseline"),
            Column(
                "baseline_last",
                "DATE",
                "last week of the baseline; cohorts born by then are the existing base",
            ),
            Column("target_first", "DATE", "first week of the target"),
            Column("target_last", "DATE", "last week of the target"),
            Column("repeat_orders_0", "DOUBLE", "repeat orders in the baseline", nullable=True),
            Column("repeat_sales_0", "DOUBLE", "their value", nullable=True),
            Column("repeat_spend_0", "DOUBLE", "value per order", nullable=True),
            Column("initial_sales_0", "DOUBLE", "value of first orders in the baseline", nullable=True),
            Column("baseline_sales", "DOUBLE", "sales of the baseline", nullable=True),
            Column("repeat_orders_1", "DOUBLE", "orders of the existing base in the target", nullable=True),
            Column("repeat_sales_1", "DOUBLE", "their value", nullable=True),
            Column("repeat_spend_1", "DOUBLE", "value per order", nullable=True),
            Column("new_sales_1", "DOUBLE", "target sales of cohorts born after the baseline", nullable=True),
            Column("target_sales", "DOUBLE", "sales of the target", nullable=True),
            *(Column(name, "DOUBLE", meaning, nullable=True) for name, meaning in SOURCES.items()),
            *(
                Column(f"{name}_points", "DOUBLE", f"{name} in percent of baseline sales", nullable=True)
                for name in SOURCES
            ),
            Column(
                "cancellation",
                "DOUBLE",
                "smallest |sum| / sum of |rows| of the repeat sums: 1 without negative rows",
                nullable=True,
            ),
            Column("discrepancy", "DOUBLE", "largest difference of sums that must agree", nullable=True),
            Column("eligible", "BOOLEAN", "whether it can be compared"),
            Column("strict", "BOOLEAN", "whether it also passes the strict rule"),
            Column("reason", "VARCHAR", "why it cannot be compared", nullable=True),
        ),
        partitioned=False,
    ),
    Table(
        "bridge_mae",
        "Mean absolute error of forecast bridges across whole firms, the same firms for every model.",
        ("sample", "contribution", "model"),
        (
            Column("sample", "VARCHAR", "primary, or strict for the sensitivity sample"),
            Column("contribution", "VARCHAR", f"one of {', '.join(SOURCES)}"),
            MODEL,
            REFERENCE,
            Column("firms", "INTEGER", "firms compared, the same for every model"),
            Column("mae_points", "DOUBLE", "mean absolute error in percent of baseline sales"),
            Column(
                "mae_currency", "DOUBLE", "the same in currency; NULL where firms differ in it", nullable=True
            ),
            Column("difference", "DOUBLE", "mae_points minus the reference's", nullable=True),
            Column("difference_low", "DOUBLE", INTERVAL.format("lower"), nullable=True),
            Column("difference_high", "DOUBLE", INTERVAL.format("upper"), nullable=True),
        ),
        partitioned=False,
        schema="diagnostic",
    ),
    Table(
        "bridge_method",
        "Which models' bridges were compared, and why others were not.",
        ("model",),
        (
            MODEL,
            REFERENCE,
            Column("firms", "INTEGER", "firms whose realised and reference bridges are eligible"),
            Column("eligible_firms", "INTEGER", "of these, firms where the model's is eligible too"),
            Column("compared", "BOOLEAN", "whether it was compared"),
            Column("reason", "VARCHAR", "most frequent reasons of the others, with counts", nullable=True),
        ),
        partitioned=False,
        schema="diagnostic",
    ),
)
