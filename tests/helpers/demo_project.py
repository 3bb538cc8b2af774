"""A small demo project with everything that is published of a simulated economy, made in this process."""

from __future__ import annotations

import csv
from pathlib import Path

from cbmt_core.simulate import Economy, write_economy
from cbmt_pipeline.project import Project
from helpers.in_process import bring_up_to_date

FIRM = "Keldevar Clothing"
CONFIG = """
[[sources]]
name = "economy"
path = "economy/orders"
currency = "USD"
timezone = "America/New_York"
columns = { firm = "firm", customer = "customer", order_time = "order_time", amount = "amount", order_id = "order_id",
    industry = "industry" }
[forecast]
models = ["cohort_glm", "seasonal_naive"]
"""


def make_demo(root: Path) -> Project:
    """Three simulated firms with the two quickest models, and a few rows that cannot be used."""
    root.mkdir(parents=True)
    write_economy(Economy(firms=3, scale=0.005), root / "economy", file_format="csv")
    (file,) = (root / "economy/orders").glob("Keldevar*.csv")
    with file.open("a", newline="") as lines:
        for k in range(3):
            csv.writer(lines).writerow([FIRM, 7, f"bad-{k}", "2019-05-01 10:00:00", "n/a", "Apparel"])
    (root / "cbmt.toml").write_text(CONFIG.replace(",\n    ", ", "))
    project = Project(root)
    project.check_schema()
    assert project.intake.update(project.config, root).failed == {}
    bring_up_to_date(project)
    return project
