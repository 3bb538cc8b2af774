"""One trial: a copy of the project with a mutant in it, and whether its tests fail there."""

from __future__ import annotations

import compileall
import os
import py_compile
import resource
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["CAUGHT", "HUNG", "SURVIVED", "Copy"]

CAUGHT, HUNG, SURVIVED = "caught", "hung", "survived"
ROOT = Path(__file__).parents[2]
FOLDERS = ("cbmt_core", "cbmt_pipeline", "bench", "tests", "docs")
COPIED = (*FOLDERS, "pyproject.toml", "constraints.txt", "requirements.lock")
CPU_SECONDS, WALL_SECONDS = 180, 900
"""After which a trial counts as hung: a mutant that loops for ever is noticed by whoever runs it."""


class Copy:
    """A copy of the project in which modules are changed and restored."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        for name in COPIED:
            source, target = ROOT / name, folder / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
            else:
                shutil.copy2(source, target)
        # Compiled files are valid by the hash of their source: one second may see several mutants of a module.
        checked = py_compile.PycInvalidationMode.CHECKED_HASH
        for name in ("cbmt_core", "cbmt_pipeline"):
            compileall.compile_dir(folder / name, quiet=2, invalidation_mode=checked)

    def outcome(self, module: str, mutated: str, tests: Sequence[str]) -> str:
        """Whether `tests` notice that the module's source is `mutated`."""
        path = self.root / module
        original = path.read_text(encoding="utf-8")
        path.write_text(mutated, encoding="utf-8")
        try:
            return self.tried(tests)
        finally:
            path.write_text(original, encoding="utf-8")

    def tried(self, tests: Sequence[str]) -> str:
        """Run the tests in a child of this process, which has the large libraries imported already."""
        child = os.fork()
        if child == 0:
            self._run(tests)
        deadline = time.monotonic() + WALL_SECONDS
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                with suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return HUNG
            time.sleep(0.02)
        with suppress(ProcessLookupError):  # Processes that a test started and left.
            os.killpg(child, signal.SIGKILL)
        if os.WIFSIGNALED(status):
            return HUNG if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else CAUGHT
        return SURVIVED if os.WEXITSTATUS(status) == 0 else CAUGHT

    def _run(self, tests: Sequence[str]) -> None:
        code = 1
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            log = os.open(self.root / "trial.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.chdir(self.root)
            os.environ["PYTHONPATH"] = str(self.root)
            for name in [one for one in sys.modules if one.split(".")[0] in ("cbmt_core", "cbmt_pipeline")]:
                del sys.modules[name]
            sys.path.insert(0, str(self.root))
            import pytest
            from hypothesis import Phase, settings

            import cbmt_core

            assert Path(cbmt_core.__file__).is_relative_to(self.root)
            # The same examples in every trial; a failure is not made smaller.
            settings.register_profile("trial", phases=[Phase.explicit, Phase.generate], derandomize=True)
            settings.load_profile("trial")
            options = ["-x", "-q", "-p", "no:cacheprovider", "-n0", "--tb=short"]
            code = int(pytest.main([*options, f"--rootdir={self.root}", *tests]))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
