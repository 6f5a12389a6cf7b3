"""`settings`: print the effective settings of this machine, with their sources."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path

from config.effective_settings import effective_settings, unknown_settings
from config.up.child import print_line


class Command:
    """Not a Django command: it needs no database, and no app."""

    help = "Print every setting with its effective value and its source. Secrets are hidden."

    def run_from_argv(self, argv: list[str]) -> None:
        options = self._parser(argv[0], argv[1]).parse_args(argv[2:])
        found = effective_settings()
        if options.json:
            print(json.dumps([asdict(setting) for setting in found], indent=2))
        else:
            width = max(len(setting.name) for setting in found)
            for setting in found:
                print(f"{setting.name:{width}}  {setting.value}  [{setting.source}]")
        for name in unknown_settings():
            print_line(f"{name} is not a setting: see templates/guide/settings.md")

    def print_help(self, program: str, name: str) -> None:
        """Print the help for `manage.py help settings`, which calls this method."""
        self._parser(program, name).print_help()

    def _parser(self, program: str, name: str) -> ArgumentParser:
        parser = ArgumentParser(prog=f"{Path(program).name} {name}", description=self.help)
        parser.add_argument("--json", action="store_true", help="print JSON")
        return parser
