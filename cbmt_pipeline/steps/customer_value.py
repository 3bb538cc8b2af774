"""Customer value: by cohort, of today's base, of future cohorts, and per customer by age."""

from cbmt_core.names import Unit
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Origin
from cbmt_core.value import first_sales, read_spend
from cbmt_core.value.tables import VALUE_TABLES, value_tables
from cbmt_pipeline.manifest import digest_of
from cbmt_pipeline.plan import Step
from cbmt_pipeline.planning import file_digest, planned
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    base = planned(work, customers=True)
    if base is None:
        return Made({name: TABLES[name].empty() for name in VALUE_TABLES})
    config = work.project.config.value
    spend = None
    if config.spend is not None:
        firms = len(list(work.project.intake.units()))
        spend = read_spend(work.con, work.project.root / config.spend, work.firm.name, firms)
    first = first_sales(
        work.con, work.project.lake.relation(TABLES["cohort_week"], unit=work.firm), base.panel
    )
    tables = value_tables(base.panel, base.draws, config.terms, spend, base.keys, first)
    value = tables["customer_base_value"].set_index("part")["value"]
    return Made(
        dict(tables), metadata={name: float(value[name]) for name in ("existing", "to_come", "total")}
    )


def _settings(project: Project, unit: Unit | None, origin: Origin | None) -> dict[str, str]:
    """Digests of [value] in cbmt.toml and of the spend file."""
    value = project.config.value
    return {"value": digest_of(value.model_dump(mode="json")) + file_digest(project, value.spend)}


STEP = Step(
    name="customer_value",
    make=make,
    description="Value of cohorts, of today's customers and of those to come, from the draws of the live forecast; "
    "retention; and, with acquisition spend, what a customer costs and when that is earned back.",
    group="live",
    writes=tuple(TABLES[name] for name in VALUE_TABLES),
    needs=("forecast_bands", "live_forecasts", "cohort_week", "transactions"),
    code=("cbmt_core.value", "cbmt_core.compose"),
    purposes=("live",),
    batch=8,
    settings=_settings,
)
