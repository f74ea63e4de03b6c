"""The comparison of stopping rules as tables, figures and a page."""
