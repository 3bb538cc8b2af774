"""The 21 features: each equals its definition worked out from single orders, and survives odd panels."""

import functools
import itertools
import math
import statistics
import time
import warnings
from collections import defaultdict
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from helpers.hand_made_firm import WEEKS, hand_made_orders, panel_of

from cbmt_core.diagnostics.difficulty import FEATURES, features_of

YEAR = 52
ALL_ORDERS = hand_made_orders()
ORDERS = [order for order in ALL_ORDERS if order.week < WEEKS]
PANEL = panel_of(ALL_ORDERS)
SEEN = PANEL.until(PANEL.design.origin)

COHORTS = defaultdict(list)
for order in ORDERS:
    COHORTS[order.birth].append(order)


def by_week(amount, orders=ORDERS, first=0):
    totals = dict.fromkeys(range(first, WEEKS), 0.0)
    for order in orders:
        totals[order.week] += amount(order)
    return totals


SALES = list(by_week(lambda o: o.amount).values())
COUNTS = list(by_week(lambda o: 1).values())
SIZE = {birth: len({o.customer for o in orders}) for birth, orders in COHORTS.items()}


def hhi(values):
    return sum((v / sum(values)) ** 2 for v in values)


def weighted(statistic, age):
    """Size-weighted mean of statistic(cohort's orders, its first week) over cohorts at least `age` weeks old."""
    pairs = [
        (SIZE[birth], statistic(orders, max(birth, 0)))
        for birth, orders in COHORTS.items()
        if WEEKS - max(birth, 0) >= age
    ]
    known = [(w, x) for w, x in pairs if x is not None]
    return sum(w * x for w, x in known) / sum(w for w, _ in known)


def growth(values, start, end):
    return math.log(sum(values[end : end + YEAR]) / sum(values[start : start + YEAR])) * YEAR / (end - start)


def month_of(week):
    return (date(2017, 1, 1) + timedelta(days=7 * week + 3)).month


def r_squared(values, formula):
    """`values` by week; ordinary least squares by statsmodels, with calendar months of Wednesdays."""
    frame = pd.DataFrame({"y": [math.log(v + 1) for v in values.values()], "t": [w / 50 for w in values]})
    frame["month"] = [month_of(w) for w in values]
    return smf.ols(formula, frame).fit().rsquared


def cohort_aov_r2(orders, first):
    sales, count = by_week(lambda o: o.amount, orders, first), by_week(lambda o: 1, orders, first)
    value = {w: sales[w] / count[w] for w in sales if count[w]}
    return r_squared(value, "y ~ t + C(month)") if len(value) >= YEAR else None


def around_line(values):
    t = np.arange(len(values))
    return np.array(values) - np.polyval(np.polyfit(t, values, 1), t)


def correlations(values, lags):
    x = around_line(values)
    return [sum(x[k:] * x[: len(x) - k]) / sum(x * x) for k in range(lags + 1)]


def last_coefficient(r):
    """φ_kk: the last Yule-Walker coefficient of an autoregression of order k."""
    k = len(r) - 1
    return np.linalg.solve([[r[abs(i - j)] for j in range(k)] for i in range(k)], r[1:])[-1]


def month_twelve():
    old = {birth for birth in COHORTS if birth >= 0 and WEEKS - birth >= YEAR}
    active = {o.customer for o in ORDERS if o.birth in old and 48 <= o.week - o.birth <= 51}
    return len(active) / sum(SIZE[birth] for birth in old)


