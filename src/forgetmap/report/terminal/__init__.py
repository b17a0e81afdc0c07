"""Results in lines and tables, as terminals and Markdown show them."""
