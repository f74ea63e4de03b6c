"""Research: reproduction of the paper, comparison of stopping rules, and their data sets. Nothing else imports it."""
