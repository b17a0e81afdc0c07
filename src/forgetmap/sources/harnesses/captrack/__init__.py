"""Responses and metrics collected for CapTrack."""
