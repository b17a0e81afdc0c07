"""Models that write completions and weigh each other's: in this process, or behind a server."""
