"""Exhibits: published figures follow from published ones, and every table keeps its declared columns."""

from collections import Counter
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest
from helpers.diagnostic_tables import small_results
from helpers.evaluation_tables import cohort_week_of, fill, forecasts

from cbmt_core import duck
from cbmt_core.bands import LEVELS
from cbmt_core.bridge import CONTRIBUTIONS, REALISED, BridgeErrors, BridgeWindows, bridge_errors, bridge_table
from cbmt_core.design import StudyDesign
from cbmt_core.evaluation import Relations, accuracy, compare, failures, whole_firms
from cbmt_core.exhibits import (
    BENCHMARKS,
    EXHIBITS,
    LABELS,
    NESTED_MODELS,
    REPRESENTATIVES,
    Evidence,
    exhibits,
    gather,
)
from cbmt_core.exhibits.figures import FIGURES
from cbmt_core.exhibits.ranges import NOT_IN_PAPER
from cbmt_core.metrics import FULL, HORIZONS, OUTCOMES
from cbmt_core.panel import FirmPanel
from cbmt_core.schema import TABLES
from cbmt_core.simulate import Economy, sample_cohorts

DESIGN = StudyDesign()
N = 12


def firms_of(n):
    return pd.DataFrame(
        {
            "firm": [f"f{k:02d}" for k in range(n)],
            "industry": [f"i{k % 2}" for k in range(n)],
            "currency": "USD",
        }
    )


def errors_of(models, n=N, outcomes=OUTCOMES):
    """Errors around a mean of each model and outcome; the mean over firms is exact."""
    rows = []
    for model, means in models.items():
        for outcome in outcomes:
            mean = means[outcome] if isinstance(means, dict) else means
            spread = mean * 0.5 * (np.arange(n) - (n - 1) / 2) / n
            for horizon, weeks in {**HORIZONS, FULL: 47}.items():
                rows += [
                    (f"f{k:02d}", model, DESIGN.origin, outcome, horizon, weeks, mean + spread[k], mean / 10)
                    for k in range(n)
                ]
    columns = ["firm", "model", "origin", "outcome", "horizon", "weeks", "smape", "mase"]
    return pd.DataFrame(rows, columns=columns)


def bridges_of(models, n=N):
    rng = np.random.default_rng(0)
    rows = []
    for model in (REALISED, *models):
        for k in range(n):
            parts = dict(zip(CONTRIBUTIONS, rng.normal(0, 10, 4), strict=True))
            points = {f"{name}_points": value for name, value in parts.items()}
            rows.append({"firm": f"f{k:02d}", "model": model, **parts, **points})
    windows = BridgeWindows.of(DESIGN)
    return pd.DataFrame(rows).assign(
        eligible=True, strict=True, reason=None,
        baseline_first=windows.baseline.first, target_first=windows.target.first,
    )  # fmt: skip


def ranges_of(models, n=N):
    """Bands of three weeks and of the whole holdout, wider by the model's place in the list."""
    rows = []
    for wide, model in enumerate(models, 1):
        for firm in firms_of(n)["firm"]:
            for period, ahead, actual in [
                ("week", "1-4", 90.0), ("week", "1-4", 100.0), ("week", "5-13", 130.0), ("horizon", "horizon", 320.0),
            ]:  # fmt: skip
                ends = {
                    f"{end}{level}": actual * (1.05 + sign * wide * level / 1000)
                    for level in LEVELS
                    for end, sign in (("low", -1), ("high", 1))
                }
                rows.append(
                    {"firm": firm, "model": model, "purpose": "study", "outcome": "sales", "period": period,
                     "ahead": ahead, "source": "borrowed", "actual": actual, "scale": actual,
                     "median": 1.05 * actual, **ends}
                )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture
