"""Exhibits without data: the benchmarks, the candidates of `direct`, related studies, the algorithm."""

from __future__ import annotations

import pandas as pd

from cbmt_core.exhibits.evidence import Evidence
from cbmt_core.exhibits.exhibit import LABEL, MODEL, Exhibit, table
from cbmt_core.exhibits.models import BENCHMARKS, LABELS
from cbmt_core.schema import Column

__all__ = ["EXHIBITS"]

PROCESSES = {
    "gls": ("logistic substitution curve", "regression", "regression"),
    "lmp": ("Bass diffusion with attrition", "regression", "regression"),
    "ssw": ("Bass diffusion with retention", "regression", "regression"),
    "wg_pnbd": ("Weibull-Gamma", "Pareto/NBD", "gamma regression"),
    "wg_pnbd_e": ("Weibull-Gamma with covariates", "Pareto/NBD with covariates", "gamma regression"),
    "lstm": ("LSTM", "LSTM", "LSTM"),
    "rf": ("random forest", "random forest", "random forest"),
    "xgb": ("gradient-boosted trees", "gradient-boosted trees", "gradient-boosted trees"),
}
"""How each family of benchmarks models acquisition, ROPC and AOV."""

DETAILS = {
    "v1": "aggregate weeks, no covariates",
    "v2": "aggregate weeks, months",
    "v3": "cohort weeks, months",
    "fp": "cohorts fully pooled",
    "pp": "cohorts partially pooled",
}
LMP_V2 = "cohort weeks, no covariates"

STUDIES = (
    ("customers to firm value", "Blattberg and Deighton 1996", "strategic", "adoption, churn", "conceptual"),
    (
        "customers to firm value",
        "Rust, Lemon and Zeithaml 2004",
        "strategic",
        "adoption, churn, spend",
        "4 firms",
    ),
    (
        "customers to firm value",
        "Gupta, Lehmann and Stuart 2004",
        "parametric",
        "adoption, churn, spend",
        "5 firms",
    ),
    (
        "customers to firm value",
        "Schulze, Skiera and Wiesel 2012",
        "parametric",
        "adoption, churn, spend",
        "2 firms",
    ),
    (
        "customers to firm value",
        "McCarthy, Fader and Hardie 2017",
        "parametric",
        "adoption, churn, spend",
        "2 firms",
    ),
    (
        "customers to firm value",
        "McCarthy and Fader 2018",
        "parametric",
        "adoption, purchase, spend",
        "2 firms",
    ),
    ("acquisition and adoption", "Bass 1969", "parametric", "adoption", "11 products"),
    (
        "acquisition and adoption",
        "Norton and Bass 1987",
        "parametric",
        "adoption, substitution",
        "3 products",
    ),
    ("acquisition and adoption", "Bass, Krishnan and Jain 1994", "parametric", "adoption", "11 products"),
    ("purchases", "Schmittlein, Morrison and Colombo 1987", "parametric", "purchase", "conceptual"),
    ("purchases", "Fader, Hardie and Lee 2005", "parametric", "purchase", "1 cohort"),
    ("purchases", "Schweidel and Knox 2013", "parametric", "purchase", "1 cohort"),
    ("purchases", "Braun, Schweidel and Stein 2015", "parametric", "purchase", "4 cohorts"),
    ("purchases", "Platzer and Reutterer 2016", "parametric", "purchase", "6 cohorts"),
    ("purchases", "Dew and Ansari 2018", "nonparametric", "purchase", "2 cohorts"),
    ("purchases", "Bachmann, Meierer and Naef 2021", "parametric", "purchase", "3 cohorts"),
    ("purchases", "Valendin, Reutterer, Platzer and Kalcher 2022", "nonparametric", "purchase", "8 cohorts"),
    ("spend", "Fader, Hardie and Lee 2005", "parametric", "spend", "1 cohort"),
    ("several behaviours", "Schweidel, Fader and Bradlow 2008", "parametric", "adoption, churn", "1 firm"),
    ("several behaviours", "Netzer, Lattin and Srinivasan 2008", "parametric", "purchase, spend", "1 firm"),
    ("several behaviours", "Singh, Borle and Jain 2009", "parametric", "purchase, spend", "1 cohort"),
    ("several behaviours", "Ascarza and Hardie 2013", "parametric", "usage, churn", "1 cohort"),
    ("this model", "CBMT", "nonparametric", "adoption, purchase, spend", "966 firms"),
)
"""Topic, study, kind of model, behaviours modelled, firms or cohorts studied."""

