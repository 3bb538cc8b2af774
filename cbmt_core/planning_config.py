"""Sections of `cbmt.toml` for planners: scenarios, the plan, and the terms of customer value."""

from __future__ import annotations

from datetime import date
from typing import Any

from pydantic import ConfigDict, Field, create_model, field_validator, model_validator

from cbmt_core.errors import ConfigError
from cbmt_core.operation import Section
from cbmt_core.scenarios.definition import BOTH_REPEATS, SCENARIO_DRIVERS, Scenario
from cbmt_core.timeline import HORIZON
from cbmt_core.value.terms import ValueTerms

__all__ = ["PlanConfig", "ScenarioConfig", "ValueConfig", "check_names"]

Changes = str | tuple[str, ...] | None

RESERVED = ("baseline",)
"""Names of the program's own scenarios."""


class _Section(Section):
    model_config = ConfigDict(populate_by_name=True)


_DriverChanges: Any = create_model(  # type: ignore[call-overload]
    "_DriverChanges",
    __base__=_Section,
    **dict.fromkeys((*SCENARIO_DRIVERS, BOTH_REPEATS), (Changes, None)),
)
"""A section with one setting for each driver."""


class ScenarioConfig(_DriverChanges):  # type: ignore[misc]
    """`[scenario.NAME]`: changes of drivers such as "-10% from 2020-06", several at once."""

    first: date | str | None = Field(default=None, alias="from")
    """Start of changes that do not state one."""
    last: date | str | None = Field(default=None, alias="to")
    ramp_weeks: int = Field(default=0, ge=0, le=HORIZON)
    firms: tuple[str, ...] | None = None
    """Firms it applies to; all unless stated."""

    @model_validator(mode="after")
    def _readable(self) -> ScenarioConfig:
        try:
            found = self.scenario("scenario")
        except ConfigError as error:
            raise ValueError(str(error)) from None
        if not found.changes:
            raise ValueError(f"state at least one change: {', '.join((*SCENARIO_DRIVERS, BOTH_REPEATS))}")
        return self

    def scenario(self, name: str) -> Scenario:
        changes = {driver: getattr(self, driver) for driver in (*SCENARIO_DRIVERS, BOTH_REPEATS)}
        stated = {driver: texts for driver, texts in changes.items() if texts is not None}
        return Scenario.of(name, stated, first=self.first, last=self.last, ramp=self.ramp_weeks)


class PlanConfig(_Section):
    """`[plan]`: planned sales, as one number for the 52 weeks ahead or by month from a file."""

    sales: float | None = Field(default=None, gt=0)
    """Planned sales of the 52 weeks after the last whole week, for a project of one firm."""
    firms: dict[str, float] = Field(default_factory=dict)
    """The same by firm."""
    file: str | None = Field(default=None, min_length=1)
    """CSV with month (2020-06), sales and, for several firms, firm."""
    probability: float = Field(default=0.8, gt=0, lt=1)
    """Wanted probability of reaching the plan; the table `target` says how far drivers must move for it."""

    @model_validator(mode="after")
    def _one_way(self) -> PlanConfig:
        if sum([self.sales is not None, bool(self.firms), self.file is not None]) != 1:
            raise ValueError(
                "state one of sales (a number), firms (a number for each) and file (a CSV by month)"
            )
        return self

    @field_validator("firms")
    @classmethod
    def _positive(cls, value: dict[str, float]) -> dict[str, float]:
        if bad := [name for name, sales in value.items() if not sales > 0]:
            raise ValueError(f"planned sales must be positive: {', '.join(bad)}")
        return value


class ValueConfig(_Section):
    """`[value]`: margin, discount rate and horizon of customer value, and acquisition spend."""

    margin: float = Field(default=1.0, gt=0, le=1)
    discount_rate: float = Field(default=0.1, ge=0, le=1)
    horizon_weeks: int = Field(default=HORIZON, ge=1, le=HORIZON)
    tail_years: int = Field(default=4, ge=1, le=20)
    spend: str | None = Field(default=None, min_length=1)
    """CSV with week, spend and, for several firms, firm."""

    @property
    def terms(self) -> ValueTerms:
        return ValueTerms(self.margin, self.discount_rate, self.horizon_weeks, self.tail_years)


def check_names(scenarios: dict[str, ScenarioConfig]) -> dict[str, ScenarioConfig]:
    """Refuse names that the program uses itself."""
    for name in scenarios:
        if name in RESERVED or any(name.startswith(f"{driver} ") for driver in SCENARIO_DRIVERS):
            raise ValueError(f"a scenario cannot be called {name!r}: that name is the program's own")
    return scenarios