def con():
    with duck.connect() as connection:
        connection.register("firms", firms_of(N))
        connection.execute("CREATE TABLE firm AS SELECT *, NULL AS segment FROM firms")
        connection.execute(
            "CREATE TABLE firm_week AS SELECT firm, CAST(week AS DATE) AS week, row_number() OVER () AS acquired, "
            "1 AS active_customers, 0.5 AS ropc, NULL AS aov, 2 AS sales, 3 AS repeat_orders FROM firm, "
            f"generate_series(DATE '{DESIGN.study.first}', DATE '{DESIGN.study.last}', INTERVAL 7 DAY) t(week)"
        )
        yield connection


def made(con, models, extra=None, results=None, ranges=None):
    table = errors_of(models)
    if extra is not None:
        table = pd.concat([table, extra])
    return exhibits(gather(con, Relations(), DESIGN, table, bridges_of(models), results, ranges))


# Family table, Panel A.
PANEL_A = {
    "single_task": dict(zip(OUTCOMES, (35.69, 37.33, 34.93, 57.67, 20.54), strict=True)),
    "joint": dict(zip(OUTCOMES, (21.11, 37.55, 36.95, 55.49, 18.57), strict=True)),
    "cbmt": dict(zip(OUTCOMES, (19.30, 35.56, 35.94, 53.91, 15.48), strict=True)),
}
# Panel B, in the order of OUTCOMES; from unrounded means, hence the tolerance below.
PANEL_B = {
    "Joint vs. single-task": (40.84, -0.58, -5.76, 3.77, 9.56),
    "Full vs. joint": (8.61, 5.30, 2.73, 2.85, 16.67),
    "Full vs. single-task": (45.93, 4.75, -2.87, 6.52, 24.64),
}


def test_published_improvements_follow_from_published_means(con):
    frame = made(con, PANEL_A)["exhibit_families"].set_index("family")
    assert list(frame["panel"]) == ["mean SMAPE"] * 3 + ["improvement"] * 3
    for family, expected in PANEL_B.items():
        assert list(frame.loc[family, list(OUTCOMES)]) == pytest.approx(expected, abs=0.05)
    assert frame.loc["Full vs. joint", "revenue_alignment"] == "No to Yes"
    assert frame.loc["Full vs. joint", "shared_representation"] == "Yes"
    assert set(frame["firms"]) == {N}


def test_every_exhibit_keeps_its_columns_whatever_has_run(con):
    none = made(con, {"cohort_glm": 10.0})
    everything = made(
        con,
        dict.fromkeys(LABELS, 10.0),
        results=small_results(),
        ranges=ranges_of(["cbmt_plus", *BENCHMARKS]),
    )
    nothing = exhibits(gather(con, Relations(), DESIGN, errors_of({}), bridges_of([])))
    for name, exhibit in EXHIBITS.items():
        for frames in (none, everything, nothing):
            assert list(frames[name].columns) == exhibit.table.column_names, name
            assert list(frames[name]["row"]) == list(range(1, len(frames[name]) + 1))
            con.register("rows", frames[name])
            con.execute(f"SELECT {exhibit.table.select()} FROM rows").fetchall()
        assert len(everything[name]), name
        for column in exhibit.table.columns:
            if not column.nullable:
                assert everything[name][column.name].notna().all(), (name, column.name)
    assert none["exhibit_direct_comparison"].empty
    assert none["exhibit_families"].empty


def test_every_exhibit_names_its_place_in_the_paper():
    # Main text and Web App.: 26 captioned tables, one without a caption, the data of six figures, one algorithm.
    paper = [exhibit for exhibit in EXHIBITS.values() if exhibit.paper != NOT_IN_PAPER]
    assert {*EXHIBITS} - {e.table.name for e in paper} == {"exhibit_band_scores", "exhibit_band_calibration"}
    kinds = Counter(exhibit.paper.partition(":")[0] for exhibit in paper)
    assert kinds == {"Table": 27, "Figure": 6, "Algorithm": 1}
    captioned = {e.paper.rpartition("(")[2].rstrip(")") for e in EXHIBITS.values() if "(tab:" in e.paper}
    assert len(captioned) == 26
    assert len({figure.label for figure in FIGURES}) == len(FIGURES) == 14
    labels = [exhibit.paper[exhibit.paper.index("(") :] for exhibit in paper]
    assert len(set(labels)) == len(labels)
    for name, exhibit in EXHIBITS.items():
        assert name.startswith("exhibit_")
        assert exhibit.note.endswith(".")
        assert not exhibit.table.partitioned


