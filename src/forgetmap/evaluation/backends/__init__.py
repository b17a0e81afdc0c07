"""Backends: models in this process, behind a server, or on a cluster."""
