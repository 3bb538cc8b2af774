"""Tables about the published file: when and from which data it was made, and how fresh each firm is."""

from __future__ import annotations

from cbmt_core.schema.kinds import FIRM, Column, Table

__all__ = ["FIRM_STATE", "SNAPSHOT"]

SNAPSHOT = Table(
    "snapshot",
    "One row: when this file was published, by which version and from which data.",
    ("published_at",),
    (
        Column("published_at", "TIMESTAMP", "when it was published, in UTC"),
        Column("version", "VARCHAR", "version of the program"),
        Column("layout", "INTEGER", "version of the project's folders and tables"),
        Column("data_version", "VARCHAR", "digest of the source files that were read"),
        Column("files", "BIGINT", "source files"),
        Column("rows", "BIGINT", "their rows"),
        Column("firms", "BIGINT", "firms and segments that they name"),
        Column("firms_current", "BIGINT", "of these, firms whose state is current"),
        Column("last_week", "DATE", "the last week that enough firms have delivered", nullable=True),
        Column(
            "live_origin", "DATE", "origin of the newest forecasts; all firms were made for it", nullable=True
        ),
        Column(
            "study_published_at",
            "TIMESTAMP",
            "when the tables of the study were first published as they are; earlier than published_at while parts of "
            "the study wait to be made again",
            nullable=True,
        ),
    ),
)

FIRM_STATE = Table(
    "firm_state",
    "How fresh each firm is and, where something is wrong, what.",
    ("firm",),
    (
        FIRM,
        Column("slug", "VARCHAR", "its name in folders and addresses"),
        Column(
            "state",
            "VARCHAR",
            "current: its newest forecast is of the project's last week; late: it has not delivered that week; "
            "stopped: it has delivered nothing for a long time; untrusted: its newest data were refused, what is "
            "published of it was made before; waiting: something of it is yet to be made",
        ),
        Column("reason", "VARCHAR", "what is wrong and what follows; empty where nothing is"),
        Column("last_order", "DATE", "day of its last source row", nullable=True),
        Column(
            "delivered_to", "DATE", "day through which its orders are known to be complete", nullable=True
        ),
        Column("last_week", "DATE", "last week of its tables", nullable=True),
        Column("forecast_origin", "DATE", "origin of its newest live forecast", nullable=True),
        Column(
            "weeks_behind",
            "INTEGER",
            "weeks from there to the project's last week; 0 for a current one",
            nullable=True,
        ),
    ),
)