def test_static_exhibits_need_no_data_and_follow_the_code(con):
    frames = exhibits(gather(con, Relations(), DESIGN, errors_of({}), bridges_of([])))
    benchmarks = frames["exhibit_benchmark_models"]
    assert list(benchmarks["model"]) == list(BENCHMARKS)
    assert benchmarks.set_index("model").loc["wg_pnbd_e_pp", "ropc"] == "Pareto/NBD with covariates"
    assert benchmarks.set_index("model").loc["lmp_v2", "variant"] == "cohort weeks, no covariates"
    candidates = frames["exhibit_direct_candidates"].set_index("candidate")
    # Web App. Table "Direct Aggregate-Sales Transformer Candidate Grid", rows C06 and C07.
    assert list(candidates.loc["C06"].drop("row")) == [20, 0.0003, 32, 128, 3, 2, 0.10]
    assert list(candidates.loc["C07"].drop("row")) == [12, 0.0005, 32, 64, 2, 2, 0.05]
    studies = frames["exhibit_related_studies"]
    assert len(studies) == 23
    assert list(studies.loc[studies["revenue_in_estimation"], "study"]) == ["CBMT"]
    assert list(frames["exhibit_walk_forward_algorithm"]["when"].unique()) == ["start", "each week", "end"]


def test_sixteen_models_are_ranked(con):
    models = {name: 10.0 + k for k, name in enumerate(("cbmt", *BENCHMARKS))}
    frames = made(
        con, {**models, "cbmt_plus": 1.0, "joint": 2.0}, errors_of({"direct": 1.0}, outcomes=["total_sales"])
    )
    ranks = frames["exhibit_average_rank_all"]
    assert list(ranks["model"]) == ["cbmt", *BENCHMARKS]
    assert set(ranks["models_ranked"]) == {16}
    # Every error grows with the model's place, so places are ranks.
    assert list(ranks["total_sales"]) == [*range(1, 17)]
    assert list(frames["exhibit_first_rank"]["ropc"]) == [1.0] + [0.0] * 15
    assert list(frames["exhibit_average_rank"]["model"]) == list(REPRESENTATIVES)
    assert list(frames["exhibit_average_rank"]["aov"]) == [models[name] - 9 for name in REPRESENTATIVES]


def test_evaluation_lists_outcomes_metrics_and_models_in_order(con):
    frame = made(con, dict.fromkeys(REPRESENTATIVES, 10.0))["exhibit_evaluation_mean"]
    expected = [(o, m, r) for o in OUTCOMES for m in ("smape", "mase") for r in REPRESENTATIVES]
    assert list(frame[["outcome", "metric", "model"]].itertuples(index=False, name=None)) == expected
    assert frame.query("model != 'cbmt'")["gap"].eq(0).all()


def test_without_cbmt_another_reference_stands_first(con):
    frames = made(con, {"rf": 20.0, "cohort_glm": 10.0})
    frame = frames["exhibit_evaluation_smape"]
    assert list(frame["model"].unique()) == ["cohort_glm", "rf"]
    assert frame.query("model == 'rf'")["gap"].to_list() == pytest.approx([50.0] * 5)
    assert set(frames["exhibit_model_selection"]["model"]) == {"rf"}


