"""What a response says its answer is: options, numbers, formulas, names, calls, code."""
