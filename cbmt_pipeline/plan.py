"""The plan of work: the steps with their inputs and outputs, and which of them are missing or stale.

The Dagster graph, the order of `cbmt run`, staleness and what the warehouse waits for all follow from the plan.
A step is one file in `cbmt_pipeline/steps/`; see docs/add-a-step.md.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from cbmt_core.names import Unit
from cbmt_core.schema import Table
from cbmt_core.timeline import Origin, Purpose
from cbmt_pipeline.manifest import Manifest, digest_of
from cbmt_pipeline.project import SEED, Project

if TYPE_CHECKING:
    from cbmt_pipeline.work import Made, Work

__all__ = ["ALL", "Plan", "State", "Step", "Task", "the_plan"]

Items = Mapping[str, str]

ALL = "*"


@dataclass(frozen=True, eq=False)
class Step:
    """One piece of work.

    Args:
        make: the function that does the work; returns tables and facts about them for the UI.
        writes: the tables it makes.
        needs: assets it reads; `ALL` for every asset that does not need this one.
        version: raise it when what the step computes changes, so that it is made again.
        code: modules (or packages) of `cbmt_core` that it computes with; a test compares their digest, and
            says when `version` should have been raised.
        by_firm: one piece of work a firm (a Dagster partition), or one across all firms.
        purposes: purposes of the origins it is carried out at; none for steps without origins.
        sees_target: reads the weeks after the origin too, to score forecasts of them.
        batch: firms in one Dagster run; must differ from the batch of the steps it needs.
        options: settings of a run (fields of `work.Options`) that it understands.
        settings: further inputs, name -> digest, such as part of the configuration. Under the name of a step that it
            needs: a digest of what it takes from that step.
        items: the models it makes -> what each is made with; None for a step without items.
        enough: whether an item made with `have` can be used where `want` is asked for.
        only_for: the only models that need its outputs; a run of other models skips it.
        stale: whether it must be carried out, if this does not follow from its manifest. stands: whether its
        outputs outside the lake still exist and are valid (not so in a restored backup). origins: the origins it is
        carried out at, if they do not follow from `purposes`.
        serves: the origins of this step that a step at a given origin reads; by default the same one.
        assets: its Dagster assets and what each needs, where it has several.
        promises: checks of each item of a firm; an item that fails one is left out or shown as a warning.
        prepare: the part of the work that is cheaper for many firms together; it stores its result in each firm's
            `Work.prepared`, which `make` uses.
        together: which of these firms, from the first on, to prepare together; for steps with `prepare`.
    """

    name: str
    make: Callable[[Work], Made | Iterator[Made]]
    description: str
    group: str
    writes: tuple[Table, ...] = ()
    needs: tuple[str, ...] = ()
    version: str = "1"
    code: tuple[str, ...] = ()
    by_firm: bool = True
    purposes: tuple[Purpose, ...] = ()
    sees_target: bool = False
    batch: int = 1
    kinds: frozenset[str] = frozenset({"python", "parquet"})
    options: tuple[str, ...] = ()
    settings: Callable[[Project, Unit | None, Origin | None], Items] | None = None
    items: Callable[[Project], Items] | None = None
    enough: Callable[[str, str], bool] = str.__eq__
    only_for: tuple[str, ...] = ()
    stale: Callable[[Project], bool] | None = None
    stands: Callable[[Project], bool] | None = None
    origins: Callable[[Project], list[Origin]] | None = None
    serves: Callable[[Project, Origin], list[Origin]] | None = None
    assets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    promises: tuple[str, ...] = ()
    prepare: Callable[[Sequence[Work]], None] | None = None
    together: Callable[[Project, Sequence[Unit]], int] | None = None

    @property
    def asset_needs(self) -> dict[str, tuple[str, ...]]:
        """The needs of every asset of the step."""
        return dict(self.assets) or {self.name: self.needs}

    @property
    def has_origins(self) -> bool:
        return bool(self.purposes or self.origins)

    def at(self, project: Project) -> list[Origin | None]:
        """The origins that the step is carried out at now."""
        if self.origins:
            return list(self.origins(project))
        if not self.purposes:
            return [None]
        return [origin for purpose in self.purposes for origin in project.origins(purpose)]

    def read_at(self, project: Project, origin: Origin) -> list[Origin]:
        """The origins of this step that a step at `origin` reads."""
        if self.serves:
            return self.serves(project, origin)
        return [own for own in self.at(project) if own == origin]

    def part(self, origin: Origin | None) -> str:
        """Name of its files and manifests. A week can be an origin for several purposes, at different times."""
        return f"{self.name}-{origin.purpose}" if origin and len(self.purposes) > 1 else self.name


@dataclass(frozen=True)
class Task:
    """A step to be carried out for one firm (or all) at one origin (or none)."""

    step: Step
    origin: Origin | None
    unit: Unit | None
    items: tuple[str, ...] = ()


class Plan:
    """All steps, each after those it needs."""

    def __init__(self, steps: Iterable[Step]) -> None:
        found = {step.name: step for step in steps}
        self._of_asset = {asset: step for step in found.values() for asset in step.asset_needs}
        self.steps: tuple[Step, ...] = tuple(self._ordered(found))
        for step in self.steps:
            self._check_batch(step)

    @classmethod
    def of_package(cls, package: str) -> Plan:
        """The steps (`STEP`) of every module of a package."""
        folder = import_module(package).__path__
        modules = [import_module(f"{package}.{info.name}") for info in pkgutil.iter_modules(folder)]
        return cls(module.STEP for module in modules if hasattr(module, "STEP"))

    def __getitem__(self, name: str) -> Step:
        return next(step for step in self.steps if step.name == name)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def needed(self, step: Step) -> list[Step]:
        """The steps that a step reads, without itself."""
        assets = {need for needs in self.asset_needs(step).values() for need in needs}
        unknown = assets - set(self._of_asset)
        if unknown:
            raise ValueError(f"step {step.name} needs {', '.join(sorted(unknown))}, which no step makes")
        found = {self._of_asset[asset].name: self._of_asset[asset] for asset in sorted(assets)}
        return [other for other in found.values() if other is not step]

    def _check_batch(self, step: Step) -> None:
        """Refuse equal batch sizes of a step and its needs: Dagster would put both into one run, where one firm's
        failure in the first fails the second for all firms."""
        same = [other.name for other in self.needed(step) if other.by_firm and other.batch == step.batch]
        if step.by_firm and step.batch > 1 and same:
            raise ValueError(
                f"step {step.name} needs {', '.join(same)} and has the same batch, {step.batch}: choose another, or "
                "one bad firm fails it for all firms of a run"
            )

    def asset_needs(self, step: Step) -> dict[str, tuple[str, ...]]:
        """Every asset of a step with the assets it needs, `ALL` written out."""
        if ALL not in step.needs:
            return step.asset_needs
        own, grown = set(step.asset_needs), True
        while grown:
            more = {a for a, other in self._of_asset.items() if own & set(other.needs)} - own
            own, grown = own | more, bool(more)
        return {asset: tuple(a for a in self._of_asset if a not in own) for asset in step.asset_needs}

    def edges(self, step: Step) -> dict[str, tuple[str, ...]]:
        """Every asset of a step with the assets it needs, without those that another needed asset needs itself.

        The Dagster graph is drawn from these. A step by firm keeps its needs of the same firm, also where a step
        across firms lies in between.
        """
        return {asset: self._reduced(step, needs) for asset, needs in self.asset_needs(step).items()}

    def _reduced(self, step: Step, needs: tuple[str, ...]) -> tuple[str, ...]:
        def comes_before(early: str, late: str) -> bool:
            between = self._of_asset[late]
            return (between.by_firm or not step.by_firm) and early in self._before(late)

        return tuple(n for n in needs if not any(comes_before(n, other) for other in needs if other != n))

    def _before(self, asset: str) -> set[str]:
        """All assets that an asset depends on, directly or not. The assets of one step are made together."""
        step = self._of_asset[asset]
        found: set[str] = set()
        for need in self.asset_needs(step)[asset]:
            other = self._of_asset[need]
            found |= {need} if other is step else set(other.asset_needs)
            found |= self._before(need)
        return found - ({asset} if step.assets else set(step.asset_needs))

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Every table that a step writes."""
        return {table.name: table for step in self.steps for table in step.writes}

    def writers(self, table: str) -> list[Step]:
        return [step for step in self.steps if table in {one.name for one in step.writes}]

    def _ordered(self, steps: Mapping[str, Step]) -> Iterator[Step]:
        done: set[str] = set()

        def visit(step: Step, above: tuple[str, ...]) -> Iterator[Step]:
            if step.name in above:
                raise ValueError(f"steps need one another in a circle: {' -> '.join((*above, step.name))}")
            if step.name in done:
                return
            for other in self.needed(step):
                yield from visit(other, (*above, step.name))
            done.add(step.name)
            yield step

        for name in sorted(steps):
            yield from visit(steps[name], ())


