"""Suites of tasks: data files and small generators."""
