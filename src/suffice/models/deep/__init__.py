"""Networks with dropout: masks, training and posterior. Only :mod:`.network` can be imported without torch."""
