"""The project file: what is right is read, what is wrong is named, all at once."""

from datetime import date

import pytest

from cbmt_core.config import ProjectConfig
from cbmt_core.design import StudyDesign
from cbmt_core.errors import ConfigError

SOURCE = {"name": "shop", "path": "orders.csv", "currency": "GBP", "timezone": "Europe/London"}


def project(*sources, **sections):
    return ProjectConfig.from_mapping({"sources": list(sources), **sections}, "cbmt.toml")


def test_a_project_file_is_read(tmp_path):
    (tmp_path / "cbmt.toml").write_text(
        """
        [[sources]]
        name = "shop"
        path = "orders"
        currency = "EUR"
        timezone = "Europe/Berlin"
        order_grain = "day"
        columns = { customer = "cid", amount = "value", order_id = "no" }
        [design]
        washout_weeks = 13
        country = "DE"
        [quality]
        min_customers = 5
        """
    )
    config = ProjectConfig.load(tmp_path / "cbmt.toml")
    (source,) = config.sources
    assert (source.columns.customer, source.columns.order_id, source.columns.firm) == ("cid", "no", "firm")
    assert source.order_grain == "day"
    assert config.quality.min_customers == 5
    design = config.design.timeline(date(2016, 1, 1), date(2020, 2, 29))
    assert (design.washout_weeks, design.country) == (13, "DE")


def test_the_design_follows_the_data_unless_dates_are_stated():
    span = (date(2016, 1, 1), date(2020, 2, 29))
    config = project(SOURCE)
    assert config.study_design(config.design.timeline(*span)) == StudyDesign()
    stated = project(SOURCE, design={"first_day": date(2017, 1, 1), "last_day": date(2019, 12, 28)})
    expected = StudyDesign.for_span(date(2017, 1, 1), date(2019, 12, 28))
    assert stated.study_design(stated.design.timeline(*span)) == expected


@pytest.mark.parametrize(
    ("source", "sections", "words"),
    [
        ({"currency": "pounds"}, {}, "sources.0.currency"),
        ({"timezone": "Mars/Olympus"}, {}, "Mars/Olympus.*is not a time zone"),
        ({"timezone": "Europe"}, {}, "'Europe' is not a time zone"),
        ({"encoding": "base64"}, {}, "files in 'base64' cannot be read"),
        ({"delimiter": "::"}, {}, "'::' cannot divide columns"),
        ({"delimiter": ""}, {}, "cannot divide columns"),
        ({"time_format": ""}, {}, "is no format of a time"),
        ({"time_format": "dd/mm/yyyy"}, {}, "'dd/mm/yyyy' is no format of a time"),
        ({"time_format": []}, {}, "name at least one format"),
        ({"columns": {"customer": ""}}, {}, "sources.0.columns.customer"),
        ({"columns": {"amount": None}}, {}, "sources.0.columns.amount"),
        ({"encoding": "runes"}, {}, "files in 'runes' cannot be read"),
        ({"order_grain": "week"}, {}, "sources.0.order_grain"),
        ({"colums": {}}, {}, "sources.0.colums: unknown; known are name, path, .*columns"),
        ({"columns": {"user": "u"}}, {}, "sources.0.columns.user: unknown; known are customer"),
        ({}, {"designs": {}}, "designs: unknown; known are sources, design, quality"),
        ({}, {"calibration": {"tiker": "a"}}, "calibration.tiker: unknown; known are tickers"),
        ({"columns": {"firm": None}}, {}, "say which column names the firm"),
        ({"firm": ""}, {}, "sources.0.firm"),
        ({}, {"design": {"country": "Atlantis"}}, "no holidays are known for 'Atlantis'"),
        ({}, {"design": {"holdout_weeks": 60}}, "design.holdout_weeks"),
        ({}, {"quality": {"max_quarantine_share": 2}}, "quality.max_quarantine_share"),
    ],
)
def test_a_mistake_is_named_with_its_place(source, sections, words):
    with pytest.raises(ConfigError, match=words):
        project({**SOURCE, **source}, **sections)


def test_every_mistake_is_named_at_once():
    with pytest.raises(ConfigError) as error:
        project({**SOURCE, "currency": "x", "timezone": "y"})
    assert "currency" in str(error.value)
    assert "timezone" in str(error.value)
    assert "at least 1 item" not in str(error.value)


def test_two_sources_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two sources are called shop"):
        project(SOURCE, SOURCE)


def test_a_missing_or_broken_file_is_said_to_be_so(tmp_path):
    with pytest.raises(ConfigError, match="there is no project file"):
        ProjectConfig.load(tmp_path / "cbmt.toml")
    (tmp_path / "cbmt.toml").write_text("[[sources]\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        ProjectConfig.load(tmp_path / "cbmt.toml")


def test_what_changes_the_reading_changes_its_digest():
    base = project(SOURCE).sources[0]
    assert base.reading_digest == project({**SOURCE, "path": "elsewhere.csv"}).sources[0].reading_digest
    for change in (
        {"timezone": "UTC"},
        {"decimal_separator": ","},
        {"name": "other"},
        {"order_grain": "day"},
    ):
        assert base.reading_digest != project({**SOURCE, **change}).sources[0].reading_digest


def test_sections_for_planners_are_read():
    config = project(
        SOURCE,
        scenario={
            "weak": {"acquisition": "-10% from 2020-06", "aov": ["+3%", "-1% from 2020-09"], "to": "2020-12"}
        },
        plan={"firms": {"A": 5.0}, "probability": 0.6},
        value={"margin": 0.4},
    )
    changes = config.scenario["weak"].scenario("weak").changes
    assert [(change.driver, str(change.last)) for change in changes] == [
        ("acquisition", "2020-12-31"),
        ("aov", "2020-12-31"),
        ("aov", "2020-12-31"),
    ]
    assert config.value.terms.margin == 0.4


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"scenario": {"a": {"aov": "3"}}}, "scenario.a.*write -10%"),
        ({"scenario": {"a": {}}}, "state at least one change"),
        ({"scenario": {"a": {"price": "+3%"}}}, "scenario.a.price: unknown; known are acquisition"),
        ({"scenario": {"baseline": {"aov": "+3%"}}}, "cannot be called 'baseline'"),
        ({"plan": {}}, "state one of sales"),
        ({"plan": {"sales": 3, "file": "x.csv"}}, "state one of sales"),
        ({"plan": {"sales": -3}}, "greater than 0"),
        ({"value": {"margin": 40}}, "less than or equal to 1"),
        ({"value": {"horizon_weeks": 104}}, "less than or equal to 52"),
    ],
)
def test_mistakes_in_sections_for_planners_are_named(sections, message):
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        project(SOURCE, **sections)
