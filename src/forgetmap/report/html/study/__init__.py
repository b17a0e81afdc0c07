"""The site of a study: one folder of pages that link to each other and need no network."""
