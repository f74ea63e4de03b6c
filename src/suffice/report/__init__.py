"""Figures and reports, drawn from numbers: no model and no rule is run here."""
