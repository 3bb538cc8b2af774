"""Mutants that no test can notice, because nothing that can be seen changes, each with the reason."""

__all__ = ["EQUIVALENT"]

EQUIVALENT: dict[str, str] = {
    "cohort size by customers of the window": "customers who first order after the last week form cohorts of later "
    "weeks, which the table of weeks has no row for; the condition saves time",
    "02b6c65894": "the smaller of two numbers, whichever is named first",
    "a65d4a744f": "the columns end after the two of the context, and a slice ends with them",
    "9d5b548a97": "a customer with one first order has an excess of that order less itself, which is nothing; the "
    "condition saves time",
}
