"""The experiments of the paper: as published, slips included, and as they should have been."""
