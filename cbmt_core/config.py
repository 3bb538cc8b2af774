"""The project file `cbmt.toml`: sources of orders, how to read them, dates and models."""

from __future__ import annotations

import codecs
import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, get_args, get_origin

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from cbmt_core.calendar import has_holidays
from cbmt_core.design import StudyDesign
from cbmt_core.errors import ConfigError
from cbmt_core.operation import HistoryConfig, NoticeConfig, ReportConfig, ScheduleConfig, known_zone
from cbmt_core.operation import Section as _Section
from cbmt_core.planning_config import PlanConfig, ScenarioConfig, ValueConfig, check_names
from cbmt_core.timeline import (
    MIN_TRAINING_WEEKS,
    SEASON,
    VALIDATION_WEEKS,
    Origin,
    Timeline,
    choose_washout,
    week_of,
    whole_weeks,
)

__all__ = [
    "PROFILE_NAMES",
    "BandsConfig",
    "CalibrationConfig",
    "DeliveryConfig",
    "DesignConfig",
    "ForecastConfig",
    "NetworksConfig",
    "NoticeConfig",
    "ProfileName",
    "ProjectConfig",
    "QualityConfig",
    "ScheduleConfig",
    "SourceConfig",
    "StudyConfig",
]

READER = "5"
"""Parser version; raise it when files are read differently, so that they are read again."""
SPECIAL_TIME_FORMATS = ("iso", "epoch", "epoch_ms", "excel")
"""Order times that are no strptime format: ISO 8601, seconds or milliseconds since 1970, days since 1899-12-30."""
ProfileName = Literal["smoke", "demo", "quick", "standard", "paper"]
"""Budget of tuning and training."""
PROFILE_NAMES: tuple[str, ...] = get_args(ProfileName)
"""From the smallest budget to the largest."""


ColumnName = Annotated[str, Field(min_length=1)]


class ColumnMap(_Section):
    """The source's names of the columns that the product uses."""

    customer: ColumnName = "customer"
    order_time: ColumnName = "order_time"
    amount: ColumnName = "amount"
    firm: ColumnName | None = "firm"
    order_id: ColumnName | None = None
    industry: ColumnName | None = None
    segment: ColumnName | None = None
    quantity: ColumnName | None = None
    """Units of the line, where the amount is the price of one."""
    discount: ColumnName | None = None
    """Share of the line's price and units that is taken off: 0.1 or 10 %."""
    refunded: ColumnName | None = None
    """Money given back for the order, if the file has a column for it."""
    parent_id: ColumnName | None = None
    """Order that a refund with an id of its own belongs to."""
    currency: ColumnName | None = None
    """Currency of the row; rows in another currency than the source's are set aside."""


