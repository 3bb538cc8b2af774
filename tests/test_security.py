"""Nothing that is loaded can run code, and nothing that a user or a file names becomes SQL."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import requires
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from safetensors.numpy import save_file

from cbmt_core.models.storage import load

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path.relative_to(ROOT)
    for name in ("cbmt_core", "cbmt_pipeline", "bench")
    for path in (ROOT / name).rglob("*.py")
)
FORBIDDEN_IMPORTS = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "joblib",
    "imp",
}
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "torch.load", "torch.save", "pd.read_pickle", "pandas.read_pickle",
    "yaml.load", "yaml.unsafe_load", "yaml.full_load", "os.system", "os.popen", "np.loads", "subprocess.getoutput",
}  # fmt: skip
FORBIDDEN_METHODS = {"to_pickle", "read_pickle"}
FORBIDDEN_OPTIONS = {"shell": True, "allow_pickle": True, "weights_only": False, "trust_remote_code": True}
ALLOWED = {("cbmt_pipeline/notices.py", "shell=True")}
"""The command of [notice] in cbmt.toml is a shell command that the project's owner wrote; what happened reaches it on
its standard input and in variables, never in the command."""


def test_there_is_something_to_scan() -> None:
    assert len(MODULES) > 200


@pytest.mark.parametrize("kind", ["cbmt_core", "cbmt_pipeline", "bench"])
def test_no_load_path_can_run_code(kind: str) -> None:
    found = {
        (str(module), what)
        for module in MODULES
        if module.parts[0] == kind
        for what in _dangerous(ast.parse((ROOT / module).read_text()))
    }
    assert found - ALLOWED == set()


def test_the_scan_sees_what_it_forbids() -> None:
    for line in (
        "import pickle", "from joblib import load", "eval(x)", "torch.load(f)", "yaml.load(f)", "frame.to_pickle(p)",
        "np.load(p, allow_pickle=True)", "subprocess.run(c, shell=True)", "torch.load(p, weights_only=False)",
    ):  # fmt: skip
        assert list(_dangerous(ast.parse(line))), line


@pytest.mark.parametrize("name", ["os:system", "tests.evil:Model", "cbmt_core.modelsx:Model", ":Model", ""])
def test_a_stored_model_names_no_other_code(tmp_path: Path, name: str) -> None:
    """Importing a module runs it, so no other is imported."""
    save_file({"a": np.zeros(1)}, tmp_path / "arrays.safetensors")
    (tmp_path / "model.json").write_text(json.dumps({"class": name, "values": {}}))
    with pytest.raises(ValueError, match="is not one of this library's models"):
        load(tmp_path)


def _dangerous(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        yield from (f"import {name}" for name in names if name.split(".")[0] in FORBIDDEN_IMPORTS)
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in FORBIDDEN_CALLS or called.rpartition(".")[2] in FORBIDDEN_METHODS:
            yield called
        for option in node.keywords:
            value = option.value.value if isinstance(option.value, ast.Constant) else None
            if option.arg in FORBIDDEN_OPTIONS and value is FORBIDDEN_OPTIONS[option.arg]:
                yield f"{option.arg}={value}"


# -- SQL ------------------------------------------------------------------------------------------

SQL = re.compile(
    r"\b(SELECT|FROM|WHERE|INSERT INTO|COPY|ATTACH|DETACH|CREATE|DELETE|UPDATE|COMMENT ON|CASE WHEN|CAST|TRY_CAST|"
    r"coalesce|regexp_\w+|read_csv|read_parquet|BETWEEN|IS NULL|DATE|AND|NOT IN|IN)\b"
)
PASSES_ON = {"join", "map", "str", "replace", "format", "sorted", "list", "tuple", "strip", "lower", "upper"}
"""Functions whose result holds their arguments unquoted."""
FROM_OUTSIDE = {
    "name", "firm", "segment", "industry", "currency", "timezone", "path", "table", "slug", "delimiter", "sheet",
    "decimal_separator", "time_format", "encoding", "reason", "root", "warehouse", "storage", "webhook", "parent",
    "columns", "customer", "order_id", "leave_out", "refund_where",
}  # fmt: skip
"""Attributes that hold what a file, a setting or a firm says."""
NAMES_FROM_OUTSIDE = {
    "firm",
    "file",
    "label",
    "unit",
    "path",
    "folder",
    "target",
    "temporary",
    "model",
    "currency",
}
OURS = {
    "table",
    "c",
    "column",
    "view",
    "STUDY",
    "TIMELINE",
    "spec",
    "exhibit",
    "relations",
    "evidence.relations",
}
"""Objects whose names are written in schema/, or that hold names of relations."""


def test_what_comes_from_outside_is_quoted_in_every_sql_text() -> None:
    """Every expression in an f-string of SQL is followed to where it was assigned in its function."""
    found, seen = [], 0
    for module in MODULES:
        if module.parts[0] == "bench" or module.parts[:2] == ("cbmt_core", "schema"):
            continue
        tree = ast.parse((ROOT / module).read_text())
        for text, function in _sql_texts(tree):
            for value in text.values:
                if isinstance(value, ast.FormattedValue):
                    seen += 1
                    found += [
                        f"{module}:{text.lineno} {{{ast.unparse(value.value)}}}: {what}"
                        for what in _unquoted(value.value, _assigned(function), frozenset())
                    ]
    assert seen > 400
    assert found == []


@pytest.mark.parametrize(
    "body",
    [
        "con.execute(f'SELECT * FROM x WHERE firm = {unit.name}')",
        "where = f'AND currency = {source.currency}'\ncon.execute(f'SELECT 1 FROM x WHERE true {where}')",
        "con.execute(f\"SELECT * FROM '{file}'\")",
        "names = ', '.join(name for name in source.columns)\ncon.execute(f'SELECT {names} FROM x')",
    ],
)
def test_the_scan_sees_what_is_not_quoted(body: str) -> None:
    tree = ast.parse(
        "def f(con, unit, source, file):\n" + "\n".join(f"    {line}" for line in body.splitlines())
    )
    [*texts] = _sql_texts(tree)
    assert any(
        list(_unquoted(value.value, _assigned(function), frozenset()))
        for text, function in texts
        for value in text.values
        if isinstance(value, ast.FormattedValue)
    )


def _sql_texts(tree: ast.Module) -> Iterator[tuple[ast.JoinedStr, ast.AST]]:
    """f-strings with SQL in them, each with the function it stands in; texts of errors are none."""

    def visit(node: ast.AST, function: ast.AST) -> Iterator[tuple[ast.JoinedStr, ast.AST]]:
        if isinstance(node, ast.Raise):
            return
        if isinstance(node, ast.FunctionDef):
            function = node
        if isinstance(node, ast.JoinedStr):
            words = "".join(str(one.value) for one in node.values if isinstance(one, ast.Constant))
            if SQL.search(words):
                yield node, function
        for child in ast.iter_child_nodes(node):
            yield from visit(child, function)

    yield from visit(tree, tree)


def _assigned(function: ast.AST) -> dict[str, list[ast.expr]]:
    """Name -> what is assigned to it in a function."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for place in node.targets:
                if isinstance(place, ast.Name):
                    found.setdefault(place.id, []).append(node.value)
                elif isinstance(place, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    for one, value in zip(place.elts, node.value.elts, strict=False):
                        if isinstance(one, ast.Name):
                            found.setdefault(one.id, []).append(value)
        elif isinstance(node, ast.NamedExpr):
            found.setdefault(node.target.id, []).append(node.value)
    return found


def _unquoted(node: ast.AST, assigned: dict[str, list[ast.expr]], above: frozenset[str]) -> Iterator[str]:
    """What an expression takes from outside without quoting it."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] not in PASSES_ON:
        # It quotes, or it makes SQL itself: then its own f-strings are looked at where it stands.
        return
    if isinstance(node, ast.Attribute):
        if node.attr in FROM_OUTSIDE and ast.unparse(node.value).rpartition(".")[2] not in OURS:
            yield ast.unparse(node)
        return
    if isinstance(node, ast.Name):
        if node.id in assigned and node.id not in above:
            for value in assigned[node.id]:
                yield from _unquoted(value, assigned, above | {node.id})
        elif node.id in NAMES_FROM_OUTSIDE and node.id not in assigned:
            yield node.id
        return
    for part in _parts(node):
        yield from _unquoted(part, assigned, above)


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of an expression that its value is made of: not conditions."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Compare | ast.BoolOp):
        return []
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
        return [node.elt, *(part.iter for part in node.generators)]
    return ast.iter_child_nodes(node)


# -- dependencies ---------------------------------------------------------------------------------


def test_the_lock_pins_what_the_constraints_pin_with_hashes() -> None:
    constraints = set((ROOT / "constraints.txt").read_text().split())
    text = (ROOT / "requirements.lock").read_text()
    entries = re.findall(
        r"^(\S+==\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE
    )
    assert {pin for pin, _ in entries} == constraints
    assert len(entries) == len(constraints)
    assert not re.search(r"https?://", text)


def test_what_the_project_needs_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["dev"], *extras["celery"], *extras["postgres"]]
    pinned = {_normal(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text().split()}
    names = {_normal(re.split(r"[\[<>=!~ ]", one)[0]) for one in needed} - {"cbmt-pipeline"}
    assert names - pinned == set()


def test_whatever_is_needed_by_what_is_needed_is_pinned_too() -> None:
    """The lock is installed without looking for dependencies."""
    pinned = {_normal(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text().split()}
    waiting = [Requirement(f"cbmt-pipeline[{extra}]") for extra in ("dev", "postgres")]
    seen: set[tuple[str, str]] = set()
    while waiting:
        one = waiting.pop()
        for extra in ("", *one.extras):
            if (one.name, extra) in seen:
                continue
            seen.add((one.name, extra))
            found = [Requirement(text) for text in requires(one.name) or ()]
            waiting += [need for need in found if not need.marker or need.marker.evaluate({"extra": extra})]
    assert {_normal(name) for name, _ in seen} - pinned == {"cbmt-pipeline"}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
