"""The experiments of the paper: as published, including errata, and as corrected."""
