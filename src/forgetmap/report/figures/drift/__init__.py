"""Figures of capability drift."""
