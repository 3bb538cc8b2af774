"""explain: planted truths are found, noise is not, and no firm's own error reaches its prediction."""

import numpy as np
import pandas as pd
import pytest
from helpers.planted_panel import made_up_features, planted, tidy_errors
from pandas.testing import assert_frame_equal

from cbmt_core.compose import compose
from cbmt_core.diagnostics.difficulty import (
    COLUMNS,
    FEATURES,
    FIRMS_NEEDED,
    LEVELS,
    SCALE,
    VOLATILITY,
    explain,
    features_of,
)
from cbmt_core.diagnostics.difficulty.meta_models import BOOSTING, META_MODELS, cross_fit
from cbmt_core.metrics import FULL, score
from cbmt_core.models import build
from cbmt_core.simulate import Economy, sample_cohorts

FIRMS, NEW = 120, 30
EVERYONE = made_up_features(FIRMS + NEW)
TRUTH = planted(EVERYONE)
OLD, LATER = EVERYONE.index[:FIRMS], EVERYONE.index[FIRMS:]
TABLES = tuple(COLUMNS)


def noisy(seed, spread=4.0):
    return TRUTH[OLD] + np.random.default_rng(seed).normal(0, spread, size=FIRMS)


def quick(features, errors, **options):
    return explain(features, errors, 1, repeats=2, **options)


@pytest.fixture(scope="module")
def errors():
    return tidy_errors(cbmt=noisy(1), lstm=noisy(2) + 5)


@pytest.fixture(scope="module")
def explained(errors):
    return explain(EVERYONE, errors, 1, repeats=50)


def test_planted_errors_are_explained(explained):
    assert (explained.model, explained.outcome) == ("cbmt", "cohort_sales")
    r2 = explained.r2.set_index(["model", "meta_model"])
    assert set(r2.index) == {(m, meta) for m in ("cbmt", "lstm") for meta in META_MODELS}
    assert (r2["r2"] > 0.7).all()
    assert (r2["pooled_r2"] > 0.75).all()
    assert (r2["firms"] == FIRMS).all()


def test_noise_is_not_explained():
    noise = pd.Series(np.random.default_rng(7).normal(50, 10, size=FIRMS), index=OLD)
    found = quick(EVERYONE.loc[OLD], tidy_errors(cbmt=noise))
    assert (found.r2[["r2", "pooled_r2"]] < 0.05).all(axis=None)
    assert (found.importance["importance"] < 0.15).all()


def test_the_planted_features_matter_most(explained):
    ranked = explained.importance
    assert list(ranked["feature"][:2]) == [SCALE, VOLATILITY]
    assert set(ranked["feature"]) == set(FEATURES)
    assert ranked["importance"].is_monotonic_decreasing
    assert ranked["importance"][0] > 0.5
    assert (ranked["importance"][2:].abs() < 0.03).all()
    assert (ranked["low"] <= ranked["importance"]).all()
    assert (ranked["importance"] <= ranked["high"]).all()


def test_bands_of_phe_order_the_realised_error(explained):
    for _, rows in explained.bands.groupby("model"):
        assert list(rows["band"]) == list(LEVELS)
        assert list(rows["in_band"]) == [40, 40, 40]
        assert rows["smape"].is_monotonic_increasing
        assert rows["phe"].is_monotonic_increasing
    own = explained.bands[explained.bands["model"] == "cbmt"]
    np.testing.assert_allclose(own["smape"], own["phe"], atol=3)
    assert (own["reduction"] == 0).all()
    assert explained.bands["wins"].sum() == FIRMS


def test_errors_by_band_are_plain_means(explained, errors):
    phe = explained.phe.set_index("firm")
    for _, row in explained.bands.iterrows():
        inside = phe.index[(phe["band"] == row["band"]) & phe["out_of_fold"]]
        mine = errors[(errors["model"] == row["model"]) & errors["firm"].isin(inside)]
        assert row["smape"] == pytest.approx(mine["smape"].mean())
        assert row["phe"] == pytest.approx(phe.loc[inside, "phe"].mean())
    reduction = explained.bands.set_index(["band", "model"])
    low = reduction.loc["low"]
    expected = 100 * (low.loc["lstm", "smape"] - low.loc["cbmt", "smape"]) / low.loc["lstm", "smape"]
    assert low.loc["lstm", "reduction"] == pytest.approx(expected)


def test_a_firm_without_a_holdout_has_a_phe_too(explained):
    phe = explained.phe.set_index("firm")
    assert list(phe.index) == sorted(EVERYONE.index)
    assert not phe.loc[LATER, "out_of_fold"].any()
    assert phe.loc[LATER, "smape"].isna().all()
    assert phe.loc[LATER, "phe"].corr(TRUTH[LATER]) > 0.9
    order = [LEVELS.index(band) for band in phe.sort_values("phe")["band"]]
    assert order == sorted(order)


def test_a_new_firm_changes_nothing_for_the_others(explained, errors):
    fewer = quick(EVERYONE.loc[OLD], errors, models=["cbmt"]).phe.set_index("firm")
    pd.testing.assert_series_equal(fewer["phe"], explained.phe.set_index("firm").loc[OLD, "phe"])


def test_a_firms_own_error_cannot_reach_its_phe(explained, errors):
    firm = OLD[17]
    changed = errors.copy()
    changed.loc[(changed["firm"] == firm) & (changed["model"] == "cbmt"), "smape"] += 120
    before, after = (
        e.phe.set_index("firm")["phe"] for e in (explained, quick(EVERYONE, changed, models=["cbmt"]))
    )
    assert before[firm] == after[firm]
    assert (before != after).sum() > FIRMS / 2


