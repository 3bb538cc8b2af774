"""Value of customers: by cohort, of today's base, of cohorts to come, and what acquiring them costs."""

from cbmt_core.value.ages import AGES, first_sales, value_by_age
from cbmt_core.value.base import base_value
from cbmt_core.value.cohorts import cohort_values
from cbmt_core.value.retention import retention
from cbmt_core.value.spend import acquisition_return, read_spend
from cbmt_core.value.terms import ValueTerms

__all__ = [
    "AGES",
    "ValueTerms",
    "acquisition_return",
    "base_value",
    "cohort_values",
    "first_sales",
    "read_spend",
    "retention",
    "value_by_age",
]
