"""Runs other evaluation harnesses so that their logs can be paired, and imports these."""
