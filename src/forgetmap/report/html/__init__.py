"""Pages: one shell, one style sheet, and what each kind of report puts into them."""
