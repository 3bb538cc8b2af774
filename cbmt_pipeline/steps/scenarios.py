"""Scenarios of cbmt.toml, tornado, plan and targets, on the draws of the live forecast."""

from cbmt_core.errors import ConfigError
from cbmt_core.names import Unit
from cbmt_core.scenarios.tables import PLAN_TABLES, past_year, scenario_tables
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Origin
from cbmt_pipeline.manifest import digest_of
from cbmt_pipeline.plan import Step
from cbmt_pipeline.planning import file_digest, named_scenarios, plan_of, planned
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    base = planned(work)
    if base is None:
        return Made({name: TABLES[name].empty() for name in PLAN_TABLES}, metadata={"scenarios": 0})
    config = work.project.config
    if (
        config.plan is not None
        and config.plan.sales is not None
        and len(list(work.project.intake.units())) > 1
    ):
        raise ConfigError(
            "[plan] sales is one number, and the project has several firms: state [plan.firms] or a file by firm"
        )
    cohorts = work.project.lake.relation(TABLES["cohort_week"], unit=work.firm)
    tables = scenario_tables(
        base.draws,
        named_scenarios(work.project, work.firm.name),
        plan_of(work.project, work.con, base.panel, base.draws),
        config.plan.probability if config.plan else 0.8,
        base.keys,
        past_year(work.con, cohorts, work.firm.name, work.at.week),
    )
    rows = tables["scenario"]
    metadata = {"scenarios": int((rows["kind"] == "named").sum()), "sales": float(rows["sales"].iloc[0])}
    if len(tables["target"]):
        metadata["plan_probability"] = float(tables["target"]["probability"].iloc[0])
    return Made(dict(tables), metadata=metadata)


def _settings(project: Project, unit: Unit | None, origin: Origin | None) -> dict[str, str]:
    """Digests of the firm's scenarios and plan in cbmt.toml."""
    assert unit is not None
    plan = project.config.plan
    named = [(scenario.name, scenario.description) for scenario in named_scenarios(project, unit.name)]
    return {
        "scenarios": digest_of(named),
        "plan": digest_of(plan.model_dump(mode="json") if plan else None)
        + file_digest(project, plan.file if plan else None),
    }


STEP = Step(
    name="scenarios",
    make=make,
    description="What if: scenarios of cbmt.toml and each driver by 10 %, on the same draws as the live forecast; "
    "how likely the plan is, and how far drivers must move for it.",
    group="live",
    writes=tuple(TABLES[name] for name in PLAN_TABLES),
    needs=("forecast_bands", "live_forecasts", "cohort_week"),
    code=("cbmt_core.scenarios", "cbmt_core.compose"),
    purposes=("live",),
    batch=8,
    settings=_settings,
)
