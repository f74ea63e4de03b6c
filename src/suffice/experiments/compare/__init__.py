"""Every stopping rule on the same recorded runs, and what each would have cost."""
