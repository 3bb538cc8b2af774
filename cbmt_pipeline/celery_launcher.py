"""Runs on Celery workers: Dagster's launcher, which also notices that a worker is gone."""

from dagster import DagsterRun
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

__all__ = ["WatchfulCeleryRunLauncher"]

PATIENCE = 5.0
"""Timeout in seconds for workers to report their active tasks."""


class WatchfulCeleryRunLauncher(CeleryRunLauncher):
    """`CeleryRunLauncher`, but a run that no living worker is doing counts as failed.

    Celery's result store says STARTED for ever of a task whose worker was killed, or whose machine is gone. So the
    workers themselves are asked. Dagster's run monitoring then marks the run as failed, and `run_retries` starts it
    again on another worker.
    """

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        task = run.tags.get(DAGSTER_CELERY_TASK_ID_TAG)
        if task is None:
            # Runs of `cbmt run` are not executed by workers.
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        health = super().check_run_worker_health(run)
        if health.status != WorkerStatus.RUNNING or self._is_being_done(task):
            return health
        # It may have ended between the two queries.
        again = super().check_run_worker_health(run)
        if again.status != WorkerStatus.RUNNING:
            return again
        return CheckRunHealthResult(
            WorkerStatus.FAILED, "No worker that answers is doing this run: its worker is gone."
        )

    def _is_being_done(self, task: str) -> bool:
        answers = self.celery.control.inspect(timeout=PATIENCE).active() or {}
        return any(task == one["id"] for tasks in answers.values() for one in tasks)
