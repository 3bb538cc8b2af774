"""The steps of the pipeline, one file each: `STEP` declares its needs and tables, `make` computes them."""
