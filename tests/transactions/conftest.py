import duckdb
import pytest
from helpers.sources import Shop


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        yield connection
