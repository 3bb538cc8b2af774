"""Source sections written to the project file read back as they were meant."""

import pytest

from cbmt_core.config import ProjectConfig
from cbmt_core.errors import ConfigError
from cbmt_pipeline.sources import add_source, country_of, remove_source

SOURCE = {"name": "shop", "path": "orders.csv", "currency": "GBP", "timezone": "Europe/London"}


@pytest.mark.parametrize("name", ["plain", 'say "hi" \\ back', "naïve 店", "🛒", "a\tb", "DEL\x7f"])
def test_any_name_survives_the_project_file(tmp_path, name):
    assert add_source(tmp_path, {**SOURCE, "firm": name, "path": f"{name}.csv"}, {"customer": name})
    (source,) = ProjectConfig.load(tmp_path / "cbmt.toml").sources
    assert (source.firm, source.path, source.columns.customer) == (name, f"{name}.csv", name)


def test_a_source_is_added_once_and_beside_others(tmp_path):
    assert add_source(tmp_path, SOURCE, {}, country="GB")
    assert not add_source(tmp_path, SOURCE, {})
    assert add_source(tmp_path, {**SOURCE, "name": "second"}, {})
    config = ProjectConfig.load(tmp_path / "cbmt.toml")
    assert [source.name for source in config.sources] == ["shop", "second"]
    assert config.design.country == "GB"


@pytest.mark.parametrize(
    ("zone", "country"),
    [
        ("Europe/London", "GB"),
        ("America/Chicago", "US"),
        ("Asia/Tokyo", "JP"),
        ("UTC", None),
        ("Etc/GMT+5", None),
    ],
)
def test_a_new_project_has_the_holidays_of_its_time_zone(tmp_path, zone, country):
    assert country_of(zone) == country
    add_source(tmp_path, {**SOURCE, "timezone": zone}, {})
    assert ProjectConfig.load(tmp_path / "cbmt.toml").design.country == (country or "US")


def test_one_may_choose_other_holidays_for_a_new_project_but_not_slip_them_into_an_old_one(tmp_path):
    add_source(tmp_path, SOURCE, {}, country="DE")
    assert ProjectConfig.load(tmp_path / "cbmt.toml").design.country == "DE"
    add_source(tmp_path, {**SOURCE, "name": "second"}, {}, country="DE")
    with pytest.raises(ConfigError, match="holiday calendar of 'DE', not of 'FR'"):
        add_source(tmp_path, {**SOURCE, "name": "third"}, {}, country="FR")


def test_another_source_of_the_same_name_is_refused_and_the_file_kept(tmp_path):
    add_source(tmp_path, SOURCE, {})
    before = (tmp_path / "cbmt.toml").read_bytes()
    with pytest.raises(ConfigError, match="another source called 'shop'"):
        add_source(tmp_path, {**SOURCE, "currency": "EUR"}, {})
    with pytest.raises(ConfigError, match="currency"):
        add_source(tmp_path, {**SOURCE, "name": "x", "currency": "euro"}, {})
    assert (tmp_path / "cbmt.toml").read_bytes() == before


def test_a_file_that_cannot_take_a_section_is_said_to_be_so(tmp_path):
    inline = 'sources = [{ name = "a", path = "a.csv", currency = "GBP", timezone = "UTC" }]\n'
    (tmp_path / "cbmt.toml").write_text(inline)
    with pytest.raises(ConfigError, match="would not be valid TOML"):
        add_source(tmp_path, SOURCE, {})
    assert (tmp_path / "cbmt.toml").read_text() == inline


def test_a_source_gives_way_to_another_of_its_name_where_told_so_and_comments_stay(tmp_path):
    add_source(tmp_path, SOURCE, {})
    add_source(tmp_path, {**SOURCE, "name": "second"}, {})
    file = tmp_path / "cbmt.toml"
    file.write_text(file.read_text() + "\n[quality]  # mine\nmin_customers = 3\n")
    assert add_source(tmp_path, {**SOURCE, "currency": "EUR"}, {"customer": "who"}, replace=True)
    config = ProjectConfig.load(file)
    assert [(source.name, source.currency) for source in config.sources] == [
        ("second", "GBP"),
        ("shop", "EUR"),
    ]
    assert "# mine" in file.read_text()


def test_a_source_is_removed_and_the_last_one_too(tmp_path):
    add_source(tmp_path, SOURCE, {})
    add_source(tmp_path, {**SOURCE, "name": "second", "leave_out": {"Order status": ["void"]}}, {})
    with pytest.raises(ConfigError, match="no source called 'third'; it has shop, second"):
        remove_source(tmp_path, "third")
    remove_source(tmp_path, "shop")
    (left,) = ProjectConfig.load(tmp_path / "cbmt.toml").sources
    assert (left.name, left.leave_out) == ("second", {"Order status": ("void",)})
    remove_source(tmp_path, "second")
    assert ProjectConfig.load(tmp_path / "cbmt.toml").sources == ()
    assert add_source(tmp_path, SOURCE, {})
