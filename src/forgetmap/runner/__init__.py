"""Evaluating models: suites of tasks, backends, and the run itself."""
