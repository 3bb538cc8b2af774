"""The page of the diagnostics: its sentences follow from the numbers, whichever way they point."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from helpers.diagnostic_tables import invented_firms, invented_results, small_results
from helpers.published import publish

from cbmt_core import duck
from cbmt_core.diagnostics.data import DiagnosticState
from cbmt_core.report.diagnostic_words import headline, lead, p_value
from cbmt_core.report.pages import write_report

NO_NUMBER = re.compile(r"\b(nan|None|inf|NaT|undefined)\b")


def page_of(tmp_path: Path, results: dict[str, pd.DataFrame]) -> str:
    with duck.connect() as con:
        publish(con, ["Firm 000", "Firm <1>"], models=["cohort_glm", "seasonal_naive"], results=results)
        write_report(con, tmp_path)
    made = "diagnostic" in results and results["diagnostic"]["made"].any()
    assert ('href="diagnostics.html"' in (tmp_path / "index.html").read_text()) == made, (
        "no link to a page of reasons"
    )
    return (tmp_path / "diagnostics.html").read_text()


def seen(page: str) -> str:
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


@pytest.mark.slow
def test_a_full_panel_fills_every_section(tmp_path):
    results = small_results()
    page = page_of(tmp_path, results)
    for name in (
        "terciles",
        "tests",
        "columns",
        "bands",
        "importance",
        "grid",
        "r2",
        "base_rates",
        "resplits",
        "calibration",
    ):
        assert f'id="{name}"' in page, name
    text = seen(page)
    assert not NO_NUMBER.search(text)
    # The family table needs forecasts by the families themselves, which this panel has not.
    assert text.count("Not made") == 1
    oracle = results["routing_policy"].query("sample == 'all firms' and policy == 'oracle'").iloc[0]
    assert f"{oracle['to_cbmt']} of 60 firms" in text
    assert f"{oracle['smape']:.2f}" in text


@pytest.mark.slow
def test_a_firm_of_the_list_is_linked_and_escaped(tmp_path):
    results = dict(small_results())
    results["predicted_error"] = results["predicted_error"].replace({"firm": {"Firm 001": "Firm <1>"}})
    page = page_of(tmp_path, results)
    [phe] = results["predicted_error"].query("firm == 'Firm <1>'")["phe"]
    [band] = results["predicted_error"].query("firm == 'Firm <1>'")["band"]
    own = next(path for path in (tmp_path / "firms").glob("*.html") if "000" not in path.name)
    assert f"<dd>{phe:.0f}%, {band}</dd>" in own.read_text()
    hardest = page[page.index('id="hardest"') :]
    # Two of the sixty firms are published.
    assert len(re.findall(r'href="firms/', hardest)) == 2
    assert "Firm &lt;1&gt;" in hardest
    assert "Firm <1>" not in page


def test_a_small_panel_says_what_it_needs_instead(tmp_path):
    results = invented_results(invented_firms(12, outcomes=["total_sales", "cohort_sales"]))
    text = seen(page_of(tmp_path, results))
    assert "need more firms" in text
    assert "needs 30 firms with a forecast by cbmt; there are 12" in text
    assert "at least 40 firms with both forecasts; there are 12" in text
    assert "the score needs 20" in text
    assert not NO_NUMBER.search(text)


def test_a_project_without_diagnostics_has_a_page_of_reasons(tmp_path):
    note = DiagnosticState(
        "external_calibration", 0, 1, False, "cbmt.toml has no [calibration] section"
    ).frame()
    text = seen(page_of(tmp_path, {"diagnostic": note}))
    assert text.count("Not made") == 5
    assert "cbmt.toml has no [calibration] section" in text


def policies(cbmt: float, single: float, logistic: float, oracle: float = 10.0) -> dict[str, pd.DataFrame]:
    smape = {
        "always_cbmt": cbmt, "always_single_task": single, "logistic": logistic, "tree": cbmt, "boosted": cbmt,
        "oracle": oracle,
    }  # fmt: skip
    labels = {"logistic": "Logistic regression"}
    rows = [
        {"policy": name, "label": labels.get(name, name), "smape": error} for name, error in smape.items()
    ]
    return {"routing_resplits": pd.DataFrame(rows)}


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (policies(15.0, 20.0, 15.1), "Deploy CBMT for every firm"),
        (policies(15.0, 20.0, 14.9), "Deploy CBMT for every firm"),  # 2% of the way is not worth a rule
        (policies(15.0, 20.0, 13.0), "logistic regression closes 40% of the gap"),
        (policies(20.0, 15.0, 20.0), "Deploy single-task models for every firm"),
        (policies(15.0, 20.0, 15.0, oracle=15.0), "Deploy CBMT for every firm"),
    ],
)
def test_the_headline_follows_the_policies(shown, expected):
    assert expected in headline(shown, {"routing"})


@pytest.mark.parametrize(
    ("estimate", "p", "expected"),
    [
        (0.0503, 0.002, "wins more often where a firm's drivers move together: by 5.0 percentage points"),
        (-0.04, 0.01, "wins less often where a firm's drivers move together: by 4.0 percentage points"),
        (0.02, 0.3, "does not clearly win more often"),
        (-0.02, 0.3, "2.0 percentage points fewer wins"),
    ],
)
def test_the_sentence_on_comovement_follows_the_test(estimate, p, expected):
    tests = pd.DataFrame([{"test": "lpm_controls", "estimate": estimate, "p": p}])
    shown = {"base_rates": pd.DataFrame(), "comovement_tests": tests}
    [text] = lead(shown, {"comovement"})
    assert expected in text


@pytest.mark.parametrize(
    ("errors", "shown_text"), [((30, 50, 80), True), ((50, 40, 60), False), ((60, 50, 40), False)]
)
def test_difficulty_is_called_foretold_only_when_the_bands_are_in_order(errors, shown_text):
    rows = [
        {"band": band, "model": "cbmt", "label": "CBMT", "smape": error}
        for band, error in zip(("low", "medium", "high"), errors, strict=True)
    ]
    [text] = lead({"base_rates": pd.DataFrame(), "predicted_difficulty": pd.DataFrame(rows)}, {"difficulty"})
    assert ("can be predicted in advance" in text) == shown_text


def test_p_values_are_printed_to_three_places():
    assert p_value(0.0004) == "< 0.001"
    assert p_value(0.0164) == "0.016"
    assert p_value(None) == p_value(float("nan")) == "–"
