"""Two simulated models whose knowledge is known exactly: for the demo, the docs and the tests."""
