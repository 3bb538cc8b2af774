"""Notices of failed runs: which firm, which step, why, and what to do."""

import json
import os
import subprocess
import time
import urllib.request
from dataclasses import dataclass

import dagster as dg
from dagster._core.storage.tags import WILL_RETRY_TAG

from cbmt_core.names import Unit
from cbmt_core.operation import NoticeConfig
from cbmt_pipeline.instance import ATTENDED
from cbmt_pipeline.partitions import FIRM_PARTITIONS
from cbmt_pipeline.plan import Plan, Step, the_plan
from cbmt_pipeline.resources import ProjectResource

__all__ = ["Notice", "failure_notice_sensor", "notice_of", "send"]

MOST_FIRMS = 20
"""Maximum number of firms that are listed."""
ATTEMPTS, TIMEOUT = 3, 20


@dataclass(frozen=True)
class Notice:
    """A notice of one failed run."""

    run_id: str
    project: str
    steps: tuple[str, ...]
    firms: dict[str, str]
    """Firm -> why it failed; empty where the failure is of no single firm."""
    reason: str
    advice: str

    @property
    def text(self) -> str:
        """The summary that people read."""
        steps = ", ".join(self.steps) or "a run"
        lines = [f"CBMT Pipeline, {self.project}: {steps} failed"]
        if self.firms:
            lines[0] += (
                f" for {len(self.firms)} firm{'s' if len(self.firms) > 1 else ''}; the others are done"
            )
            lines += [f"- {firm}: {why}" for firm, why in list(self.firms.items())[:MOST_FIRMS]]
            if len(self.firms) > MOST_FIRMS:
                lines.append(f"- and {len(self.firms) - MOST_FIRMS} more")
        else:
            lines.append(f"Why: {self.reason}")
        return "\n".join([*lines, f"What to do: {self.advice}", f"Run: {self.run_id}"])

    def payload(self) -> dict[str, object]:
        """The same for programs; `text` is what chat services show."""
        return {
            "text": self.text,
            "run_id": self.run_id,
            "project": self.project,
            "steps": list(self.steps),
            "firms": self.firms,
            "reason": self.reason,
            "advice": self.advice,
        }


def notice_of(
    instance: dg.DagsterInstance, run: dg.DagsterRun, project: str, plan: Plan | None = None
) -> Notice:
    """The notice about a failed run, from its events."""
    plan = plan or the_plan()
    by_name = {step.name: step for step in plan}
    firms: dict[str, str] = {}
    reasons, failed = [], []
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        event = entry.dagster_event
        if event is None:
            continue
        failed.append(event.step_key or "")
        failure = event.step_failure_data.user_failure_data
        for firm, why in (failure.metadata if failure else {}).items():
            firms[firm] = str(why.value)
        reasons.append(failure.description if failure and failure.description else _innermost(event))
    if not failed:
        reasons = _why_it_ended(instance, run)
    own = _only_partition(run)
    if own and not firms:
        firms[Unit.from_key(own).name] = "\n".join(filter(None, reasons))
    reason = "\n".join(filter(None, reasons)) or "its process ended without an error message"
    steps = tuple(name for name in failed if name)
    advice = _advice([by_name.get(n) for n in steps], firms)
    if run.tags.get(WILL_RETRY_TAG) == "true":
        advice = "nothing yet: the daemon starts it again. If that fails too, there is another notice."
    return Notice(run.run_id, project, steps, firms, reason, advice)


def _only_partition(run: dg.DagsterRun) -> str | None:
    """The partition key of a run of one firm."""
    first, last = (run.tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end"))
    of_range = first if first == last else None
    return (
        run.tags.get(f"dagster/partition/{FIRM_PARTITIONS}") or run.tags.get("dagster/partition") or of_range
    )


def _why_it_ended(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[str]:
    """Why a run failed without a failed step: the daemon's message and the last event."""
    reasons = []
    for entry in instance.all_logs(
        run.run_id, of_type={dg.DagsterEventType.ENGINE_EVENT, dg.DagsterEventType.RUN_FAILURE}
    ):
        event = entry.dagster_event
        if event is None:
            continue
        if event.is_engine_event:
            error = event.engine_event_data.error
            reasons += [error.message.strip().splitlines()[0]] if error and error.message.strip() else []
        else:
            reasons.append(event.message or "")
    return list(dict.fromkeys(reasons))


def _innermost(event: dg.DagsterEvent) -> str:
    error = event.step_failure_data.error
    while error and error.cause:
        error = error.cause
    return error.message.strip() if error else ""


def _advice(steps: list[Step | None], firms: dict[str, str]) -> str:
    if not steps:
        return "start it again (Runs > this run > Re-execute, or `cbmt run`): it resumes where it stopped."
    if any(step and step.group == "data" for step in steps):
        if firms:
            return (
                "fix the firm's source file, or change [quality] in cbmt.toml if the limit is wrong for you; the "
                "table quarantine lists the rows. Then `cbmt run`, or materialise the failed partitions in the UI."
            )
        return "fix the source that is named; its earlier data and every other source are as they were."
    return (
        "look at the run's log in the UI; `cbmt doctor` checks disk, folders and settings. Then materialise the failed "
        "partitions in the UI, or `cbmt run`: only what failed is made again."
    )


def send(notice: Notice, to: NoticeConfig) -> list[str]:
    """Post the notice, or hand it to the command; returns where it went. Raises if it could not be delivered."""
    went = []
    if to.webhook:
        _post(os.path.expandvars(to.webhook), notice)
        went.append("webhook")
    if to.command:
        environment = os.environ | {"CBMT_RUN_ID": notice.run_id, "CBMT_FIRMS": ", ".join(notice.firms)}
        subprocess.run(
            to.command, shell=True, check=True, input=notice.text, text=True, timeout=TIMEOUT, env=environment
        )
        went.append("command")
    return went


def _post(url: str, notice: Notice) -> None:
    body = json.dumps(notice.payload()).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            urllib.request.urlopen(request, timeout=TIMEOUT).close()
            return
        except OSError:
            if attempt == ATTEMPTS:
                raise
            time.sleep(attempt)


@dg.run_failure_sensor(
    name="failure_notice",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Sends a summary of every failed run to the webhook or command of [notice] in cbmt.toml.",
)
def failure_notice_sensor(
    context: dg.RunFailureSensorContext, project: ProjectResource
) -> dg.SkipReason | None:
    run = context.dagster_run
    if ATTENDED in run.tags and not run.parent_run_id:
        return dg.SkipReason("the command or job that did this run has said why it failed")
    opened = project.open()
    notice = notice_of(context.instance, run, opened.root.name)
    context.log.error(notice.text)
    if not send(notice, opened.config.notice):
        return dg.SkipReason("[notice] in cbmt.toml names neither a webhook nor a command")
    return None
