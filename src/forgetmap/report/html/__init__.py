"""HTML pages: a common shell and style sheet, and the content of each kind of report."""
