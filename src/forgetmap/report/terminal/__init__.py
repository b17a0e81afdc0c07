"""Results as lines and tables for terminals and Markdown."""
