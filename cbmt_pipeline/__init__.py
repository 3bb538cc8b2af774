"""The orchestrated pipeline: Dagster assets over the plain library."""
