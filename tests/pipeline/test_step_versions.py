"""Whoever changes what a step or a model computes raises its version: the code's digests are kept beside it.

python tests/pipeline/test_step_versions.py     write the digests anew, after raising versions where needed
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from cbmt_core import calendar
from cbmt_core.models import MODELS
from cbmt_pipeline.plan import the_plan

KEPT = Path(__file__).with_name("step_versions.json")


def code_of(module: str) -> str:
    """Digest of a module's code, or of every module of a package; comments and docstrings do not count."""
    spec = find_spec(module)
    assert spec is not None, f"there is no module {module}"
    assert spec.origin is not None
    file = Path(spec.origin)
    files = sorted(file.parent.rglob("*.py")) if spec.submodule_search_locations else [file]
    seen = hashlib.sha256()
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [line for line in body if not _is_text(line)]
        seen.update(ast.dump(tree).encode())
    return seen.hexdigest()[:16]


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@cache
def present() -> dict[str, dict[str, str]]:
    """Every step and model, and the calendar, with its version and the digest of its code."""
    found = {"calendar": {"version": calendar.VERSION, "code": code_of("cbmt_core.calendar")}}
    for step in the_plan():
        modules = [step.make.__module__, f"cbmt_pipeline.steps.{step.name}", *step.code]
        digest = hashlib.sha256("".join(map(code_of, modules)).encode()).hexdigest()[:16]
        found[f"step {step.name}"] = {"version": step.version, "code": digest}
    for entry in MODELS.values():
        module = f"cbmt_core.models.{entry.factory.partition(':')[0]}"
        found[f"model {entry.name}"] = {"version": entry.version, "code": code_of(module)}
    return found


@pytest.mark.parametrize("name", sorted(present()))
def test_code_changes_only_together_with_its_version(name: str) -> None:
    kept, now = json.loads(KEPT.read_text()), present()[name]
    assert name in kept, f"{name} is new: run python {KEPT.with_name('test_step_versions.py').name}"
    if kept[name]["code"] != now["code"]:
        assert kept[name]["version"] != now["version"], (
            f"the code of {name} changed, its version did not. Raise the version where what it makes changes, so that "
            f"it is made again; then run python tests/pipeline/{Path(__file__).name}"
        )
        pytest.fail(f"the version of {name} was raised: run python tests/pipeline/{Path(__file__).name}")


def test_a_change_of_code_is_seen_and_a_change_of_words_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "one_formula.py"

    def digest(text: str) -> str:
        module.write_text(text)
        return code_of("one_formula")

    first = digest('"""Words."""\n\n\ndef f(x):\n    """More."""\n    return x + 1\n')
    assert digest("def f(x):  # a comment\n    return x + 1\n") == first
    assert digest("def f(x):\n    return x + 2\n") != first


if __name__ == "__main__":
    KEPT.write_text(json.dumps(present(), indent=1, sort_keys=True) + "\n")
    sys.stdout.write(f"{KEPT}\n")
