"""Adapters to other frameworks, one module each.

Each module connects a framework to a stopping rule or to :class:`suffice.StopMonitor`, which contain all state. A
module imports its framework when an object of the module is created. If the framework is missing, the error message
contains the pip command that installs it.
"""
