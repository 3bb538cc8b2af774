"""Failure notices: which firm, which step, why and what to do, by webhook and by command."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._utils.error import serializable_error_info_from_exc_info
from helpers.materialised import ASSETS
from helpers.small_project import FIRMS, new_project, orders_csv

from cbmt_core.names import Unit
from cbmt_core.operation import NoticeConfig
from cbmt_pipeline.instance import ATTENDED
from cbmt_pipeline.notices import Notice, failure_notice_sensor, notice_of, send
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource

BAD = FIRMS[2]
SENT = Notice("run", "shop", ("firm_data",), {"A, B & Söhne": "50 % bad rows"}, "1 of 2", "mend it")


class Failed:
    """A project of which one firm's run failed, on an instance of its own."""

    def __init__(self, root: Path) -> None:
        self.project = new_project(root)
        (root / "orders/2.csv").write_text(orders_csv(BAD, amount="oops"))
        self.project.intake.update(self.project.config, root)
        self.instance = dg.DagsterInstance.ephemeral()
        keys = [unit.key for unit in self.project.intake.units()]
        self.instance.add_dynamic_partitions("firm", keys)
        self.result = dg.materialize(
            [ASSETS["firm_data"]],
            instance=self.instance,
            resources={"project": ProjectResource(root=str(root))},
            tags={
                "dagster/asset_partition_range_start": keys[0],
                "dagster/asset_partition_range_end": keys[-1],
            },
            raise_on_error=False,
        )

    @property
    def run(self) -> dg.DagsterRun:
        return self.result.dagster_run


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Failed:
    return Failed(tmp_path_factory.mktemp("failed"))


@pytest.fixture
def listener() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """A server that refuses the first request and takes the next, and what it was sent."""
    got: list[dict[str, object]] = []
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if len(asked) > 1:
                got.append(json.loads(body))
            self.send_response(200 if got else 503)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", got
    server.shutdown()


def test_a_notice_names_firm_step_reason_and_remedy(failed: Failed) -> None:
    assert not failed.result.success
    notice = notice_of(failed.instance, failed.run, "shop")
    assert list(notice.firms) == [BAD]
    assert notice.steps == ("firm_data",)
    assert "unparseable amount" in notice.text or "bad" in notice.firms[BAD]
    lines = notice.text.splitlines()
    assert lines[0] == "CBMT Pipeline, shop: firm_data failed for 1 firm; the others are done"
    assert lines[1].startswith(f"- {BAD}: ")
    assert "quarantine" in notice.text
    assert failed.run.run_id in lines[-1]


def test_a_run_whose_process_vanished_is_reported_too() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(
            dg.JobDefinition(name="empty", graph_def=dg.GraphDefinition(name="empty"))
        )
        instance.report_run_failed(run, "process 17, which did this run, was stopped")
        notice = notice_of(instance, run, "shop")
    assert "process 17" in notice.text
    assert "resumes where it stopped" in notice.advice


def test_a_run_that_could_not_be_started_names_its_firm_its_cause_and_the_retry() -> None:
    """As the daemon leaves it when the code server does not answer in time."""
    key = FIRMS[1]
    tags = {f"dagster/asset_partition_range_{end}": key for end in ("start", "end")}
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(
            dg.JobDefinition(name="empty", graph_def=dg.GraphDefinition(name="empty")),
            tags=tags | {"dagster/will_retry": "true"},
        )
        try:
            raise TimeoutError("Deadline Exceeded")
        except TimeoutError:
            error = serializable_error_info_from_exc_info(sys.exc_info())
        instance.report_engine_event("Unexpected error", run, engine_event_data=EngineEventData(error=error))
        instance.report_run_failed(run)
        notice = notice_of(instance, run, "shop")
    assert list(notice.firms) == [Unit.from_key(key).name]
    assert "Deadline Exceeded" in notice.text
    assert "starts it again" in notice.advice
    assert "Re-execute" not in notice.text


def test_many_firms_are_counted_and_the_first_named() -> None:
    notice = Notice("run", "shop", ("firm_data",), {f"firm {k:02}": "bad" for k in range(30)}, "", "")
    assert "for 30 firms" in notice.text
    assert "firm 19" in notice.text
    assert "firm 20" not in notice.text
    assert "and 10 more" in notice.text


def test_a_webhook_gets_the_notice_though_it_was_busy_at_first(
    listener: tuple[str, list[dict[str, object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, got = listener
    monkeypatch.setenv("HOOK", url)
    assert send(SENT, NoticeConfig(webhook="${HOOK}")) == ["webhook"]
    assert got[0]["text"] == SENT.text
    assert got[0]["firms"] == SENT.firms


def test_a_webhook_that_never_answers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cbmt_pipeline.notices.ATTEMPTS", 1)
    with pytest.raises(OSError, match="refused"):
        send(SENT, NoticeConfig(webhook="http://127.0.0.1:9/hook"))


def test_the_sensor_hands_the_summary_to_the_command(failed: Failed, tmp_path: Path) -> None:
    root = failed.project.root
    printed = tmp_path / "told.txt"
    with (root / "cbmt.toml").open("a") as file:
        file.write(f"\n[notice]\ncommand = 'cat > {printed}; echo \"$CBMT_FIRMS\" >> {printed}'\n")

    def sensed(tags: dict[str, str]) -> None:
        context = dg.build_run_status_sensor_context(
            sensor_name="failure_notice",
            dagster_instance=failed.instance,
            dagster_run=failed.run.with_tags({**failed.run.tags, **tags}),
            dagster_event=failed.result.get_run_failure_event(),
            resources={"project": ProjectResource(root=str(root))},
        ).for_run_failure()
        failure_notice_sensor(context)

    sensed({ATTENDED: "true"})
    assert not printed.exists(), "who ran it was told"
    sensed({})
    text = printed.read_text()
    assert text.startswith(f"CBMT Pipeline, {Project(root).root.name}: firm_data failed for 1 firm")
    assert text.rstrip().endswith(BAD)
