"""Real servers for tests, each with a folder and port of its own: PostgreSQL and Redis from Debian's packages."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

POSTGRES = next(
    (p.parent for p in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)),
    Path(shutil.which("initdb") or "/nowhere/initdb").parent,
)
REDIS = shutil.which("redis-server")


def need(*servers: str) -> pytest.MarkDecorator:
    """Skip where servers are not installed; in CI they must be."""
    there = {"postgresql": (POSTGRES / "initdb").exists(), "redis-server": REDIS is not None}
    lacking = [name for name in servers if not there[name]]
    return pytest.mark.skipif(
        bool(lacking) and not os.environ.get("CI"),
        reason=f"needs {' and '.join(lacking)}: `make servers` installs them on Debian",
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgres() -> Iterator[str]:
    """host:port of a server with the database `postgres` and the user `cbmt`; it does not run as root."""
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    user = "postgres" if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)

    def run(tool: str, *arguments: str) -> None:
        command = [str(POSTGRES / tool), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, capture_output=True, user=user, cwd=folder, timeout=120)

    try:
        run("initdb", "-U", "cbmt", "-A", "trust", "--no-sync")
        options = f"-h 127.0.0.1 -p {port} -k '' -F"
        run("pg_ctl", "start", "-w", "-l", str(folder / "log"), "-o", options)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            run("pg_ctl", "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """host:port of a server that keeps nothing on disk."""
    assert REDIS, "redis-server is not installed"
    port = free_port()
    command = [REDIS, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=20)