ALGORITHM = (
    (
        "start",
        "Take the last 20 weeks of acquisition, ROPC, AOV and sales, scaled as in calibration.",
        "Sequences.of",
    ),
    (
        "each week",
        "Build the window of every cohort born so far, the week's own new one included.",
        "Sequences.windows",
    ),
    ("each week", "Encode each window into its shared representation.", "Network.forward"),
    ("each week", "Forecast acquisition, ROPC, AOV and sales of the week by the four heads.", "heads"),
    (
        "each week",
        "Average acquisition and sales over the cohorts' windows: both are the week's own.",
        "walk_forward",
    ),
    (
        "each week",
        "Write the forecasts into the history that the next week's windows are cut from.",
        "Sequences.write",
    ),
    ("end", "Size a cohort as observed, or by the acquisition forecast of its birth week.", "compose"),
    (
        "end",
        "Multiply size, orders per customer and order value into the sales of each cohort and week.",
        "compose",
    ),
    ("end", "Add up the cohorts of each week; the auxiliary sales forecast is not reported.", "compose"),
)
"""When a step runs, what it does, and the function it lives in."""


def benchmarks(evidence: Evidence) -> pd.DataFrame:
    rows = []
    for model in BENCHMARKS:
        family = max((name for name in PROCESSES if model.startswith(name)), key=len)
        variant = model[len(family) :].strip("_")
        acquisition, ropc, aov = PROCESSES[family]
        detail = LMP_V2 if model == "lmp_v2" else DETAILS.get(variant, "cohort windows of 20 weeks")
        rows.append((model, LABELS[model], acquisition, ropc, aov, detail))
    return pd.DataFrame(rows, columns=["model", "label", "acquisition", "ropc", "aov", "variant"])


def candidates(evidence: Evidence) -> pd.DataFrame:
    from cbmt_core.models.neural.direct import CANDIDATES

    rows = [
        (n, c.weeks, c.rate, c.width, c.feed_forward, c.encoder, c.decoder, c.dropout)
        for n, c in CANDIDATES.items()
    ]
    names = [
        "candidate",
        "weeks",
        "rate",
        "width",
        "feed_forward",
        "encoder_layers",
        "decoder_layers",
        "dropout",
    ]
    return pd.DataFrame(rows, columns=names)


def studies(evidence: Evidence) -> pd.DataFrame:
    frame = pd.DataFrame(STUDIES, columns=["topic", "study", "approach", "behaviours", "setting"])
    return frame.assign(revenue_in_estimation=frame["study"] == "CBMT")


def algorithm(evidence: Evidence) -> pd.DataFrame:
    return pd.DataFrame(ALGORITHM, columns=["when", "step", "code"])


EXHIBITS = (
    Exhibit(
        table(
            "benchmark_models",
            "How each of the 15 benchmark variants models the three drivers.",
            MODEL, LABEL,
            Column("acquisition", "VARCHAR", "model of acquisition"),
            Column("ropc", "VARCHAR", "model of repeat orders per customer"),
            Column("aov", "VARCHAR", "model of order value"),
            Column("variant", "VARCHAR", "what the variant is fitted to"),
        ),
        "Table: Benchmark Models (tab:cbcv_benchmark)",
        "The paper's rows are families; here each variant has its own.",
        benchmarks,
    ),
    Exhibit(
        table(
            "direct_candidates",
            "The eight candidates of the model that forecasts total sales alone.",
            Column("candidate", "VARCHAR", "C01 to C08"),
            Column("weeks", "INTEGER", "weeks of the input window"),
            Column("rate", "DOUBLE", "learning rate"),
            Column("width", "INTEGER", "width of the representation"),
            Column("feed_forward", "INTEGER", "width of the feed-forward layers"),
            Column("encoder_layers", "INTEGER", "layers of the encoder"),
            Column("decoder_layers", "INTEGER", "layers of the decoder"),
            Column("dropout", "DOUBLE", "share of units dropped in training"),
        ),
        "Table: Direct Aggregate-Sales Transformer Candidate Grid (tab:wa_direct_sales_grid)",
        "From the code that trains them; four attention heads, batches of 64, gradients clipped at 1.",
        candidates,
    ),
    Exhibit(
        table(
            "related_studies",
            "Studies that the model builds on or is compared with.",
            Column("topic", "VARCHAR", "what the study is about"),
            Column("study", "VARCHAR", "authors and year"),
            Column("approach", "VARCHAR", "strategic, parametric or nonparametric"),
            Column("behaviours", "VARCHAR", "customer behaviours modelled"),
            Column("setting", "VARCHAR", "how many firms, products or cohorts it rests on"),
            Column("revenue_in_estimation", "BOOLEAN", "whether behaviours and revenue both enter the estimation"),
        ),
        "Table: Selected Studies in Related Literature (tab:literature_comparison)",
        "Facts about published work, not a judgement of it.",
        studies,
    ),
    Exhibit(
        table(
            "walk_forward_algorithm",
            "The walk forward, step by step.",
            Column("when", "VARCHAR", "start, each week, or end"),
            Column("step", "VARCHAR", "what is done"),
            Column("code", "VARCHAR", "function of cbmt_core that does it"),
        ),
        "Algorithm: Walk-forward forecasting with customer-base primitives (alg:walk_forward_jm)",
        "The same for every one-step model: networks and trees.",
        algorithm,
    ),
)  # fmt: skip
