"""The command line: one module per command. User errors give a message without a traceback."""

import sys


def main() -> None:
    """Run the command; exit 0 when done, 1 when it could not be done, 2 when it was called wrongly."""
    try:
        # Imported here, so that an interrupt during the import also gives a message.
        from suffice.cli.late_modules import load_late

        load_late("scipy.stats")
        from suffice.cli.app import run

        sys.exit(run())
    except KeyboardInterrupt:
        from suffice.cli.json_output import tell_error

        sys.exit(tell_error("interrupted", "interrupted"))
