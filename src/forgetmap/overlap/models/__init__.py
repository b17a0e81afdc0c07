"""Models for overlap measurements: local ones, and models behind a server."""
