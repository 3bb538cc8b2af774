"""Every export of the corpus is detected without help, and its revenue is right to the cent."""

import pytest
from exports import EXPORTS, written

from cbmt_core.config import SourceConfig
from cbmt_core.transactions.detect import detect
from cbmt_core.transactions.preview import preview


def test_the_corpus_is_large_enough():
    assert len(EXPORTS) >= 25


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_gives_its_revenue_to_the_cent(tmp_path, name):
    made = EXPORTS[name]()
    file = written(made, tmp_path)
    found = detect(file, {"currency": made.currency, "timezone": made.timezone}, {}, "shop")
    source = SourceConfig.model_validate(
        {"name": "shop", "path": str(file), "currency": made.currency, "timezone": made.timezone,
         **found.settings, "columns": found.columns}
    )  # fmt: skip
    seen = preview(source, tmp_path)
    assert seen.sales == made.revenue, (found, seen)
    assert found.notes