def entropy():
    x = np.array(SALES) - np.mean(SALES)
    t = np.arange(WEEKS)
    power = [abs(sum(x * np.exp(-2j * math.pi * k * t / WEEKS))) ** 2 for k in range(1, WEEKS // 2 + 1)]
    return -sum(p / sum(power) * math.log(p / sum(power)) for p in power) / math.log(len(power))


def fewest_changes(values, shortest=4, most=15):
    """The number of changes with the lowest penalised sum of squares, by trying every number up to `most`."""
    y = [math.log(v + 1) for v in values]
    steps = [b - a for a, b in itertools.pairwise(y)]
    middle = statistics.median(steps)
    sigma = statistics.median(abs(s - middle) for s in steps) / 0.6744897501960817 / math.sqrt(2)

    @functools.cache
    def spread(a, b):
        return statistics.pvariance(y[a:b]) * (b - a)

    best = {end: spread(0, end) for end in range(shortest, len(y) + 1)}
    costs = [best[len(y)]]
    for _ in range(most):
        best = {
            end: min(best[m] + spread(m, end) for m in best if m <= end - shortest)
            for end in range(min(best) + shortest, len(y) + 1)
        }
        costs.append(best[len(y)])
    penalised = [cost + 2 * k * sigma**2 * math.log(len(y)) for k, cost in enumerate(costs)]
    fewest = penalised.index(min(penalised))
    assert 0 < fewest < most
    return fewest


EXPECTED = {
    "total_sales": lambda: sum(o.amount for o in ORDERS),
    "total_orders": lambda: len(ORDERS),
    "sales_hhi": lambda: hhi(SALES),
    "cohort_orders_hhi": lambda: weighted(lambda o, t: hhi(by_week(lambda _: 1, o, t).values()), 13),
    "acquisition_hhi": lambda: hhi([size for birth, size in SIZE.items() if birth >= 0]),
    "cohort_sales_cv": lambda: weighted(
        lambda o, t: (
            statistics.stdev(by_week(lambda x: x.amount, o, t).values())
            / statistics.mean(by_week(lambda x: x.amount, o, t).values())
        ),
        13,
    ),
    "sales_mad": lambda: statistics.median(abs(b - a) for a, b in itertools.pairwise(SALES)),
    "sales_growth": lambda: growth(SALES, 0, WEEKS - YEAR),
    "orders_growth": lambda: growth(COUNTS, 0, WEEKS - YEAR),
    "sales_acceleration": lambda: growth(SALES, 29, WEEKS - YEAR) - growth(SALES, 0, 29),
    "acquisition_intensity": lambda: (
        sum(o.amount for o in ORDERS if o.birth >= 0 and o.week - o.birth < 4 and o.week >= WEEKS - YEAR)
        / sum(SALES[-YEAR:])
    ),
    "active_decay": month_twelve,
    "orders_per_active": lambda: (
        sum(COUNTS[-YEAR:]) / len({o.customer for o in ORDERS if o.week >= WEEKS - YEAR})
    ),
    "sales_acf_1": lambda: correlations(SALES, 1)[1],
    "sales_pacf_4": lambda: last_coefficient(correlations(SALES, 4)),
    "cohort_orders_fit": lambda: weighted(
        lambda o, t: r_squared(by_week(lambda _: 1, o, t), "y ~ t + I(t**2) + I(t**3)"), 13
    ),
    "orders_fit": lambda: r_squared(by_week(lambda _: 1), "y ~ t + I(t**2) + I(t**3) + C(month)"),
    "cohort_aov_fit": lambda: weighted(cohort_aov_r2, YEAR),
    "cohort_size_gini": lambda: (
        sum(abs(a - b) for a, b in itertools.product([s for b, s in SIZE.items() if b >= 0], repeat=2))
        / (2 * sum(b >= 0 for b in SIZE) * sum(s for b, s in SIZE.items() if b >= 0))
    ),
    "sales_entropy": entropy,
    "sales_changepoints": lambda: fewest_changes(SALES),
}


def test_there_are_21_features_in_10_groups():
    assert len(FEATURES) == 21
    assert len({feature.group for feature in FEATURES.values()}) == 10
    assert all(f.name == name and f.formula and f.description for name, f in FEATURES.items())


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_equals_its_definition_on_single_orders(name):
    assert FEATURES[name].of(SEEN) == pytest.approx(EXPECTED[name](), rel=1e-8)


def test_features_know_nothing_after_the_origin():
    later = np.arange(PANEL.n_weeks) >= WEEKS
    factor = np.where(later, 7.0, 1.0)
    other = replace(PANEL, A=PANEL.A * factor, S=PANEL.S * factor, R=PANEL.R * factor, Y=PANEL.Y * factor)
    assert features_of(other.until(other.design.origin)) == features_of(SEEN)
    assert features_of(other) != features_of(PANEL)


@pytest.mark.parametrize("weeks", [1, 2, 5, 9, 14, 40, 52, 60, 66])
def test_short_panels_give_numbers_or_nothing_but_no_trouble(weeks):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = features_of(PANEL.until(PANEL.weeks[weeks - 1].astype(object)))
    assert not any(math.isinf(value) for value in values.values())
    assert math.isnan(values["sales_growth"]) == (weeks < 65)
    assert math.isnan(values["active_decay"]) == (weeks < 52)


def test_a_dead_firm_gives_no_number_that_is_not_one():
    nothing = np.where(SEEN.born, 0.0, np.nan)
    dead = replace(SEEN, S=0 * SEEN.S, A=0 * SEEN.A, Y=nothing, R=nothing, V=np.nan * SEEN.V, customers=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = features_of(dead)
    assert values["total_sales"] == 0
    assert not any(math.isinf(value) for value in values.values())
    assert math.isnan(values["sales_growth"])
    assert math.isnan(values["active_decay"])


def test_a_firm_takes_less_than_a_second():
    started = time.process_time()
    features_of(SEEN)
    assert time.process_time() - started < 1
