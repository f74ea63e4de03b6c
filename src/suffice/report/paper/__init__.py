"""Tables, figures and the page of the paper's experiments, drawn from numbers: no model and no rule is run here."""