class SourceConfig(_Section):
    """One data set: a file, a folder of files, or a table of a DuckDB file."""

    name: str = Field(min_length=1)
    path: str = Field(min_length=1)
    currency: str
    timezone: str
    table: str | None = None
    columns: ColumnMap = ColumnMap()
    firm: str | None = Field(default=None, min_length=1)
    """Name of the only firm, for files without a firm column."""
    order_grain: Literal["order", "day"] = "order"
    refunds: Literal["net", "ignore"] = "net"
    """Whether refunds reduce the orders they belong to, or sales are gross."""
    amount_of: Literal["line", "order"] = "line"
    """Whether the amounts of an order's lines are added up, or each line repeats the amount of the whole order."""
    time_format: str | tuple[str, ...] | None = None
    """strptime formats of the order time, or one of SPECIAL_TIME_FORMATS; the first that fits is used."""
    decimal_separator: Literal[".", ","] = "."
    delimiter: str | None = None
    encoding: str = "utf-8"
    header_line: int = Field(default=1, ge=1, le=1000)
    """Line of a CSV file, or row of a sheet, that names the columns."""
    sheet: str | None = Field(default=None, min_length=1)
    """Sheet of a workbook; the first unless stated."""
    leave_out: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Column -> values of rows that are no sales, such as cancelled orders."""
    refund_where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Column -> values of rows that give money back, whether their amounts have a minus or not."""

    @field_validator("currency")
    @classmethod
    def _iso_code(cls, value: str) -> str:
        if not re.fullmatch("[A-Z]{3}", value):
            raise ValueError(f"{value!r} is no ISO code of a currency; use one such as USD or GBP")
        return value

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: str) -> str:
        try:
            name = codecs.lookup(value).name
            "a".encode(name)
        except (LookupError, ValueError):
            raise ValueError(
                f"files in {value!r} cannot be read; use a name such as utf-8, utf-16, cp1252 or latin-1"
            ) from None
        return "utf-8" if name == "utf-8-sig" else name

    @field_validator("delimiter")
    @classmethod
    def _one_character(cls, value: str | None) -> str | None:
        if value is not None and (len(value) != 1 or value in '"\r\n\0 ' or value.isalnum()):
            raise ValueError(f"{value!r} cannot divide columns; use one character such as ; or a tab")
        return value

    @field_validator("time_format")
    @classmethod
    def _known_format(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        for text in (value,) if isinstance(value, str) else value or ():
            if text not in SPECIAL_TIME_FORMATS and not re.search("%[A-Za-z]", text):
                raise ValueError(
                    f"{text!r} is no format of a time; use one such as '%d/%m/%Y %H:%M', or one of "
                    f"{', '.join(SPECIAL_TIME_FORMATS)}"
                )
        if value == ():
            raise ValueError("name at least one format, or leave the setting out")
        return value

    @field_validator("firm")
    @classmethod
    def _composed(cls, value: str | None) -> str | None:
        """Normalise accents to single characters (NFC), as in names read from files."""
        return None if value is None else unicodedata.normalize("NFC", value).strip() or None

    _zone = field_validator("timezone")(known_zone)

    @model_validator(mode="after")
    def _one_way_to_name_the_firm(self) -> SourceConfig:
        if self.firm is None and self.columns.firm is None:
            raise ValueError("say which column names the firm (columns.firm) or name the only firm (firm)")
        return self

    @property
    def reading_digest(self) -> str:
        """Digest of the reader's version, the source's name and all its settings but the path."""
        text = READER + self.model_dump_json(exclude={"path"})
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class DesignConfig(_Section):
    """Fixed dates of the project; what is not stated follows from the span of the data."""

    first_day: date | None = None
    last_day: date | None = None
    washout_weeks: int | None = Field(default=None, ge=0)
    validation_weeks: int = Field(default=VALIDATION_WEEKS, ge=1)
    holdout_weeks: int | None = Field(default=None, ge=1, le=SEASON)
    country: str = "US"

    @field_validator("country")
    @classmethod
    def _known_country(cls, value: str) -> str:
        if not has_holidays(value):
            raise ValueError(f"no holidays are known for {value!r}; use an ISO code such as US or GB")
        return value

    def timeline(
        self,
        first_day: date,
        last_day: date,
        study: StudyConfig | None = None,
        delivered_to: date | None = None,
    ) -> Timeline:
        """The timeline of data from `first_day` to `last_day`, complete through `delivered_to`. A washout that is not
        stated is chosen as if the data ended with the study, where there is one: otherwise it would grow with new
        weeks and cut off the study's first ones.
        """
        first_day, last_day = self.first_day or first_day, self.last_day or last_day
        complete = min(last_day, delivered_to or last_day)
        washout = self.washout_weeks
        if washout is None and study:
            weeks = whole_weeks(first_day, min(complete, study.last_day))[1]
            washout = choose_washout(weeks, self.validation_weeks, study.holdout_weeks)
        timeline = Timeline.for_span(
            first_day,
            complete,
            washout_weeks=washout,
            validation_weeks=self.validation_weeks,
            holdout_weeks=self.holdout_weeks,
            country=self.country,
        )
        return replace(timeline, observed_to=last_day, delivered_to=delivered_to and complete)


class StudyConfig(_Section):
    """Dates of the study: written when it is first made, so that new weeks do not restart it."""

    origin: date
    """Last week of its calibration."""
    holdout_weeks: int = Field(ge=1, le=SEASON)

    @field_validator("origin")
    @classmethod
    def _a_sunday(cls, value: date) -> date:
        if week_of(value) != value:
            raise ValueError(f"weeks are named by their Sunday: {week_of(value)}, not {value}")
        return value

    @property
    def last_day(self) -> date:
        """Last day of the holdout."""
        return Origin(self.origin, self.holdout_weeks, "study").target.last_day

    def design(self, timeline: Timeline) -> StudyDesign:
        """The study on a timeline that may have been extended since."""
        training = (self.origin - timeline.panel.first).days // 7 + 1 - timeline.validation_weeks
        reason = ""
        if self.last_day > timeline.panel.last_day:
            reason = f"ends after the data's last whole week, {timeline.panel.last}"
        elif training < MIN_TRAINING_WEEKS:
            reason = (
                f"has {max(training, 0)} weeks for training, from {timeline.panel.first} on, and needs "
                f"{MIN_TRAINING_WEEKS} before its {timeline.validation_weeks} for validation"
            )
        if reason:
            raise ConfigError(
                f"the study of cbmt.toml ([study] origin = {self.origin}, holdout_weeks = {self.holdout_weeks}) "
                f"{reason}; move it with `cbmt study --refresh`"
            )
        return StudyDesign.at(timeline, self.origin, self.holdout_weeks)


class ForecastConfig(_Section):
    """Models of the live forecasts and of the backtests."""

    models: tuple[str, ...] = Field(default=("cbmt_plus", "cohort_glm", "seasonal_naive"), min_length=1)
    """The first one is used until backtests favour another; networks use the settings tuned in the study."""


class BandsConfig(_Section):
    """Ranges of forecasts."""

    draws: int = Field(default=500, ge=100, le=10_000)
    """Joint paths of a firm's drivers that bands are quantiles of."""
    keep_draws: int = Field(default=13, ge=1)
    """Number of newest live origins whose draws are kept on disk. Bands and their coverage are kept for all."""


class QualityConfig(_Section):
    """Limits of the data checks: a firm whose data exceed them is not trusted."""

    max_quarantine_share: float = Field(default=0.05, ge=0, le=1)
    """Share of a firm's rows that may be bad. Refunds, rows without a customer, duplicates of another file and rows out
    of the project's dates are set aside but are not bad."""
    max_unusable_share: float = Field(default=0.5, ge=0, le=1)
    """Share of a file's rows that may be bad; beyond it the file is refused."""
    min_customers: int = Field(default=20, ge=1)
    max_silent_weeks: int = Field(default=8, ge=1)
    """Weeks without an order after which a warning is given."""


class DeliveryConfig(_Section):
    """When forecasts move to a new week, and how long late firms are waited for."""

    share: float = Field(default=0.8, gt=0, le=1)
    """Share of firms that must have delivered a week; the others keep their last forecast until they have."""
    stopped_after_weeks: int = Field(default=13, ge=1)
    """Weeks behind half of the firms after which a firm is no longer waited for."""


class NetworksConfig(_Section):
    """Which networks are trained, with which budget, and where their searches are stored."""

    profile: ProfileName = "quick"
    models: tuple[str, ...] | None = None
    """Names of networks; all of them unless stated, none when empty."""
    storage: str | None = Field(default=None, pattern="^[a-z0-9+]+://", repr=False)
    """URL of a database for the searches, where several machines share them; otherwise a file a firm."""


class CalibrationConfig(_Section):
    """Files of the external calibration, which compares forecast errors with those of analysts; CSV or Parquet."""

    tickers: str = Field(min_length=1)
    """firm, ticker"""
    quarters: str = Field(min_length=1)
    """ticker, quarter, first_day, last_day"""
    forecasts: str = Field(min_length=1)
    """ticker, quarter, made_on, forecast, actual"""


class ProjectConfig(_Section):
    """All settings of `cbmt.toml`."""

    sources: tuple[SourceConfig, ...] = ()
    design: DesignConfig = DesignConfig()
    quality: QualityConfig = QualityConfig()
    delivery: DeliveryConfig = DeliveryConfig()
    networks: NetworksConfig = NetworksConfig()
    study: StudyConfig | None = None
    forecast: ForecastConfig = ForecastConfig()
    bands: BandsConfig = BandsConfig()
    calibration: CalibrationConfig | None = None
    schedule: ScheduleConfig = ScheduleConfig()
    notice: NoticeConfig = NoticeConfig()
    report: ReportConfig = ReportConfig()
    history: HistoryConfig = HistoryConfig()
    scenario: dict[str, ScenarioConfig] = Field(default_factory=dict)
    plan: PlanConfig | None = None
    value: ValueConfig = ValueConfig()

    @field_validator("scenario")
    @classmethod
    def _free_names(cls, value: dict[str, ScenarioConfig]) -> dict[str, ScenarioConfig]:
        return check_names(value)

    @model_validator(mode="after")
    def _distinct_names(self) -> ProjectConfig:
        names = [source.name for source in self.sources]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"two sources are called {', '.join(sorted(twice))}")
        return self

    def timeline(self, first_day: date, last_day: date, delivered_to: date | None = None) -> Timeline:
        """The timeline of data from `first_day` to `last_day`, complete through `delivered_to`."""
        return self.design.timeline(first_day, last_day, self.study, delivered_to)

    def study_design(self, timeline: Timeline) -> StudyDesign:
        """The pinned study, or the one that would be made now. Raises HistoryTooShort where there is too little
        data."""
        if self.study:
            return self.study.design(timeline)
        design = self.design
        return StudyDesign.over(
            timeline, washout_weeks=design.washout_weeks, holdout_weeks=design.holdout_weeks
        )

    @classmethod
    def from_mapping(cls, values: Mapping[str, object], where: str) -> ProjectConfig:
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            lines = [f"{where} cannot be used:"]
            items = error.errors()
            for item in items:
                place = ".".join(str(part) for part in item["loc"]) or "(top)"
                says = item["msg"]
                if item["type"] == "extra_forbidden":
                    says = f"unknown; known are {', '.join(_section(item['loc'][:-1]).model_fields)}"
                lines.append(f"  {place}: {says}")
            raise ConfigError("\n".join(lines)) from None

    @classmethod
    def load(cls, path: Path) -> ProjectConfig:
        """Read a project file. The error names all mistakes in it at once."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(
                f"there is no project file {path}; make one with `cbmt ingest` or `cbmt simulate`"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not valid TOML: {error}") from None
        return cls.from_mapping(values, str(path))


def _section(place: tuple[int | str, ...]) -> type[BaseModel]:
    """The model class of the section at a place of the file."""
    section: type[BaseModel] = ProjectConfig
    named = False
    for name in (part for part in place if isinstance(part, str)):
        if named:  # A name that the user gave: [scenario.NAME].
            named = False
            continue
        kind = section.model_fields[name].annotation
        section = next(
            part for part in (kind, *get_args(kind)) if isinstance(part, type) and issubclass(part, BaseModel)
        )
        named = get_origin(kind) is dict
    return section
