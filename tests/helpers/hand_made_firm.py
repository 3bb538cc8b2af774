"""A small firm as a list of single orders, and the panel counted from it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from cbmt_core.design import StudyDesign
from cbmt_core.panel import LEFT_CENSORED, CustomerHistory, FirmPanel

WEEKS = 111
HOLDOUT = 13


@dataclass(frozen=True)
class Order:
    customer: int
    birth: int
    """Week of the customer's first order; -1 if that was before the first week."""
    week: int
    amount: float


def design() -> StudyDesign:
    first = date(2016, 1, 3)
    return StudyDesign(
        observed_from=first,
        first_week=first,
        washout_weeks=52,
        training_weeks=WEEKS - 20,
        validation_weeks=20,
        holdout_weeks=HOLDOUT,
        observed_to=first + timedelta(days=7 * (52 + WEEKS + HOLDOUT) - 1),
    )


def hand_made_orders() -> list[Order]:
    """Every new customer orders at birth; later orders come and go with the season and a change of level."""
    rng = np.random.default_rng(4)
    orders, customer = [], 0
    for birth in range(-1, WEEKS + HOLDOUT):
        for _ in range(30 if birth < 0 else rng.integers(0, 7)):
            customer += 1
            loyal = rng.gamma(1.5, 0.1)
            for week in range(max(birth, 0), WEEKS + HOLDOUT):
                season = 1 + 0.5 * np.sin(week / 8) + (week > 60)
                count = rng.poisson(loyal * season) + (week == birth)
                orders += [
                    Order(customer, birth, week, float(rng.gamma(4, 10) + week / 4)) for _ in range(count)
                ]
    return orders


def panel_of(orders: list[Order]) -> FirmPanel:
    members: dict[int, set[int]] = defaultdict(set)
    for order in orders:
        members[order.birth].add(order.customer)
    births = sorted(members)
    weeks = WEEKS + HOLDOUT
    row = {birth: k for k, birth in enumerate(births)}
    count, sales = np.zeros((len(births), weeks)), np.zeros((len(births), weeks))
    for order in orders:
        count[row[order.birth], order.week] += 1
        sales[row[order.birth], order.week] += order.amount
    size = np.array([float(len(members[birth])) for birth in births])
    birth = np.array(births)
    t = np.arange(weeks)
    alive, first = t >= birth[:, None], t == birth[:, None]
    acquired = np.zeros(weeks)
    acquired[birth[birth >= 0]] = size[birth >= 0]
    cohort = {order.customer: row[order.birth] for order in orders}
    people = sorted(cohort)
    by_customer = Counter(order.customer for order in orders)
    return FirmPanel(
        firm="hand-made",
        design=design(),
        weeks=design().study.dates(),
        A=acquired,
        S=sales.sum(axis=0),
        size=size,
        birth=np.where(birth < 0, LEFT_CENSORED, birth),
        R=np.where(alive, (count - size[:, None] * first) / size[:, None], np.nan),
        V=np.where(count > 0, sales / np.maximum(count, 1), np.nan),
        Y=np.where(alive, sales, np.nan),
        customers=CustomerHistory(
            cohort=np.array([cohort[c] for c in people], dtype=np.int32),
            start=np.cumsum([0, *(by_customer[c] for c in people)]),
            week=np.array(
                [o.week for o in sorted(orders, key=lambda o: (o.customer, o.week))], dtype=np.int16
            ),
        ),
    )
