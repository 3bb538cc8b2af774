"""The files of deploy/: services that systemd accepts, settings that Dagster accepts, values that name what exists."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import dagster as dg
import pytest
import yaml

from cbmt_core.operation import is_cron

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted(DEPLOY.glob("*/*.service"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_the_services(unit: Path, tmp_path: Path) -> None:
    copied = tmp_path / unit.name.replace("@.", "@1.")
    # systemd looks for the program and the folder, which are elsewhere here.
    text = re.sub(r"/\S+/bin/\S+", "/bin/true", unit.read_text()).replace("/srv/shop", str(tmp_path))
    copied.write_text(text.replace("User=cbmt", "User=root"))
    done = subprocess.run(["systemd-analyze", "verify", str(copied)], capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines() if copied.name in line or tmp_path.name in line] == []


def test_services_start_programs_that_are_installed() -> None:
    assert len(UNITS) == 3
    for unit in UNITS:
        (program,) = re.findall(r"^ExecStart=\S+/bin/(\S+)", unit.read_text(), re.MULTILINE)
        assert shutil.which(program, path=str(Path(sys.executable).parent)), program


def test_cron_lines_are_cron_lines() -> None:
    lines = [line for line in (DEPLOY / "one-machine/crontab").read_text().splitlines() if "cbmt run" in line]
    assert len(lines) == 2
    assert all(is_cron(" ".join(line.split()[:5])) for line in lines)


def test_dagster_accepts_the_settings_of_celery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dagster_celery", reason="needs the extra [celery]")
    settings = yaml.safe_load((DEPLOY / "celery/dagster.yaml").read_text())
    del settings["storage"]  # would connect
    monkeypatch.setenv("CBMT_REDIS", "redis://127.0.0.1:1/0")
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(settings))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert type(instance.run_launcher).__name__ == "WatchfulCeleryRunLauncher"
        assert instance.run_launcher.supports_check_run_worker_health
        assert instance.run_monitoring_max_resume_run_attempts == 0
        assert instance.run_retries_enabled
        assert not instance.get_settings("run_retries")["retry_on_asset_or_op_failure"]


def test_kubernetes_values_name_the_code_location_and_the_volume() -> None:
    values = yaml.safe_load((DEPLOY / "kubernetes/values.yaml").read_text())
    (location,) = values["dagster-user-deployments"]["deployments"]
    assert hasattr(import_module(location["dagsterApiGrpcArgs"][1]), "defs")
    claim = yaml.safe_load((DEPLOY / "kubernetes/project-volume.yaml").read_text())
    assert location["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert location["volumeMounts"][0]["mountPath"] == location["env"]["CBMT_PROJECT"]
    assert values["runLauncher"]["type"] == "K8sRunLauncher"


def test_a_run_in_kubernetes_is_a_pod_with_the_project_its_secrets_and_its_share_of_the_machine() -> None:
    """The job that Dagster's launcher would create from these values; no cluster is asked."""
    pytest.importorskip("dagster_k8s", reason="needs the extra [kubernetes]")
    from dagster_k8s.container_context import K8sContainerContext
    from dagster_k8s.job import DagsterK8sJobConfig, construct_dagster_k8s_job

    values = yaml.safe_load((DEPLOY / "kubernetes/values.yaml").read_text())
    (location,) = values["dagster-user-deployments"]["deployments"]
    image = f"{location['image']['repository']}:{location['image']['tag']}"
    # What the chart hands on with includeConfigInLaunchedRuns, and what it says of the launcher.
    assert location["includeConfigInLaunchedRuns"]["enabled"]
    of_location = K8sContainerContext.create_from_config(
        {
            "k8s": {
                "image_pull_policy": location["image"]["pullPolicy"],
                "env_vars": [f"{name}={value}" for name, value in location["env"].items()],
                "env_secrets": [secret["name"] for secret in location["envSecrets"]],
                "volumes": location["volumes"],
                "volume_mounts": location["volumeMounts"],
                "resources": location["resources"],
            }
        }
    )
    launcher = values["runLauncher"].get("config", {}).get("k8sRunLauncher", {})
    context = K8sContainerContext(resources=launcher.get("resources", {}), namespace="cbmt").merge(
        of_location
    )
    job = construct_dagster_k8s_job(
        DagsterK8sJobConfig(image, "/opt/dagster/dagster_home", instance_config_map="dagster-instance"),
        ["dagster", "api", "execute_run"],
        "dagster-run-1",
        user_defined_k8s_config=context.run_k8s_config,
        component="run_worker",
    ).to_dict()
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == image
    assert {"name": "CBMT_PROJECT", "value": "/project"}.items() <= next(
        variable for variable in container["env"] if variable["name"] == "CBMT_PROJECT"
    ).items()
    assert "cbmt" in {
        source["secret_ref"]["name"] for source in container["env_from"] if source["secret_ref"]
    }
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "2Gi"}
    assert container["resources"]["limits"] == {"memory": "4Gi"}
    mounts = {mount["name"]: mount["mount_path"] for mount in container["volume_mounts"]}
    claims = {
        volume["name"]: volume["persistent_volume_claim"]["claim_name"]
        for volume in pod["volumes"]
        if volume.get("persistent_volume_claim")
    }
    assert (mounts["project"], claims["project"]) == ("/project", "cbmt-project")
    # Dagster starts a lost run again as a new job; Kubernetes must not do it as well.
    assert (pod["restart_policy"], job["spec"]["backoff_limit"]) == ("Never", 0)


def test_kubernetes_settings_of_the_instance_are_those_that_dagster_knows(tmp_path: Path) -> None:
    """The chart writes its values into dagster.yaml under these names."""
    values = yaml.safe_load((DEPLOY / "kubernetes/values.yaml").read_text())
    daemon = values["dagsterDaemon"]
    monitoring, retries = daemon["runMonitoring"], daemon["runRetries"]
    coordinator = daemon["runCoordinator"]["config"]["queuedRunCoordinator"]
    settings = {
        "telemetry": {"enabled": values["telemetry"]["enabled"]},
        "run_coordinator": {
            "module": "dagster.core.run_coordinator",
            "class": daemon["runCoordinator"]["type"],
            "config": {"max_concurrent_runs": coordinator["maxConcurrentRuns"]},
        },
        "run_monitoring": {
            "enabled": monitoring["enabled"],
            "start_timeout_seconds": monitoring["startTimeoutSeconds"],
            "poll_interval_seconds": monitoring["pollIntervalSeconds"],
            "max_resume_run_attempts": monitoring["maxResumeRunAttempts"],
        },
        "run_retries": {
            "enabled": retries["enabled"],
            "max_retries": retries["maxRetries"],
            "retry_on_asset_or_op_failure": retries["retryOnAssetOrOpFailure"],
        },
    }
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(settings))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.run_retries_enabled
        assert instance.run_monitoring_max_resume_run_attempts == 0
