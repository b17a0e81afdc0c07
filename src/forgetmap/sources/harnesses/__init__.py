"""One module per harness: what its logs look like, and how a sample is read from them."""
