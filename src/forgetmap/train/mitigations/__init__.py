"""Mitigations, one module each: a frozen config with its additions to a trainer."""