class State:
    """State of a project: which outputs are current and which are stale. Each manifest is read once.

    Args:
        seed: the seed of the models; outputs made with another one are stale.
    """

    def __init__(self, project: Project, plan: Plan, seed: int = SEED) -> None:
        self.project, self.plan, self.seed = project, plan, seed
        self._read: dict[tuple[str, Origin | None, Unit | None], Manifest | None] = {}
        self._panel: dict[tuple[str, Origin | None], dict[Unit, Manifest]] = {}
        self._origins: dict[tuple[str, Origin | None], list[Origin | None]] = {}

    def manifest(self, step: Step, origin: Origin | None, unit: Unit | None) -> Manifest | None:
        key = (step.name, origin, unit)
        if key not in self._read:
            week = origin.week if origin else None
            self._read[key] = self.project.manifests.read(step.part(origin), week, unit)
        return self._read[key]

    def of_firms(self, step: Step, origin: Origin | None) -> dict[Unit, Manifest]:
        key = (step.name, origin)
        if key not in self._panel:
            week = origin.week if origin else None
            self._panel[key] = dict(self.project.manifests.of_firms(step.part(origin), week))
        return self._panel[key]

    def inputs(self, step: Step, origin: Origin | None, unit: Unit | None) -> dict[str, str]:
        """The step's present inputs: its settings, and the outputs of the steps it needs, as digests."""
        found = dict(step.settings(self.project, unit, origin)) if step.settings else {}
        if "seed" in step.options:
            found["seed"] = str(self.seed)
        if origin:
            # A study with a longer holdout has the same origin and a longer horizon.
            found["horizon"] = str(origin.horizon)
        for other in self.plan.needed(step):
            if other.name in found:
                continue
            digests = [self._output(step, origin, other, at, unit) for at in self._read_at(other, origin)]
            found[other.name] = digests[0] if len(digests) == 1 else digest_of(digests)
        return found

    def _read_at(self, other: Step, origin: Origin | None) -> list[Origin | None]:
        """The origins of a step that another step at `origin` reads."""
        key = (other.name, origin)
        if key not in self._origins:
            own: list[Origin | None] = [None]
            if other.has_origins:
                own = [*other.read_at(self.project, origin)] if origin else other.at(self.project)
            self._origins[key] = own
        return self._origins[key]

    def _output(
        self, step: Step, origin: Origin | None, other: Step, at: Origin | None, unit: Unit | None
    ) -> str:
        """Digest of the outputs of `other` at `at`, as far as `step` at `origin` reads them."""

        def seen(manifest: Manifest | None) -> str:
            if manifest is None or (origin and manifest.rejected and not manifest.as_of):
                return ""
            if origin and manifest.as_of:
                return manifest.up_to(origin.target.last if step.sees_target else origin.week)
            return manifest.digest

        if not other.by_firm:
            return seen(self.manifest(other, at, None))
        if step.by_firm:
            return seen(self.manifest(other, at, unit))
        digests = {firm.slug: seen(manifest) for firm, manifest in self.of_firms(other, at).items()}
        return digest_of({slug: digest for slug, digest in digests.items() if digest})

    def is_current(self, step: Step, origin: Origin | None, unit: Unit | None) -> Manifest | None:
        """The manifest, if this version made it from the present inputs; otherwise None."""
        made = self.manifest(step, origin, unit)
        if made is None or made.rejected or made.version != step.version:
            return None
        if step.stands and not step.stands(self.project):
            return None
        return made if made.inputs == self.inputs(step, origin, unit) else None

    def missing(self, step: Step, origin: Origin | None, unit: Unit | None) -> tuple[str, ...] | None:
        """Items to make; empty for a step without items that must be made; None where all is up to date."""
        if step.stale:
            return () if step.stale(self.project) else None
        current = self.is_current(step, origin, unit)
        if step.items is None:
            return None if current else ()
        wanted = step.items(self.project)
        have = current.items if current else {}
        lacking = tuple(k for k, want in wanted.items() if k not in have or not step.enough(have[k], want))
        return lacking or None

    def ready(self, step: Step, origin: Origin | None, unit: Unit | None) -> bool:
        """Whether the inputs exist: a trusted output of each step by firm that it needs.

        A firm that has not delivered the weeks needed at an origin (for a study, its holdout too) is not ready.
        """
        for other in self.plan.needed(step):
            if not other.by_firm or other.has_origins or not step.by_firm:
                continue
            made = self.manifest(other, None, unit)
            if made is None or made.rejected:
                return False
            if origin and made.as_of and not made.reaches(origin.needed_week):
                return False
        return True

    def todo(
        self,
        step: Step,
        *,
        units: Sequence[Unit] | None = None,
        purposes: Sequence[Purpose] | None = None,
        everything: bool = False,
    ) -> list[Task]:
        """The tasks of a step to carry out: missing and stale ones, or with `everything` all of them.

        Args:
            units: only these firms; all firms with data unless stated.
            purposes: only at origins for these purposes; steps without origins are always included.
        """
        tasks = []
        for origin in step.at(self.project):
            if origin and purposes is not None and origin.purpose not in purposes:
                continue
            for unit in self._units(step, units):
                if not self.ready(step, origin, unit):
                    continue
                lacking = self.missing(step, origin, unit)
                if everything and lacking is None:
                    lacking = tuple(step.items(self.project)) if step.items else ()
                if lacking is not None:
                    tasks.append(Task(step, origin, unit, lacking))
        return tasks

    def _units(self, step: Step, units: Sequence[Unit] | None) -> Sequence[Unit | None]:
        if not step.by_firm:
            return [None]
        return list(self.project.intake.units()) if units is None else units


_PLANS: dict[str, Plan] = {}


def the_plan() -> Plan:
    """The plan with the product's own steps."""
    if not _PLANS:
        _PLANS["steps"] = Plan.of_package("cbmt_pipeline.steps")
    return _PLANS["steps"]
