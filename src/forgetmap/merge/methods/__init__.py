"""The merge methods: pure functions, implemented from the formulas of their papers."""
