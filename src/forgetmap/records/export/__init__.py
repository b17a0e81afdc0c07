"""Export of runs to other formats."""
