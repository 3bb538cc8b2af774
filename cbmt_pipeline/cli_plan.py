"""`cbmt scenario`, `cbmt target` and `cbmt value`: what if, what must happen, and what customers are worth."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from cbmt_core.errors import CbmtError
from cbmt_core.names import UnknownFirm
from cbmt_core.scenarios.definition import (
    BOTH_REPEATS,
    DRIVER_LABELS,
    DRIVER_NAMES,
    SCENARIO_DRIVERS,
    UNITS,
)
from cbmt_pipeline.progress import console
from cbmt_pipeline.project import Project

__all__ = ["scenario", "target", "value"]

WIDTH = 130
"""Columns of a table: numbers are never cut off, whatever the terminal."""
LEVEL = "80 % range"
SOURCES = {
    "sales_change": "change in sales",
    "order_volume": "repeat orders of the existing base",
    "spend_per_order": "spend per order",
    "net_replenishment": "net customer-base replenishment",
}
"""The bridge's parts, named as `cbmt forecast` names them."""
OPTIONS: dict[str, str] = {
    **{
        driver: f"{DRIVER_NAMES[driver].capitalize()}: -10%, x1.2, or =N {UNITS[driver]}."
        for driver in SCENARIO_DRIVERS
    },
    BOTH_REPEATS: "Repeat orders of existing and of new customers.",
}
"""Option of each change -> its help."""


def _changes(command: Callable[..., None]) -> Callable[..., None]:
    for name, text in reversed(OPTIONS.items()):
        command = click.option(_flag(name), name, metavar="CHANGE", help=text)(command)
    return command


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@click.command()
@click.argument("firm")
@_changes
@click.option(
    "--from", "first", metavar="DAY", help="Where changes begin: 2020-06-14 or 2020-06.  [default: now]"
)
@click.option("--to", "last", metavar="DAY", help="Where they end.  [default: with the forecast]")
@click.option(
    "--ramp", default=0, show_default=True, help="Weeks over which changes grow to their full size."
)
@click.pass_obj
def scenario(
    project: Project, /, firm: str, first: str | None, last: str | None, ramp: int, **changes: str | None
) -> None:
    """Print what a firm's next year would be with other drivers, on the same draws as its forecast.

    Several drivers may change at once; new cohorts follow acquisition. Existing customers are those acquired up to the
    last whole week. A change may have dates of its own. To keep a scenario, write it as [scenario.NAME] into
    cbmt.toml: `cbmt run` then makes it for all firms, and puts it on the page.

    \b
        cbmt scenario Fennosk --acquisition -10% --from 2020-06 --aov +3%
        cbmt scenario Fennosk --acquisition "-10% from 2020-06 to 2020-08 over 4 weeks" --repeat-new +5%
    """
    from cbmt_core.report.words import weeks_ahead
    from cbmt_core.scenarios import Scenario, baseline_of, outcome_of
    from cbmt_core.scenarios.outcome import interval

    stated = {name: text for name, text in changes.items() if text is not None}
    if not stated:
        raise click.UsageError(f"state at least one change: {', '.join(map(_flag, OPTIONS))}")
    wanted = Scenario.of("scenario", stated, first=first, last=last, ramp=ramp)
    panel, draws, model, currency, past = _planned(project, firm)
    weeks = draws.centre.weeks
    if not wanted.weeks_changed(weeks):
        raise CbmtError(
            f"the scenario changes no week of the forecast, which runs from {weeks[0]} to {weeks[-1]}: "
            f"{wanted.description}"
        )
    baseline = baseline_of(draws)
    changed, before = outcome_of(baseline, wanted), baseline.outcome
    console.print(f"{panel.firm}: {wanted.description}", markup=False)
    console.print(
        f"{weeks_ahead(len(weeks), panel.origin)}, by {model}; {wanted.weeks_changed(weeks)} weeks changed"
    )
    table = _table("", f"sales, {currency}", LEVEL, "baseline", LEVEL, "difference", LEVEL)
    spans = [slice(k, k + 13) for k in range(0, len(weeks), 13)]
    for span in [*spans, slice(0, len(weeks))]:
        whole = span.stop - span.start == len(weeks)
        sums = [one.draws.sales[:, span].sum(axis=1) for one in (changed, before)]
        middle = [float(one.centre.sales[0, span].sum()) for one in (changed, before)]
        table.add_row(
            "year" if whole else f"from {weeks[span.start]}",
            f"{middle[0]:,.0f}", _span(interval(sums[0])), f"{middle[1]:,.0f}", _span(interval(sums[1])),
            f"{middle[0] - middle[1]:+,.0f}", _span(interval(sums[0] - sums[1]), "+"),
            style="bold" if whole else None,
        )  # fmt: skip
    _print(table)
    if past is None:
        console.print("no sources of the change: fewer than 52 weeks are observed")
        return
    table = _table("sources of the change", f"scenario, {currency}", LEVEL, "baseline", "difference")
    bridges = changed.bridge(past), before.bridge(past)
    for name, (amount, many) in bridges[0].items():
        other = bridges[1][name][0]
        table.add_row(
            SOURCES[name],
            f"{amount:+,.0f}",
            _span(interval(many), "+"),
            f"{other:+,.0f}",
            f"{amount - other:+,.0f}",
        )
    _print(table)


