"""The script that created the projects works with suffice 0.6.0 only."""

collect_ignore = ["create_projects.py"]
