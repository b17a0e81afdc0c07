"""Extraction of answers from responses: options, numbers, formulas, names, calls, code."""
