"""Routing: which of two models to deploy for a firm, by fixed policies, an oracle, and learned rules."""

from cbmt_core.diagnostics.routing.panel import RoutingPanel
from cbmt_core.diagnostics.routing.policy import Decision, best_threshold, decide
from cbmt_core.diagnostics.routing.rules import RULES, Rule
from cbmt_core.diagnostics.routing.splits import split, strata
from cbmt_core.diagnostics.routing.study import ALL, NEEDED, POLICIES, PRIMARY, RESPLIT, RoutingStudy, study
from cbmt_core.diagnostics.routing.tables import routing_panel, routing_tables

__all__ = [
    "ALL",
    "NEEDED",
    "POLICIES",
    "PRIMARY",
    "RESPLIT",
    "RULES",
    "Decision",
    "RoutingPanel",
    "RoutingStudy",
    "Rule",
    "best_threshold",
    "decide",
    "routing_panel",
    "routing_tables",
    "split",
    "strata",
    "study",
]
