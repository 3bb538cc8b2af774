"""What the UI says of assets: checks on forecasts, data versions, freshness, columns, owners, the report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.definitions.freshness import FreshnessState
from dagster._core.loader import LoadingContextForTest
from dagster._core.test_utils import freeze_time
from helpers.daemon import Daemon, daemon
from helpers.materialised import ASSETS
from helpers.small_project import FIRMS, make_all, new_project

import cbmt_pipeline.forecast_steps as forecast_steps
from cbmt_core.config import ScheduleConfig
from cbmt_core.forecast_checks import ForecastFinding
from cbmt_core.names import Unit
from cbmt_pipeline.definitions import defs
from cbmt_pipeline.freshness import freshness_of
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource

pytestmark = pytest.mark.xdist_group("asset_facts")
FIRM = Unit(FIRMS[0])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = new_project(tmp_path_factory.mktemp("facts"))
    with (made.root / "cbmt.toml").open("a") as file:
        file.write('[forecast]\nmodels = ["cohort_glm", "seasonal_naive"]\n')
        file.write('[report]\naddress = "https://reports.example/shop/"\n')
    assert make_all(Project(made.root)) == {}
    return Project(made.root)


def forecast(project: Project, instance: dg.DagsterInstance, **config: object) -> None:
    instance.add_dynamic_partitions("firm", [FIRM.key])
    done = dg.materialize(
        [ASSETS["live_forecasts"]],
        instance=instance,
        partition_key=FIRM.key,
        resources={"project": ProjectResource(root=str(project.root))},
        run_config={"ops": {"live_forecasts": {"config": config}}},
    )
    assert done.success


def newest_check(instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation:
    records = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(dg.AssetKey("live_forecasts"), "trusted"), limit=1
    )
    event = records[0].event
    assert event
    assert event.dagster_event
    found = event.dagster_event.event_specific_data
    assert isinstance(found, dg.AssetCheckEvaluation)
    return found


def newest(instance: dg.DagsterInstance) -> dg.AssetMaterialization:
    found = instance.fetch_materializations(dg.AssetKey("live_forecasts"), limit=1).records[0]
    assert found.asset_materialization
    return found.asset_materialization


def test_a_check_on_forecasts_passes_warns_fails_and_passes_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        forecast(project, instance)
        well = newest_check(instance)
        assert (well.passed, well.partition) == (True, FIRM.key)
        assert well.metadata["expectations"].value == "10 evaluated"

        def finds(fatal: bool) -> None:
            wrong = ForecastFinding("cohort_glm", "its sales of 2017-10-01 is nan", fatal)
            monkeypatch.setattr(forecast_steps, "check_forecasts", lambda *_: [wrong])

        finds(fatal=False)
        forecast(project, instance)
        assert (newest_check(instance).passed, newest_check(instance).severity.value) == (False, "WARN")

        # A forecast that must not be used is left out, with its reason, and made again by the next run.
        finds(fatal=True)
        forecast(project, instance)
        failed = newest_check(instance)
        assert (failed.passed, failed.severity.value) == (False, "ERROR")
        origin = project.origins("live")[0]
        assert f"cohort_glm at {origin.week}: its sales of 2017-10-01 is nan" in (failed.description or "")
        assert "cohort_glm" not in newest(instance).metadata["tables"].value.records[1].data
        (task,) = State(project, the_plan()).todo(the_plan()["live_forecasts"], units=[FIRM])
        assert task.items == ("cohort_glm",)
        forecast(project, instance, models=["seasonal_naive"], only_missing=False)
        assert not newest_check(instance).passed, "the other model's finding stays"
        monkeypatch.undo()
        forecast(project, instance, only_missing=True)
        assert newest_check(instance).passed


def test_an_identical_backfill_makes_nothing_downstream_stale(project: Project) -> None:
    step = the_plan()["live_forecasts"]
    origin = project.origins("live")[0]
    with dg.DagsterInstance.ephemeral() as instance:
        forecast(project, instance)
        first = newest(instance).tags
        made = State(project, the_plan()).manifest(step, origin, FIRM)
        forecast(project, instance)
        again = State(project, the_plan()).manifest(step, origin, FIRM)
        assert made
        assert again
        assert made.digest == again.digest, "the seconds of a fit are no content"
        assert newest(instance).tags["dagster/data_version"] == first["dagster/data_version"]


def test_dagster_itself_calls_nothing_stale_after_an_identical_run(project: Project) -> None:
    def stale(instance: dg.DagsterInstance) -> StaleStatus:
        resolver = CachingStaleStatusResolver(
            instance, defs.resolve_asset_graph(), LoadingContextForTest(instance)
        )
        return resolver.get_status(dg.AssetKey("live_forecasts"), FIRM.key)

    with dg.DagsterInstance.ephemeral() as instance:
        tables(project, instance)
        instance.report_runless_asset_event(dg.AssetMaterialization("path_priors"))
        forecast(project, instance)
        assert stale(instance) == StaleStatus.FRESH
        tables(project, instance)
        assert stale(instance) == StaleStatus.FRESH
        changed = {"dagster/data_version": "other"}
        instance.report_runless_asset_event(
            dg.AssetMaterialization("cohort_week", partition=FIRM.key, tags=changed)
        )
        assert stale(instance) == StaleStatus.STALE


def tables(project: Project, instance: dg.DagsterInstance) -> None:
    instance.add_dynamic_partitions("firm", [FIRM.key])
    done = dg.materialize(
        [ASSETS["firm_data"]],
        instance=instance,
        partition_key=FIRM.key,
        resources={"project": ProjectResource(root=str(project.root))},
    )
    assert done.success


def test_every_asset_has_an_owner_a_freshness_policy_and_the_columns_of_its_tables() -> None:
    graph, plan = defs.resolve_asset_graph(), the_plan()
    for step in plan:
        for asset in step.asset_needs:
            node = graph.get(dg.AssetKey(asset))
            assert node.owners
            assert node.freshness_policy
            tables = [table for table in step.writes if table.name == asset or not step.assets]
            schemas = {key: value for key, value in node.metadata.items() if "column" in key}
            assert len(schemas) == len(tables), asset
            described = [c.description for schema in schemas.values() for c in schema.columns]
            assert all(described)


def test_how_old_an_asset_may_be_follows_from_the_schedule() -> None:
    def days(step: str, stated: ScheduleConfig) -> tuple[int, int]:
        policy = freshness_of(the_plan()[step], stated)
        assert policy.warn_window
        return policy.warn_window.to_timedelta().days, policy.fail_window.to_timedelta().days

    assert days("live_forecasts", ScheduleConfig()) == days("intake", ScheduleConfig()) == (8, 9)
    assert days("live_forecasts", ScheduleConfig(weekly="0 6 1 * *")) == (32, 33)
    assert days("live_forecasts", ScheduleConfig(weekly="0 6 * * *")) == (2, 3)
    assert days("benchmark_forecasts", ScheduleConfig(weekly="0 6 * * *")) == (93, 94)


def test_the_freshness_daemon_passes_warns_and_fails_as_days_go_by(project: Project) -> None:
    now = datetime(2026, 7, 6, 7, tzinfo=UTC)
    with daemon(project.root) as clock:
        with freeze_time(now):
            clock.instance.report_runless_asset_event(dg.AssetMaterialization("intake"))
        seen = [_freshness(clock, now + timedelta(days=d, hours=1)) for d in (0, 7, 8, 9)]
    assert seen == [FreshnessState.PASS, FreshnessState.PASS, FreshnessState.WARN, FreshnessState.FAIL]


def _freshness(clock: Daemon, now: datetime) -> FreshnessState:
    from dagster._daemon.freshness import FreshnessDaemon

    key = dg.AssetKey("intake")
    with freeze_time(now):
        list(FreshnessDaemon().run_iteration(clock.workspace))
    return clock.instance.get_freshness_state_records([key])[key].freshness_state


def test_a_firms_forecast_links_to_its_page(project: Project) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        forecast(project, instance)
        page = newest(instance).metadata["report page"]
        assert isinstance(page, dg.UrlMetadataValue)
        place = unquote(page.value.removeprefix("https://reports.example/shop/"))
        assert project.report.parent / place == project.page_of(FIRM)
    plain = new_root(project)
    assert plain.link(plain.page_of(FIRM)) == plain.page_of(FIRM), "without an address, the path"


def new_root(project: Project) -> Project:
    other = Project(Path(f"{project.root}-plain"))
    other.root.mkdir()
    text = (project.root / "cbmt.toml").read_text()
    (other.root / "cbmt.toml").write_text(text[: text.index("[report]")])
    return other