def test_direct_comparison_is_paired(con):
    frame = made(con, {"cbmt": 15.48}, errors_of({"direct": 15.90}, outcomes=["total_sales"]))[
        "exhibit_direct_comparison"
    ]
    assert list(frame["label"]) == ["CBMT", "Direct"]
    direct = frame.iloc[1]
    assert direct["difference"] == pytest.approx(0.42)
    assert 0 < direct["t_p"] < 1
    assert direct["difference_low"] <= direct["difference"] <= direct["difference_high"]


def test_summary_statistics_by_hand(con):
    frame = made(con, {"rf": 1.0})["exhibit_summary_statistics"].set_index("statistic")
    weeks = {"calibration": 118, "holdout": 47}
    for window, count in weeks.items():
        assert frame.loc["Sales (cumulative)", f"{window}_median"] == 2 * count
        assert frame.loc["Repeat orders (cumulative)", f"{window}_p75"] == 3 * count
        assert frame.loc["ROPC (per week)", f"{window}_p25"] == 0.5
        assert np.isnan(frame.loc["AOV (per week)", f"{window}_median"])
    week = con.execute(
        f"SELECT firm, avg(acquired) AS a FROM firm_week WHERE week <= DATE '{DESIGN.origin}' GROUP BY firm"
    ).df()["a"]
    got = frame.loc["Acquisition (per week)", ["calibration_p25", "calibration_median", "calibration_p75"]]
    assert list(got) == pytest.approx(list(np.percentile(week, [25, 50, 75])))
    assert set(frame["firms"]) == {N}


def test_industries_are_ordered_by_the_reference(con):
    table = errors_of({"cbmt": 10.0, "lstm": 12.0, "wg_pnbd_e_pp": 5.0})
    odd = table["firm"].str[-1].astype(int) % 2 == 1
    table.loc[~odd, "smape"] += 30
    frame = exhibits(gather(con, Relations(), DESIGN, table, bridges_of(["cbmt"])))["exhibit_industry"]
    assert list(frame["industry"]) == ["i1"] * 3 + ["i0"] * 3
    assert list(frame["model"]) == ["cbmt", "wg_pnbd_e_pp", "lstm"] * 2
    values = table[
        odd & (table["model"] == "cbmt") & (table["outcome"] == "total_sales") & (table["horizon"] == FULL)
    ]
    assert frame.loc[0, "se"] == pytest.approx(values["smape"].std() / np.sqrt(N / 2))


def test_horizons_grow(con):
    frame = made(con, {"cbmt": 1.0})["exhibit_horizon"]
    assert list(frame.query("outcome == 'aov'")["weeks"]) == [13, 26, 39, 47]


def test_bridge_exhibits_follow_the_published_order(con):
    models = ["cbmt", "rf", "wg_pnbd_e_pp"]
    frames = made(con, dict.fromkeys(models, 1.0))
    main = frames["exhibit_bridge_mae"]
    assert list(main["contribution"].unique()) == list(CONTRIBUTIONS)
    assert list(main["model"].unique()) == ["cbmt", "wg_pnbd_e_pp", "rf"]
    paired = frames["exhibit_bridge_mae_paired"]
    assert list(paired["model"].unique()) == ["wg_pnbd_e_pp", "rf"]
    assert paired[["difference_low", "difference_high"]].notna().all(axis=None)
    assert set(frames["exhibit_bridge_eligibility"]["disposition"]) == {"eligible"}


def test_other_origins_and_windows_are_left_out(con):
    table, bridge = errors_of({"rf": 1.0}), bridges_of(["rf"])
    more = pd.concat([table, table.assign(origin=date(2018, 1, 7), smape=99.0)])
    wider = pd.concat([bridge, bridge.assign(target_first=date(2020, 3, 1))])
    one = exhibits(gather(con, Relations(), DESIGN, table, bridge))
    other = exhibits(gather(con, Relations(), DESIGN, more, wider))
    for name in EXHIBITS:
        pd.testing.assert_frame_equal(one[name], other[name])


