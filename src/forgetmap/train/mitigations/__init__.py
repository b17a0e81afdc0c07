"""Mitigations, one file each: a frozen config, and what it adds to a trainer."""
