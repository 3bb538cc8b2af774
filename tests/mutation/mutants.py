"""Mutants: small wrong changes of a module's source, one at a time, that tests should notice."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "mutants_of"]

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
SQL = (
    (r"(?<![<>=])<=", "<"),
    (r"(?<![<>=])>=", ">"),
    (r"(?<![<>=-])>(?![=])", ">="),
    (r"(?<![<>=])<(?![=>])", "<="),
    (r"\bAND\b", "OR"),
    (r"\bNOT (?!IN\b|NULL\b|EXISTS\b)", ""),
    (r"\bNOT IN\b", "IN"),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"\barg_min\(", "arg_max("),
    (r"\bsum\(", "max("),
    (r"\bDISTINCT ", ""),
    (r" - ", " + "),
    (r" \+ ", " - "),
    (r", 0\)", ", 1)"),
    (r"\bLEFT JOIN\b", "JOIN"),
    (r"\bUNION ALL\b", "EXCEPT"),
    (r"\bELSE 0\b", "ELSE 1"),
    (r" / ", " * "),
)
"""Patterns in the SQL of a string, and what takes their place."""


@dataclass(frozen=True)
class Mutant:
    """One wrong change: the characters from `start` to `end` of a module become `text`."""

    module: str
    """Path from the root of the repository."""
    line: int
    kind: str
    start: int
    end: int
    text: str
    original: str

    def applied_to(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    @property
    def name(self) -> str:
        """Stays the same while its own line does, wherever the line moves."""
        identity = f"{self.module}|{self.kind}|{self.original}|{self.text}"
        return hashlib.sha256(identity.encode()).hexdigest()[:10]


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its source."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def at(row: int, column: int) -> int:
        """Place of a node's line and column, which the parser counts in bytes."""
        return starts[row - 1] + len(lines[row - 1].encode()[:column].decode())

    found = []
    for kind, node, start, end, text in _changes(ast.parse(source), source, at):
        whole = source[starts[node.lineno - 1] : starts[node.lineno]].strip()
        if source[start:end] != text:
            line = source.count("\n", 0, start) + 1
            shown = whole if line == node.lineno else lines[line - 1].strip()
            place = start - starts[line - 1]
            found.append(Mutant(module, line, kind, start, end, text, f"{shown} @{place}"))
    return sorted(found, key=lambda one: (one.start, one.end, one.text))


Change = tuple[str, ast.AST, int, int, str]


def _changes(tree: ast.Module, source: str, at) -> Iterator[Change]:
    for node in _code(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
            old, new = COMPARISONS[type(node.ops[0])]
            right = node.comparators[0]
            yield from _between(node, "comparison", source, at, node.left, right, old, new)
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_text(node):
            old, new = ARITHMETIC[type(node.op)]
            yield from _between(node, "arithmetic", source, at, node.left, node.right, old, new)
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from _between(node, "boolean", source, at, left, right, old, new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
            start = at(node.lineno, node.col_offset)
            yield "negation", node, start, start + len("~" if source[start] == "~" else "not "), ""
        elif isinstance(node, ast.IfExp) or (
            isinstance(node, ast.If) and not isinstance(node.test, ast.Compare | ast.UnaryOp | ast.NamedExpr)
        ):
            yield "condition", node.test, *_span(node.test, at), f"not ({ast.unparse(node.test)})"
        else:
            yield from _other_changes(node, source, at)


def _other_changes(node: ast.AST, source: str, at) -> Iterator[Change]:
    """Changes of constants, of statements, and of the order of arguments."""
    if isinstance(node, ast.stmt | ast.expr):
        start, end = _span(node, at)
        if isinstance(node, ast.Constant):
            yield from _constant(node, source, start, end)
        elif isinstance(node, ast.JoinedStr):
            yield from _sql(node, source, start, end)
        elif isinstance(node, ast.Expr | ast.AugAssign | ast.Continue | ast.Raise):
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.Yield)):
                yield "dropped", node, start, end, "pass"
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            first, second = node.args[:2]
            if not any(isinstance(one, ast.Starred) for one in (first, second)):
                (a, b), (c, d) = _span(first, at), _span(second, at)
                yield "swapped", node, a, d, source[c:d] + source[b:c] + source[a:b]


def _code(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes that do something: no annotations, decorators, lists of names, texts of errors or docstrings."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
            continue
        if isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "__all__" for one in node.targets):
            continue
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            children = value if isinstance(value, list) else [value]
            for child in children:
                is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                if isinstance(child, ast.AST) and not is_docstring:
                    waiting.append(child)


def _span(node: ast.expr, at) -> tuple[int, int]:
    return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)


def _between(node, kind, source, at, left, right, old, new) -> Iterator[Change]:
    """The operator between two operands."""
    start, end = at(left.end_lineno, left.end_col_offset), at(right.lineno, right.col_offset)
    place = re.search(rf"(?<![\w<>=!]){re.escape(old)}(?![\w=])", source[start:end])
    if place:
        yield kind, node, start + place.start(), start + place.end(), new


def _is_text(node: ast.BinOp) -> bool:
    texts = ast.JoinedStr | ast.List | ast.Tuple
    return any(
        isinstance(one, texts) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
        for one in (node.left, node.right)
    )


def _constant(node: ast.Constant, source: str, start: int, end: int) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield "constant", node, start, end, str(not node.value)
    elif isinstance(node.value, int):
        yield "constant", node, start, end, str(node.value + 1)
    elif isinstance(node.value, float):
        yield "constant", node, start, end, repr(node.value * 2 if node.value else 1.0)
    elif isinstance(node.value, str):
        yield from _sql(node, source, start, end)


def _sql(node: ast.expr, source: str, start: int, end: int) -> Iterator[Change]:
    text = source[start:end]
    if not re.search(r"\b(SELECT|FROM|WHERE|INSERT|FILTER|COPY|sum)\b", text):
        return
    for pattern, new in SQL:
        for place in re.finditer(pattern, text):
            yield "sql", node, start + place.start(), start + place.end(), new
