"""What people look at: one payload, and every picture, page and text made from it."""
