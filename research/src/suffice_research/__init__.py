"""Research on stopping rules: reproduction of the paper, comparison of rules, recommendation, and data sets."""
