"""Mutants written by hand: what a tired engineer might do to the code that numbers and files rest on."""

# ruff: noqa: E501  one line a mutant reads best
from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CHOSEN", "NAMED", "Chosen"]

ATOMIC, PUBLISH, SVG = "cbmt_core/atomic.py", "cbmt_pipeline/publish.py", "cbmt_core/report/svg.py"
POLICY, STUDY = "cbmt_core/diagnostics/routing/policy.py", "cbmt_core/diagnostics/routing/study.py"
ORDERS, COHORTS, COMPOSE = "cbmt_core/transactions/orders.py", "cbmt_core/cohorts.py", "cbmt_core/compose.py"
CONTRIBUTIONS, TABLE = "cbmt_core/bridge/contributions.py", "cbmt_core/bridge/table.py"
ERRORS, METRICS = "cbmt_core/bridge/errors.py", "cbmt_core/metrics.py"
WALK, LAKE = "cbmt_core/models/sequence/walk_forward.py", "cbmt_pipeline/lake.py"
LOSS = "cbmt_core/models/neural/loss.py"
WORK, MANIFEST, SNAPSHOT = (
    "cbmt_pipeline/transaction.py",
    "cbmt_pipeline/manifest.py",
    "cbmt_pipeline/snapshot.py",
)


@dataclass(frozen=True)
class Chosen:
    """A wrong change: the first occurrence of `original` in the module becomes `mutated`."""

    name: str
    target: str
    module: str
    original: str
    mutated: str
    tests: tuple[str, ...] = ()
    """Those of the target unless stated."""

    def applied_to(self, source: str) -> str:
        assert self.original in source, (
            f"{self.module} has no {self.original!r} any more: change tests/mutation/chosen.py"
        )
        return source.replace(self.original, self.mutated, 1)


FILES = ("tests/test_atomic.py",)
SCAN, NAMES_TESTS = ("tests/test_security.py",), ("tests/test_duck.py", "tests/test_names.py")
HOSTILE = "tests/pipeline/test_hostile_names.py"
UI_TESTS = (f"{HOSTILE}::test_the_ui_listens_to_this_machine_and_warns_when_told_otherwise",)
PASSWORDS = tuple(
    f"tests/test_tuning.py::{name}"
    for name in (
        "test_a_password_is_in_no_error_and_no_traceback",
        "test_a_driver_that_says_the_password_is_not_repeated",
    )
)
STORAGE, TUNING = "cbmt_core/models/storage.py", "cbmt_core/tuning.py"
DUCK, CLI = "cbmt_core/duck.py", "cbmt_pipeline/cli.py"
ORDER_TESTS = ("tests/transactions/test_orders.py",)
NAMED = [
    Chosen(
        "publishing without the rename", "publish", PUBLISH,
        "atomic.replacing(project.warehouse) as target",
        "__import__('contextlib').closing(open(project.warehouse, 'wb')) as target, "
        "__import__('contextlib').nullcontext((target.close(), project.warehouse.unlink(), project.warehouse)[2]) "
        "as target",
        ("tests/pipeline/test_publish_failure.py",),
    ),
    Chosen("writing without fsync", "atomic", ATOMIC, "        fsync(temporary)\n", "", FILES),
    Chosen(
        "leaving temporary files", "atomic", ATOMIC,
        "            path.unlink(missing_ok=True)\n        sweep", "            pass\n        sweep", FILES,
    ),
    Chosen(
        "unescaped JSON in the report's script", "report", SVG,
        'return text.replace("<", "\\\\u003c")', "return text", ("tests/report/test_escaping.py::test_a_chart_of_a_hostile_name_has_the_parts_of_one_of_a_plain_name",),
    ),
    Chosen(
        "routing ties go to the other model", "routing", POLICY,
        "self.others >= self.threshold", "self.others > self.threshold",
        ("tests/diagnostics/test_routing.py::test_a_probability_at_the_threshold_gets_the_joint_model",),
    ),
    Chosen(
        "duplicates across customers", "orders", ORDERS,
        "PARTITION BY customer, given_id, ordered_at, amount, line",
        "PARTITION BY given_id, ordered_at, amount, line",
        ("tests/transactions/test_orders.py::test_equal_orders_of_two_customers_in_two_files_are_no_duplicates",),
    ),
    Chosen(
        "the left-censored cohort keeps its first order", "cohorts", COHORTS,
        "NOT left_censored AND w.week = c.cohort AS is_birth",
        "w.week = greatest(c.cohort, DATE '{panel.first}') AS is_birth",
        ("tests/test_cohorts.py::test_a_firm_counted_on_paper",),
    ),
]  # fmt: skip
"""Seven that once survived."""

