"""The terminal labeller: shows an item, takes a key, shows the next."""
