"""Before x after on the same item, by key, never by position."""