CHOSEN = [
    *NAMED,
    Chosen("rename before fsync", "atomic", ATOMIC,
           "        fsync(temporary)\n        os.replace(temporary, target)\n",
           "        os.replace(temporary, target)\n        fsync(target)\n", FILES),
    Chosen("folder not synced", "atomic", ATOMIC, "        fsync(target.parent)\n", "", FILES),
    Chosen("copy instead of rename", "atomic", ATOMIC, "os.replace(temporary, target)",
           "target.write_bytes(temporary.read_bytes())", FILES),
    Chosen("temporary name looks like data", "atomic", ATOMIC, '{uuid.uuid4().hex[:10]}.tmp")',
           '{uuid.uuid4().hex[:10]}.parquet")', FILES),
    Chosen("one temporary name for all writers", "atomic", ATOMIC, "{uuid.uuid4().hex[:10]}", "0123456789", FILES),
    Chosen("sweeps living writers' files", "atomic", ATOMIC, "> ABANDONED", "> 0", FILES),
    Chosen("lock that locks nobody out", "atomic", ATOMIC, "else fcntl.LOCK_EX", "else fcntl.LOCK_SH", FILES),
    Chosen("first order in every week", "compose", COMPOSE, "np.arange(horizon) == birth[:, None]",
           "np.arange(horizon) >= birth[:, None]"),
    Chosen("first order never counted", "compose", COMPOSE, "(is_birth + drivers.R)", "(drivers.R)"),
    Chosen("weeks from the origin itself", "compose", COMPOSE, "7 * np.arange(1, horizon + 1)",
           "7 * np.arange(horizon)"),
    Chosen("holes summed over", "compose", COMPOSE, "if len(bad):", "if len(bad) > 1:"),
    Chosen("draws: new cohorts' repeat factor of existing ones", "compose", COMPOSE,
           "draws.acquired + draws.repeat_new * (", "draws.acquired + draws.repeat_existing * ("),
    Chosen("draws: base and later swapped", "compose", COMPOSE, "(orders * V[:N])[~member]", "(orders * V[:N])[member]"),
    Chosen("ties by any order", "cohorts", COHORTS, "arg_min(amount, order_id)", "min(amount)"),
    Chosen("washout customers get cohorts", "cohorts", COHORTS,
           "first_week < DATE '{panel.first}' AS left_censored", "false AS left_censored"),
    Chosen("weeks before birth", "cohorts", COHORTS, "w ON w.week >= c.cohort", "w ON true"),
    Chosen("weeks without orders dropped", "cohorts", COHORTS, "FROM dense d LEFT JOIN activity", "FROM dense d JOIN activity"),
    Chosen("AOV zero without orders", "cohorts", COHORTS, "/ orders END AS aov", "/ orders ELSE 0 END AS aov"),
    Chosen("active customers count orders", "cohorts", COHORTS, "count(DISTINCT member)", "count(member)"),
    Chosen("the last week is unfinished", "cohorts", COHORTS, "FILTER (week > DATE '{panel.last}') AS unfinished_orders",
           "FILTER (week >= DATE '{panel.last}') AS unfinished_orders"),
    Chosen("cohort size by customers of the window", "cohorts", COHORTS, "WHERE week <= DATE '{panel.last}' GROUP BY customer",
           "GROUP BY customer"),
    Chosen("volume at the old spend", "bridge", CONTRIBUTIONS, "(Q1 - Q0) * (spend0 + spend1) / 2", "(Q1 - Q0) * spend0"),
    Chosen("replenishment without the first orders", "bridge", CONTRIBUTIONS, "G1 - I0", "G1"),
    Chosen("cutoff a week late", "bridge", CONTRIBUTIONS, "return self.baseline.last", "return self.baseline.last + WEEK"),
    Chosen("target cohorts counted as base", "bridge", TABLE, 'f"{target} AND {existing}", "repeat_sales_1"',
           'target, "repeat_sales_1"'),
    Chosen("realised rows of unfinished targets", "bridge", TABLE, " WHERE weeks_1 = {len(windows.target)}", ""),
    Chosen("unknown cohorts count as zero", "bridge", TABLE, "CASE WHEN unknown = 0 THEN o.repeat_sales_1 +",
           "CASE WHEN unknown >= 0 THEN o.repeat_sales_1 +"),
    Chosen("discrepancy never refuses", "bridge", TABLE, "if not off <= tolerance(", "if off <= -tolerance("),
    Chosen("errors keep their sign", "bridge", ERRORS, ".sub(table[REALISED], axis=0).abs()", ".sub(table[REALISED], axis=0)"),
    Chosen("sample of each model", "bridge", ERRORS, "table = _wide(known, column).loc[sample]", "table = _wide(known, column)"),
    Chosen("currencies added up", "bridge", ERRORS, '"currency"])) > 1', '"currency"])) > 2'),
    Chosen("SMAPE without the half", "metrics", METRICS, "(np.abs(actual) + np.abs(forecast)) / 2", "(np.abs(actual) + np.abs(forecast))"),
    Chosen("MASE over the wrong steps", "metrics", METRICS, "latest[:, :-1]", "latest[:, 1:]"),
    Chosen("ROPC unweighted", "metrics", METRICS, "forecast.R[row, :full], size)", "forecast.R[row, :full], None)"),
    Chosen("new cohorts scored on old rows", "metrics", METRICS, "known + panel.birth[known:reach] - start",
           "panel.birth[known:reach] - start"),
    Chosen("unknown errors count", "metrics", METRICS, "np.isnan(actual), 0.0,", "np.isnan(actual), 1.0,"),
    Chosen("own cohort not forecast", "walk_forward", WALK, "np.arange(N + h + 1)", "np.arange(N + h)"),
    Chosen("forecasts do not re-enter", "walk_forward", WALK, "            T + h,\n            A=", "            T,\n            A="),
    Chosen("unclipped sales re-enter", "walk_forward", WALK, 'scaling.scale("S", scaling.unscale("S", s.mean()))', "s.mean()"),
    Chosen("unknown targets carry loss", "loss", LOSS, " * truth.known", ""),
    Chosen("alignment without first orders", "loss", LOSS, "return a, truth.is_birth + r, v", "return a, r, v"),
    Chosen("alignment in units of sales", "loss", LOSS, "truth.sales) * (1.0 / self.sales_span)", "truth.sales)"),
    Chosen("losses of all networks added up", "loss", LOSS, ".sum((0, 2))", ".sum()"),
    Chosen("gradient of the repeat rate unscaled", "loss", LOSS, "acquired * value * self.span[r]", "acquired * value"),
    Chosen("rules see held-out firms", "routing", STUDY, "decide(rule, training, others,", "decide(rule, known, others,"),
    Chosen("equal errors are wins", "routing", "cbmt_core/diagnostics/routing/panel.py", "self.joint < self.single",
           "self.joint <= self.single"),
    Chosen("a choice of ties differs from the policy", "routing", STUDY, "probability >= made.threshold",
           "probability > made.threshold"),
    Chosen("other firms' files removed", "lake", LAKE, "folder.name not in kept", "folder.name in kept"),
    Chosen("rows not in the order of the key", "lake", LAKE, "for name in table.key)", "for name in table.key[:1])"),
    Chosen("old manifest stays while files change", "work", WORK, "project.manifests.remove(part, week, unit)", "pass"),
    Chosen("rejected outputs count as done", "work", WORK, "rejected=made.rejected)", 'rejected="")'),
    Chosen("other models' rows are lost", "work", WORK, "if kept and target.exists():", "if False:"),
    Chosen("broken items stay from before", "work", WORK, "for item, value in of_items.items() if item not in attempted}", "for item, value in of_items.items()}"),
    Chosen("digest of the old file", "work", MANIFEST, "or _file_digest(temporary)",
           "or _file_digest(target if target.exists() else temporary)"),
    Chosen("digest of the week after", "work", MANIFEST, "if day <= week.isoformat()]", "]"),
    Chosen("firms beyond their weeks", "work", MANIFEST, "week.isoformat() <= max(self.as_of)", "week.isoformat() >= min(self.as_of)"),
    Chosen("an origin published before it is whole", "publish", SNAPSHOT, "if not self.state.is_current(step, origin, None):",
           "if self.state.manifest(step, origin, None) is None:"),
    Chosen("a quote ends a text of SQL", "security", DUCK, 'text.replace("\'", "\'\'")', "text", NAMES_TESTS),
    Chosen("a quote ends a column's name", "security", DUCK, "name.replace('\"', '\"\"')", "name", NAMES_TESTS),
    Chosen("names of files are patterns", "security", DUCK, r'literal(re.sub(r"([*?[])", r"[\1]", str(path)))', "literal(str(path))", NAMES_TESTS),
    Chosen("a setting unquoted in SQL", "security", "cbmt_core/transactions/judge.py", "{literal(source.currency)}", "'{source.currency}'", SCAN),
    Chosen("a firm unquoted in SQL", "security", COHORTS, "SELECT {literal(unit.name)} AS firm, cohort", "SELECT '{unit.name}' AS firm, cohort", SCAN),
    Chosen("pickle on a load path", "security", STORAGE, "import json\n", "import json\nimport pickle\n", SCAN),
    Chosen("any class is restored", "security", STORAGE, 'if not module.startswith("cbmt_core.models."):', "if not module:", SCAN),
    Chosen("a firm's name is a path", "security", "cbmt_core/names.py", 'quote_plus(name, safe="")', 'quote_plus(name, safe="/")', NAMES_TESTS),
    Chosen("links lead out of the folder", "security", "cbmt_core/transactions/reader.py", "and not file.resolve().is_relative_to(home)", "and False",
           ("tests/transactions/test_reader.py",)),
    Chosen("names unescaped in charts", "security", SVG, "{escape(str(text))}</{tag}>", "{text}</{tag}>", ("tests/report/test_escaping.py",)),
    Chosen("names unescaped in pages", "security", "cbmt_core/report/pages.py", 'autoescape=select_autoescape(["html"])', "autoescape=False",
           ("tests/report/test_report_pages.py::test_pages_are_whole_small_and_show_no_missing_number",)),
    Chosen("Markdown of the UI unescaped", "security", "cbmt_pipeline/metadata.py", r'return escaped.replace("://", r":\//")', "return text",
           (f"{HOSTILE}::test_markdown_of_the_ui_shows_a_name_as_text",)),
    Chosen("the password in the message", "security", TUNING, "{without_password(str(storage), storage)}", "{storage}", PASSWORDS),
    Chosen("the password in the traceback", "security", TUNING, ") from None", ") from error", PASSWORDS),
    Chosen("the password in the driver's words", "security", TUNING, 'without_password(str(error).partition("\\n")[0], storage)', "str(error)", PASSWORDS),
    Chosen("the UI listens to everyone", "security", CLI, 'LOOPBACK = "127.0.0.1"', 'LOOPBACK = "0.0.0.0"', UI_TESTS),
    Chosen("the UI does not warn", "security", CLI, "if not _only_this_machine(host):", "if False:", UI_TESTS),
]  # fmt: skip