@click.command()
@click.argument("firm")
@click.option("--sales", required=True, help="Sales of the 52 weeks ahead to reach: 9M, 850K or 9000000.")
@click.option("--probability", default="80%", show_default=True, help="With which they should be reached.")
@click.option("--from", "first", metavar="DAY", help="From when on drivers can be moved.  [default: now]")
@click.pass_obj
def target(project: Project, firm: str, sales: str, probability: str, first: str | None) -> None:
    """Print how likely a firm is to reach sales, and how far each driver must move for it.

    \b
        cbmt target Fennosk --sales 9M --probability 80%
    """
    from cbmt_core.report.plan_words import chance
    from cbmt_core.report.words import weeks_ahead
    from cbmt_core.scenarios import baseline_of, moves_needed, parse_day
    from cbmt_core.scenarios import probability as share_of
    from cbmt_core.scenarios.outcome import interval

    wanted, share = _amount(sales), _share(probability)
    panel, draws, model, currency, _ = _planned(project, firm)
    outcome = baseline_of(draws).outcome
    console.print(
        f"{panel.firm}: {outcome.total:,.0f} {currency} are forecast for "
        f"{weeks_ahead(draws.horizon, panel.origin)} by {model} ({LEVEL} {_span(interval(outcome.totals))})",
        markup=False,
    )
    console.print(
        f"{wanted:,.0f} are reached with {chance(share_of(outcome.totals, wanted), ' %')} as things stand"
    )
    day = parse_day(first) if first else None
    when = f"from {day} on" if day else "in every week"
    table = _table(f"for {100 * share:.0f} %, {when}", "must differ from its forecast by")
    for move in moves_needed(draws, wanted, share, first=day):
        table.add_row(DRIVER_LABELS[move.driver], _move(move.change))
    _print(table)


def _move(change: float | None) -> str:
    """How far a driver must differ from its forecast, in percent; None where no factor that was tried suffices."""
    if change is None:
        return "ten times it does not suffice"
    return "reached even without it" if change <= -100 else f"{change:+.1f} %"


@click.command()
@click.argument("firm")
@click.pass_obj
def value(project: Project, firm: str) -> None:
    """Print what a firm's customers are worth: today's, those to come, and per customer by age.

    Margin, discount rate, horizon and acquisition spend are stated under [value] in cbmt.toml. Reads what `cbmt run`
    published.
    """
    from cbmt_core.report.words import weeks_ahead
    from cbmt_core.timeline import SEASON

    name, currency = _firm(project, firm)
    with _open(project) as con:
        newest = "origin = (SELECT max(origin) FROM customer_base_value WHERE firm = $firm) AND firm = $firm"
        parts = con.execute(f"SELECT * FROM customer_base_value WHERE {newest}", {"firm": name}).df()
        if parts.empty:
            raise CbmtError(
                f"{name} has no value on record: its forecast has no draws, or `cbmt run` has not made them"
            )
        ages = con.execute(
            f"SELECT * FROM customer_value WHERE {newest} ORDER BY acquired_in, age_days", {"firm": name}
        ).df()
        cost = con.execute(
            f"SELECT * FROM acquisition_return WHERE {newest} ORDER BY acquired_in", {"firm": name}
        ).df()
    one = parts.iloc[0]
    ahead = weeks_ahead(int(one["horizon_weeks"]), one["origin"].date())
    console.print(
        f"{name}: {ahead}, "
        f"margin {100 * one['margin']:.0f} % of sales, discounted at {100 * one['discount_rate']:.0f} % a year",
        markup=False,
    )
    labels = {
        "existing": "customers of today",
        "to_come": "customers to come",
        "total": "together",
        "tail": f"{one['tail_years']} years beyond, in no total",
    }
    table = _table("", "customers", f"sales, {currency}", "value", LEVEL, "value per customer")
    for part, label in labels.items():
        row = parts.set_index("part").loc[part]
        if row["value"] != row["value"]:
            needs = "two years of weeks" if one["horizon_weeks"] >= SEASON else "a horizon of a year"
            table.add_row(f"{label}: needs {needs}", *["-"] * 5)
            continue
        table.add_row(
            label, f"{row['customers']:,.0f}", f"{row['sales']:,.0f}", f"{row['value']:,.0f}",
            f"{row['value_low']:,.0f} - {row['value_high']:,.0f}", f"{row['value'] / row['customers']:,.2f}",
        )  # fmt: skip
    _print(table)
    days = sorted(ages["age_days"].unique())
    table = _table("value per customer, acquired in", "customers", *(f"{day} days" for day in days))
    for quarter, rows in ages.groupby("acquired_in"):
        cells = {row["age_days"]: row for row in rows.to_dict("records")}
        texts = [
            f"{cells[day]['value_per_customer']:,.2f}{'*' if cells[day]['source'] == 'forecast' else ''}"
            if day in cells
            else "-"
            for day in days
        ]
        table.add_row(f"{quarter:%Y} Q{quarter.quarter}", f"{rows['customers'].iloc[0]:,.0f}", *texts)
    _print(table)
    console.print("* some of it forecast; cumulative since the first order, not discounted", markup=False)
    if len(cost):
        table = _table(
            "acquired in", "customers", "spend", "CAC", "LTV (52 weeks)", "LTV / CAC", "payback, weeks"
        )
        for row in cost.to_dict("records"):
            numbers = [row["spend"], row["cac"], row["ltv"], row["ltv_cac"], row["payback_weeks"]]
            digits = (0, 2, 2, 2, 0)
            texts = ["-" if n != n else f"{n:,.{d}f}" for n, d in zip(numbers, digits, strict=True)]
            quarter = row["acquired_in"]
            table.add_row(f"{quarter:%Y} Q{quarter.quarter}", f"{row['customers']:,.0f}", *texts)
        _print(table)


