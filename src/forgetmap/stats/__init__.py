"""Statistics on arrays and sums. Imports nothing of ours but errors."""
