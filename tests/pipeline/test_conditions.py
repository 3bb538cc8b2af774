"""Automation conditions on a thousand firms: nobody is asked for twice, and what is across firms comes once, after."""

from __future__ import annotations

from collections import Counter

import dagster as dg
import pytest

from cbmt_pipeline.assets import assets_of
from cbmt_pipeline.definitions import defs
from cbmt_pipeline.plan import the_plan

pytestmark = pytest.mark.slow

FIRMS = [f"firm{k:04}" for k in range(1000)]
TABLES = tuple(the_plan()["firm_data"].assets)


class Watched:
    """The automation sensor's verdicts, turn by turn, on an instance where the test reports what was made."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance, self.cursor = instance, None
        instance.add_dynamic_partitions("firm", FIRMS)

    def make(self, asset: str, firms: list[str] | None = None) -> None:
        for firm in firms or [None]:
            self.instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=firm))

    def asked(self) -> Counter[str]:
        """How many partitions of each asset are asked for now."""
        result = dg.evaluate_automation_conditions(defs=defs, instance=self.instance, cursor=self.cursor)
        self.cursor = result.cursor
        return Counter(
            {
                entry.key.to_user_string(): entry.true_subset.size
                for entry in result.results
                if not entry.true_subset.is_empty
            }
        )


def test_every_asset_but_the_data_tables_has_a_condition() -> None:
    specs = [spec for asset in assets_of(the_plan()) for spec in asset.specs]
    without = {spec.key.to_user_string() for spec in specs if spec.automation_condition is None}
    assert without == {"intake", *TABLES}


def test_a_week_asks_for_every_firm_once_and_then_for_what_is_across_firms() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        watched = Watched(instance)
        for asset in ("cohort_week", "live_forecasts"):
            watched.make(asset, FIRMS)
        for asset in ("intake", "path_priors", "forecast_choice", "bridge", "warehouse", "report"):
            watched.make(asset)
        watched.asked()

        # One update that belongs to no firm asks for no firm: sensors ask for the tables of those that changed.
        watched.make("intake")
        assert watched.asked() == {}

        # All firms have new data: what is learned from all of them first, and no firm before it.
        watched.make("cohort_week", FIRMS)
        assert watched.asked() == {"path_priors": 1}
        assert watched.asked() == {}
        watched.make("path_priors")
        assert watched.asked() + watched.asked() == {"live_forecasts": len(FIRMS)}, "each once"
        watched.make("live_forecasts", FIRMS[:50])
        after = watched.asked()
        assert set(after.values()) == {1}
        assert {"forecast_choice", "bridge", "warehouse", "report"} <= set(after)
        assert watched.asked() == {}

        # One firm alone has a corrected file: it alone is made again.
        watched.make("cohort_week", FIRMS[:1])
        assert watched.asked() == {"path_priors": 1}
        watched.make("path_priors")
        assert watched.asked() + watched.asked() == {"live_forecasts": 1}
