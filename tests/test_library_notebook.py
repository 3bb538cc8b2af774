"""The notebook in docs/ runs as it stands. `python tests/test_library_notebook.py` runs it and keeps its outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "docs/library.ipynb"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def executed() -> nbformat.NotebookNode:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    NotebookClient(notebook, timeout=300, kernel_name="python3", record_timing=False).execute()
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return notebook


def kinds(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """Of each cell's outputs: what they are, not what they say."""
    return [
        [name for output in cell.outputs for name in sorted(output.get("data", {output.output_type: ""}))]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.slow
def test_the_notebook_runs_and_its_page_shows_what_it_gives() -> None:
    kept, made = kinds(nbformat.read(NOTEBOOK, as_version=4)), kinds(executed())
    assert made == kept, "run `python tests/test_library_notebook.py`"
    assert sum("image/png" in names for names in kept) == 2
    assert not any(name in ("stream", "error") for names in kept for name in names), "no warning, no error"
    assert all(names for names in kept), "every cell shows something"


if __name__ == "__main__":
    nbformat.write(executed(), NOTEBOOK)
