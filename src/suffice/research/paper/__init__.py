"""The experiments of the paper: as published, errata included, and as corrected."""