def test_nothing_of_a_fold_reaches_its_predictions():
    x, y = EVERYONE.loc[OLD].to_numpy(), noisy(1).to_numpy()
    for meta in META_MODELS.values():
        fit = cross_fit(meta, x, y, seed=1)
        fold = next(rows for rows in fit.folds if 17 in rows)
        mates = fold[fold != 17]
        other_x, other_y = x.copy(), y.copy()
        other_x[17], other_y[17] = 1e6, 500.0
        other = cross_fit(meta, other_x, other_y, seed=1)
        np.testing.assert_array_equal(fit.predict(x)[mates], other.predict(other_x)[mates])
        assert (fit.predict(x) != other.predict(other_x)).any()


def test_the_order_of_firms_does_not_matter(errors):
    errors = errors[errors["firm"].isin(OLD[:50])]
    shuffled = errors.sample(frac=1, random_state=3)
    first = quick(EVERYONE, errors)
    second = quick(EVERYONE.sample(frac=1, random_state=4), shuffled)
    for name in TABLES:
        assert_frame_equal(getattr(first, name), getattr(second, name))


def test_shap_values_add_up_and_show_the_direction(explained):
    table = explained.dependence.pivot_table(index="firm", columns="feature", values="shap", dropna=False)
    seen = EVERYONE.loc[OLD].to_numpy()
    whole = META_MODELS[BOOSTING].chain(1).fit(seen, noisy(1).to_numpy())
    predicted = whole.predict(seen)
    np.testing.assert_allclose(
        table.loc[OLD].sum(axis=1) - table.loc[OLD[0]].sum(), predicted - predicted[0], atol=1e-6
    )
    for feature, sign in ((SCALE, -1), (VOLATILITY, 1)):
        rows = explained.dependence[explained.dependence["feature"] == feature].dropna()
        assert sign * rows["value"].corr(rows["shap"], method="spearman") > 0.85


def test_the_value_beside_a_shap_value_is_the_firms_own(explained):
    values = explained.dependence.set_index(["firm", "feature"])["value"]
    for firm in OLD[:5]:
        expected = EVERYONE.loc[firm].rename("value").rename_axis("feature")
        pd.testing.assert_series_equal(values[firm], expected)


def test_every_cell_of_the_grid_is_divided_between_the_models(explained):
    grid = explained.grid.groupby(["scale", "volatility"])
    assert len(grid) == 9
    cells = grid.agg(wins=("wins", "sum"), firms=("in_cell", "first"))
    assert (cells["wins"] == cells["firms"]).all()
    placed = EVERYONE.loc[OLD, [SCALE, VOLATILITY]].notna().all(axis=1).sum()
    assert cells["firms"].sum() == placed < FIRMS
    assert (explained.grid["firms"] == placed).all()


def test_too_few_firms_are_said_instead_of_a_number(errors):
    firms = OLD[: FIRMS_NEEDED - 1]
    result = quick(EVERYONE, errors[errors["firm"].isin(firms)])
    numbers = {
        "r2": ["r2", "pooled_r2"],
        "phe": ["phe", "band"],
        "bands": ["in_band", "phe", "smape", "reduction", "wins"],
        "importance": ["importance", "low", "high"],
        "dependence": ["shap"],
        "grid": ["in_cell", "wins", "win_rate", "low", "high"],
    }
    for name in TABLES:
        table = getattr(result, name)
        assert len(table) > 0
        assert table[numbers[name]].isna().all(axis=None)
        assert (table["firms"] <= len(firms)).all()
        assert (table["firms_needed"] == FIRMS_NEEDED).all()
    assert (result.phe["firms"] == len(firms)).all()


def test_just_enough_firms_are_enough(errors):
    found = quick(EVERYONE, errors[errors["firm"].isin(OLD[:FIRMS_NEEDED])])
    assert found.phe["phe"].notna().all()
    assert found.r2["r2"].notna().all()


def test_without_any_error_the_tables_are_there_but_tell_nothing(errors):
    result = explain(EVERYONE, errors.iloc[:0])
    assert result.model is None
    assert (result.phe["firms"] == 0).all()
    assert result.phe["phe"].isna().all()
    for name in TABLES:
        assert tuple(getattr(result, name).columns) == COLUMNS[name]


def test_errors_of_two_horizons_are_refused(errors):
    with pytest.raises(ValueError, match="one origin and horizon"):
        explain(EVERYONE, pd.concat([errors, errors]))


def test_a_model_that_lacks_many_firms_is_not_compared(errors):
    partial = tidy_errors(rf=noisy(3)[:25])
    errors = errors[errors["firm"].isin(OLD[:40])]
    found = quick(EVERYONE, pd.concat([errors, partial], ignore_index=True))
    assert set(found.bands["model"]) == set(found.grid["model"]) == {"cbmt", "lstm"}
    assert found.r2.groupby("model")["firms"].first()["rf"] == 25


@pytest.mark.slow
def test_phe_orders_the_errors_of_simulated_firms():
    economy = Economy(firms=40, seed=12)
    features, rows = {}, []
    for spec in economy.specs():
        panel = sample_cohorts(economy, spec).panel()
        seen = panel.until(panel.design.origin)
        features[spec.name] = features_of(seen)
        forecast = build("cohort_glm").fit(seen, seed=1).forecast(panel.n_weeks - seen.n_weeks)
        scores = score(panel, compose(seen, forecast), seen.origin)
        (smape,) = [s.smape for s in scores if (s.outcome, s.horizon) == ("cohort_sales", FULL)]
        rows.append({"firm": spec.name, "model": "cohort_glm", "outcome": "cohort_sales", "smape": smape})
    found = quick(pd.DataFrame.from_dict(features, orient="index"), pd.DataFrame(rows))
    assert found.bands["smape"].is_monotonic_increasing
    assert found.phe["phe"].corr(found.phe["smape"], method="spearman") > 0.7