def _open(project: Project) -> Any:
    import duckdb

    if not project.warehouse.exists():
        raise CbmtError(f"nothing was published in {project.data} yet; run `cbmt run` first")
    return duckdb.connect(str(project.warehouse), read_only=True)


def _firm(project: Project, firm: str) -> tuple[str, str]:
    """Name and currency of the firm that was asked for."""
    with _open(project) as con:
        known = con.execute("SELECT firm, slug, currency FROM firm ORDER BY firm").fetchall()
    for name, slug, currency in known:
        if firm in (name, slug):
            return name, currency
    raise UnknownFirm(firm, [row[0] for row in known])


def _planned(project: Project, firm: str) -> tuple[Any, Any, str, str, Any]:
    """Panel up to the origin, draws, model, currency and last year of a firm's newest live forecast."""
    from cbmt_core.bands import read_draws
    from cbmt_core.scenarios.tables import past_year
    from cbmt_core.stored_panel import read_panel

    name, currency = _firm(project, firm)
    with _open(project) as con:
        drawn = con.execute(
            "FROM forecast_draw WHERE firm = $firm AND purpose = 'live' AND origin = (SELECT max(origin) "
            "FROM forecast_choice WHERE firm = $firm AND purpose = 'live')",
            {"firm": name},
        ).df()
        if drawn.empty or drawn["acquired"].isna().any():
            raise CbmtError(
                f"{name} has no draws of its drivers; `cbmt run` makes them with its live forecast"
            )
        model, origin = str(drawn["model"].iloc[0]), drawn["origin"].iloc[0].date()
        cells = con.execute(
            "FROM forecast_cohort_week WHERE firm = ? AND model = ? AND origin = ? AND purpose = 'live'",
            [name, model, origin],
        ).df()
        panel = read_panel(con, name).until(origin)
        past = past_year(con, "cohort_week", name, origin)
    return panel, read_draws(drawn, cells, origin), model, currency, past


def _amount(text: str) -> float:
    found = re.fullmatch(r"([\d.,]+)\s*([KMB]?)", text.strip(), re.IGNORECASE)
    try:
        if not found:
            raise ValueError
        return float(found[1].replace(",", "")) * {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9}[found[2].upper()]
    except ValueError:
        raise click.UsageError(f"--sales takes a number such as 9M, 850K or 9000000, not {text!r}") from None


def _share(text: str) -> float:
    try:
        number = float(text.strip().rstrip("%"))
    except ValueError:
        number = -1.0
    share = number / 100 if text.strip().endswith("%") or number > 1 else number
    if not 0 < share < 1:
        raise click.UsageError(f"--probability lies between 0 and 100 %, such as 80%, not {text!r}")
    return share


def _table(*columns: str) -> Table:
    table = Table(*columns, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    return table


def _print(table: Table) -> None:
    Console(width=max(console.width, WIDTH), highlight=False).print(table)


def _span(ends: Sequence[Any], sign: str = "") -> str:
    low, high = (float(end) for end in ends)
    return f"{low:{sign},.0f} to {high:{sign},.0f}"
