"""The report of a labelling project: one page for whoever pays for the labels."""

from suffice.report.labelling.page import report_page

__all__ = ["report_page"]
