"""The steps of the pipeline, a file each: `STEP` says what it needs and writes, `make` does it."""
