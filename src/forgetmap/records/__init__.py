"""The canonical table of per-item results. Knows nothing of harnesses or models."""
