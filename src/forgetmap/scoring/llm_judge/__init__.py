"""Scores that need a judge: what is asked, how replies are read, and who is asked."""
