"""What happened to each item, and the sums over groups of items."""
