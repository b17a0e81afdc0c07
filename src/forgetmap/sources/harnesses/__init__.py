"""Adapters, one module per harness: recognise its logs and read their samples."""
