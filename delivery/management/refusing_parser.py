"""The parser of commands whose exit code 2 means changes."""

import sys
from typing import NoReturn

from django.core.management.base import CommandError, CommandParser


class RefusingParser(CommandParser):
    def error(self, message: str) -> NoReturn:
        """Exit with 1 instead of argparse's 2, which means changes here."""
        if not self.called_from_command_line:
            raise CommandError(f"Error: {message}")
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")


def refuse_wrong_options(parser: CommandParser) -> None:
    """Make a command's own parser, which Django has created, exit in the same way."""
    parser.__class__ = RefusingParser
