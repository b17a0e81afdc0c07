"""What all that ask a server over HTTP share."""
