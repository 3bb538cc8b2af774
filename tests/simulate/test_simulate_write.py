"""Files of an economy: orders alone for the pipeline, the truth somewhere else."""

from __future__ import annotations

import json

import duckdb
import pandas as pd
import pytest

from cbmt_core.errors import ConfigError
from cbmt_core.names import Unit
from cbmt_core.simulate import FORMATS, Economy, sample_orders, truth_of, write_economy


@pytest.mark.parametrize("file_format", FORMATS)
def test_what_is_written_is_what_was_sampled(tmp_path, file_format):
    economy = Economy(firms=5, scale=0.005)
    calls = {}
    write_economy(
        economy, tmp_path, file_format=file_format, on_firm=lambda spec, n: calls.update({spec.name: n})
    )
    files = {path.name.removesuffix(f".{file_format}"): path for path in (tmp_path / "orders").iterdir()}
    assert {Unit.from_slug(slug).firm for slug in files} == {spec.name for spec in economy.specs()}
    for spec in economy.specs():
        wanted = sample_orders(economy, spec)
        reader = "read_parquet" if file_format == "parquet" else "read_csv"
        found = duckdb.sql(
            f"SELECT firm, customer, order_id, order_time, amount, industry FROM {reader}($1) ORDER BY order_id",
            params=[str(files[spec.slug])],
        ).df()
        assert calls[spec.name] == len(wanted) == len(found)
        for name in wanted.columns:
            left, right = found[name], wanted[name]
            if name in ("firm", "industry"):
                left, right = left.astype(str), right.astype(str)
            pd.testing.assert_series_equal(left, right, check_dtype=False, check_index_type=False)


def test_the_truth_is_kept_apart(tmp_path):
    economy = Economy(firms=3, scale=0.005)
    write_economy(economy, tmp_path)
    for spec in economy.specs():
        columns = set(pd.read_parquet(tmp_path / "orders" / f"{spec.slug}.parquet").columns)
        assert columns == {"firm", "customer", "order_id", "order_time", "amount", "industry"}
        truth_file = json.loads((tmp_path / "truth" / f"{spec.slug}.json").read_text(encoding="utf-8"))
        truth = truth_of(economy, spec)
        assert truth_file["firm"] == spec.name
        assert truth_file["comovement"] == truth.comovement
        assert truth_file["acquisition"] == truth.acquisition.tolist()
        assert {"season", "promotion", "launch", "price", "competitor", "regime"} <= set(truth_file["states"])


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="xlsx"):
        write_economy(Economy(firms=1), tmp_path, file_format="xlsx")
