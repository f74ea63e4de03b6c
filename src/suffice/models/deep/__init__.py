"""Networks with dropout: masks, training, and what their posterior is. Only :mod:`.network` works without torch."""
