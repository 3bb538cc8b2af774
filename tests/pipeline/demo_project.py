"""A small demo project with everything that is published of a simulated economy, made in this process."""

from __future__ import annotations

from pathlib import Path

from in_process import bring_up_to_date

from cbmt_core.simulate import Economy, write_economy
from cbmt_pipeline.project import Project

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
    with sorted((root / "economy/orders").glob("Keldevar*.csv"))[0].open("a") as file:
        columns = Path(file.name).read_text().split("\n", 1)[0].split(",")
        for k in range(3):
            row = {"firm": FIRM, "customer": "7", "order_time": "2019-05-01 10:00:00", "amount": "n/a"}
            file.write(",".join({**row, "order_id": f"bad-{k}"}.get(name, "") for name in columns) + "\n")
    (root / "cbmt.toml").write_text(CONFIG.replace(",\n    ", ", "))
    project = Project(root)
    project.check_schema()
    assert project.intake.update(project.config, root).failed == {}
    bring_up_to_date(project)
    return project
