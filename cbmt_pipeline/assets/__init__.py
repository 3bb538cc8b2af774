"""Software-defined assets, one module a kind."""
