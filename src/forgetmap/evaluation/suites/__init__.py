"""Suites of tasks: data plus small generators."""