def stored(con, table, frame):
    """The frame after a stay in a table with the declared types, keys and NOT NULLs."""
    columns = ", ".join(f'"{c.name}" {c.type}{"" if c.nullable else " NOT NULL"}' for c in table.columns)
    con.execute(f"CREATE OR REPLACE TABLE stored ({columns}, PRIMARY KEY ({', '.join(table.key)}))")
    con.register("rows", frame)
    con.execute(f"INSERT INTO stored SELECT {table.select()} FROM rows")
    numbers = [c.name for c in table.columns if c.type == "DOUBLE"]
    for name in numbers:
        assert con.execute(f"SELECT count(*) FROM stored WHERE isnan({name})").fetchall() == [(0,)], name
    return con.execute("FROM stored").df()


def test_every_table_can_be_stored_and_read_back_for_the_same_exhibits():
    economy = Economy(firms=3, scale=0.02)
    panels = [sample_cohorts(economy, spec).panel() for spec in economy.specs()]
    runs = [run for panel in panels for run in forecasts(panel, ["seasonal_naive", "cohort_glm", "gls_v1"])]
    runs[2] = replace(runs[2], forecast=None, record=None, reason="too few weeks")
    relations, windows = Relations(), BridgeWindows.of(DESIGN)
    with duck.connect() as con:
        fill(con, panels, runs)
        firms = whole_firms(con, relations)
        errors, bridge = accuracy(con, relations), bridge_table(con, relations, windows)
        bridges = bridge_errors(bridge, firms)
        tables = {
            "accuracy": errors,
            "accuracy_failure": failures(con, relations, errors, DESIGN.origin),
            "accuracy_summary": compare(errors, firms),
            "bridge": bridge,
            "bridge_mae": bridges.mae,
            "bridge_method": bridges.methods,
        }
        back = {name: stored(con, TABLES[name], frame) for name, frame in tables.items()}
        for name, frame in tables.items():
            assert len(back[name]) == len(frame) > 0, name
            assert not TABLES[name].partitioned
        assert list(back["accuracy_failure"]["reason"]) == ["too few weeks"]
        now = exhibits(gather(con, relations, DESIGN, errors, bridge))
        later = exhibits(gather(con, relations, DESIGN, back["accuracy"], back["bridge"]))
        for name, exhibit in EXHIBITS.items():
            pd.testing.assert_frame_equal(now[name], later[name])
            assert len(stored(con, exhibit.table, now[name])) == len(now[name])


def test_from_simulated_firms_to_exhibits():
    economy = Economy(firms=3, scale=0.02)
    panels = [sample_cohorts(economy, spec).panel() for spec in economy.specs()]
    panels = [FirmPanel.from_cohort_week(p.firm, cohort_week_of(p), p.design) for p in panels]
    runs = [run for panel in panels for run in forecasts(panel, ["seasonal_naive", "cohort_glm"])]
    relations = Relations()
    with duck.connect() as con:
        fill(con, panels, runs)
        errors = accuracy(con, relations)
        evidence = gather(
            con, relations, DESIGN, errors, bridge_table(con, relations, BridgeWindows.of(DESIGN))
        )
        frames = exhibits(evidence)
    assert isinstance(evidence, Evidence)
    assert isinstance(evidence.bridges, BridgeErrors)
    direct = compare(errors, evidence.firms, models=["cohort_glm"])
    shown = frames["exhibit_evaluation_smape"]
    assert list(shown["model"].unique()) == ["cohort_glm"]
    np.testing.assert_allclose(
        sorted(shown["mean"]),
        sorted(direct.query("metric == 'smape' and horizon == 'full' and industry == '(all)'")["mean"]),
    )
    assert set(NESTED_MODELS) - set(errors["model"])
    assert frames["exhibit_families"].empty
    assert frames["exhibit_summary_statistics"]["calibration_median"].notna().all()
