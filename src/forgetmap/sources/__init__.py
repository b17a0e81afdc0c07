"""Foreign results in: one file per format, recognised by content, never by file name."""
