"""The site of a study: one folder of linked pages that need no network."""
