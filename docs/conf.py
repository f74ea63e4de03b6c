"""Sphinx configuration."""

import suffice

project = "suffice"
author = "the suffice developers"
copyright = "the suffice developers"
version = release = suffice.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",  # formulas without a network
]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "measured"]

autodoc_mock_imports = ["torch"]  # the documentation is built without it
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Reference", "returns_style")]

html_theme = "furo"
html_title = f"suffice {release}"
html_static_path = []
