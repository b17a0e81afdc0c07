"""Log formats that are rows in a file, each declared as data and read by one engine."""
