"""Statistics on arrays and sums. Imports numpy and our errors only; scipy inside functions.

Read `docs/statistics.md` for what each estimator says and when it misleads.

Cells of one group, written n11, n10, n01, n00: right or wrong before, right or wrong after. k is
the number of options of an item; `inf` stands for an open-ended one. Every argument may be an
array: then the result is an array, one entry per data set.
"""
