"""Tests of the score: win rates by tercile, the five tests of the paper's table, and each measure's association."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportions_ztest

from cbmt_core.arrays import Floats
from cbmt_core.diagnostics.comovement.association import (
    Estimate,
    NotEstimable,
    Sample,
    linear_probability,
    logit,
    sample_of,
)
from cbmt_core.diagnostics.comovement.battery import MEASURES
from cbmt_core.diagnostics.comovement.score import LIMITS, WINSORISED
from cbmt_core.evaluation.paired import RESAMPLES, SEED, bootstrap_means

__all__ = ["TERCILES", "column_results", "five_tests", "placebo", "tercile_rates", "terciles"]

TERCILES = ("low", "medium", "high")
SHUFFLES = 1000
LEAST_TERCILE = 10
FDR = 0.10


def terciles(score: pd.Series) -> pd.Series:
    """Low, medium or high by rank, ties in the order of firms; firms without a score are left out."""
    rank = score.dropna().rank(method="first")
    code = (3 * (rank.to_numpy(float) - 1) // max(len(rank), 1)).astype(np.int64)
    return pd.Series(np.array(TERCILES, dtype=object)[code], rank.index, name="tercile")


def tercile_rates(
    score: pd.Series, wins: pd.Series, *, resamples: int = RESAMPLES, seed: int = SEED
) -> pd.DataFrame:
    """Joint-model win rate by tercile with a 95 % bootstrap interval (Figure "Joint-Model Win Rate by
    Cross-Metric Co-Movement Tercile"): tercile, firms, wins, rate, low, high, note."""
    known = pd.DataFrame({"score": score, "wins": wins.astype(float)}).dropna().sort_index()
    group = terciles(known["score"])
    rows = []
    for name in TERCILES:
        y = known.loc[group.index[group == name], "wins"].to_numpy(float)
        low, high = bootstrap_means(y[:, None], resamples=resamples, seed=seed)
        rate = float(y.mean()) if len(y) else float("nan")
        note = "" if len(y) >= LEAST_TERCILE else f"{len(y)} firms; {LEAST_TERCILE} needed for an interval"
        rows.append((name, len(y), int(y.sum()), rate, low[0], high[0], note))
    return pd.DataFrame(rows, columns=["tercile", "firms", "wins", "rate", "low", "high", "note"])


def five_tests(
    score: pd.Series,
    wins: pd.Series,
    controls: pd.DataFrame,
    industry: pd.Series,
    *,
    shuffles: int = SHUFFLES,
    seed: int = SEED,
) -> pd.DataFrame:
    """Table "Cross-Metric Co-Movement and Joint-Model Performance", a row a test.

    `score`, `wins` (True where the joint model errs less; NaN unknown), `controls` (scale, dispersion) and `industry`
    are indexed by firm. Estimates are: tercile, difference of win rates in points; linear models, change of the win
    probability for one standard deviation; logit, odds ratio; placebo, the logit's coefficient. `se` belongs to the
    estimate (the logit's to its logarithm, the placebo's is the spread of the shuffled coefficients), `low` and
    `high` are its 95 % interval. A test with too few firms has NaN, and a note that says what is needed.
    """
    controlled = sample_of(score, wins, controls, industry)
    varied = sample_of(score, wins, controls, industry, both_outcomes=True)
    tests: list[tuple[str, str, Callable[[], dict[str, float]]]] = [
        ("tercile", "high vs. low tercile, two-sided", lambda: _tercile_test(score, wins)),
        ("lpm", "win ~ score", lambda: _linear(sample_of(score, wins))),
        ("lpm_controls", "win ~ score + scale + dispersion + industry", lambda: _linear(controlled)),
        ("logit", "odds of a win, same controls", lambda: _odds(varied)),
        ("placebo", f"{shuffles} shuffles of the score, same logit", lambda: placebo(varied, shuffles, seed)),
    ]
    rows = [_row(*test) for test in tests]
    if left_out := controlled.n - varied.n:
        for row in rows[3:]:
            row["note"] = f"{row['note']}; ".removeprefix("; ") + (
                f"{left_out} firms left out whose industries only win or only lose"
            )
    return pd.DataFrame(rows)


def _row(name: str, specification: str, run: Callable[[], dict[str, float]]) -> dict[str, object]:
    blank = dict.fromkeys(("estimate", "se", "low", "high", "p"), float("nan"))
    try:
        figures, note = run(), ""
    except NotEstimable as trouble:
        figures, note = {"firms": trouble.n}, str(trouble)
    firms = int(figures.pop("firms"))
    return {
        "test": name,
        "specification": specification,
        "firms": firms,
        **{**blank, **figures},
        "note": note,
    }


def _tercile_test(score: pd.Series, wins: pd.Series) -> dict[str, float]:
    """Two-proportion z test, variance pooled."""
    rates = tercile_rates(score, wins, resamples=0).set_index("tercile")
    n, k = rates["firms"][["high", "low"]].to_numpy(), rates["wins"][["high", "low"]].to_numpy()
    total = int(rates["firms"].sum())
    if n.min() < LEAST_TERCILE:
        raise NotEstimable(total, f"{total} firms; {3 * LEAST_TERCILE} needed, {LEAST_TERCILE} a tercile")
    if k.sum() in (0, n.sum()):
        raise NotEstimable(total, "wins and losses are needed in the outer terciles; all came out alike")
    share = k / n
    difference = 100 * (share[0] - share[1])
    se = 100 * float(np.sqrt((share * (1 - share) / n).sum()))
    p = float(proportions_ztest(k, n)[1])
    return {"firms": total, **_interval(Estimate(total, float(difference), se, p))}


def _interval(e: Estimate) -> dict[str, float]:
    low, high = e.interval
    return {"estimate": e.coefficient, "se": e.se, "low": low, "high": high, "p": e.p}


def _linear(sample: Sample) -> dict[str, float]:
    return {"firms": sample.n, **_interval(linear_probability(sample))}


def _odds(sample: Sample) -> dict[str, float]:
    e = logit(sample)
    low, high = (float(np.exp(side)) for side in e.interval)
    return {
        "firms": e.n,
        "estimate": float(np.exp(e.coefficient)),
        "se": e.se,
        "low": low,
        "high": high,
        "p": e.p,
    }


def placebo(sample: Sample, shuffles: int, seed: int) -> dict[str, float]:
    """Permutation test: the logit's coefficient against those with the scores shuffled among firms.

    p = (1 + shuffles at least as far from zero) / (1 + shuffles) (Phipson and Smyth 2010), so it is never 0.
    """
    observed = logit(sample).coefficient
    rng = np.random.default_rng(seed)
    score = sample.X[:, 0]
    drawn = np.array(list(_shuffled(sample, (rng.permutation(score) for _ in range(shuffles)))))
    if len(drawn) < shuffles / 2:
        raise NotEstimable(sample.n, "the logit rarely converges on shuffled scores")
    p = float((1 + (np.abs(drawn) >= abs(observed)).sum()) / (1 + len(drawn)))
    return {"firms": sample.n, "estimate": observed, "se": float(drawn.std(ddof=1)), "p": p}


def _shuffled(sample: Sample, scores: Iterator[Floats]) -> Iterator[float]:
    for score in scores:
        try:
            yield logit(sample.with_score(score)).coefficient
        except NotEstimable:
            continue


def column_results(
    measures: pd.DataFrame, wins: pd.Series, controls: pd.DataFrame, industry: pd.Series
) -> pd.DataFrame:
    """Association of each measure, in standard deviations, with a win of the joint model: the controlled
    logit of the score, column by column, with Benjamini-Hochberg q values (Web App. "Additional Checks").

    Columns: measure, group, family, firms, coefficient, se, odds_ratio, p, q, survives (q < 0.10), note.
    Firms without the measure are left out of its row; tightness is winsorised as in the score.
    """
    rows = []
    for name, measure in MEASURES.items():
        row: dict[str, object] = {"measure": name, "group": measure.group, "family": measure.family}
        try:
            sample = sample_of(_standard(name, measures[name]), wins, controls, industry, both_outcomes=True)
            e = logit(sample)
            row |= {"firms": e.n, "coefficient": e.coefficient, "se": e.se, "p": e.p, "note": ""}
        except NotEstimable as trouble:
            row |= {
                "firms": trouble.n,
                "coefficient": np.nan,
                "se": np.nan,
                "p": np.nan,
                "note": str(trouble),
            }
        rows.append(row)
    frame = pd.DataFrame(rows)
    known = frame["p"].notna()
    frame["q"] = np.nan
    if known.any():
        frame.loc[known, "q"] = multipletests(frame.loc[known, "p"], method="fdr_bh")[1]
    frame["odds_ratio"] = np.exp(frame["coefficient"].astype(float))
    frame["survives"] = frame["q"] < FDR
    order = [
        "measure",
        "group",
        "family",
        "firms",
        "coefficient",
        "se",
        "odds_ratio",
        "p",
        "q",
        "survives",
        "note",
    ]
    return frame[order]


def _standard(name: str, column: pd.Series) -> pd.Series:
    x = column.astype(float)
    if name == WINSORISED:
        x = x.clip(*x.quantile(list(LIMITS)))
    spread = x.std(ddof=0)
    return (x - x.mean()) / spread if spread > 0 else x * np.nan
