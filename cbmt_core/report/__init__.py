"""The report: sentences, charts and pages. Imports nothing: commands that need a sentence load no chart library."""
