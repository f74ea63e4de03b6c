"""The core of every labelling loop: labels in, decisions out, without input and output."""
