"""`unit`: print a systemd unit of `up`, or of one part."""

import getpass
import os
import sys
from argparse import ArgumentParser
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config import env
from config.env import ASSETS, CHECKOUT, Environment
from config.version import version

# The command of each part; see "More machines" in templates/guide/operating.md.
PARTS = {
    "up": "up",
    "web": "web",
    "senders": "qcluster --name senders",
    "chores": "qcluster --name chores",
    "history": "qcluster --name history",
}
# `up` reports when it is ready, at the latest after PostgreSQL has recovered from a crash.
UP = ("Type=notify", "NotifyAccess=main", "TimeoutStartSec=900")
# Other parts can start only on a prepared database; machines wait for each other.
OTHERS = ("Type=exec", "ExecStartPre={python} {manage} prepare", "TimeoutStartSec=900")

UNIT = """\
# Written by `manage.py unit`: save it as /etc/systemd/system/{name}.service, then run
#   systemctl daemon-reload && systemctl enable --now {name}
# Settings are in {settings}, a line each: NAME=value. It holds secrets: chmod 600.
[Unit]
Description=Inturn {version}: {part}
Documentation=file://{assets}/templates/guide/operating.md
Wants=network-online.target
After=network-online.target

[Service]
{start}
ExecStart={python} {manage} {command}
User={user}
WorkingDirectory={checkout}
Environment=INTURN_HOME={home}
EnvironmentFile=-{settings}
UMask=0077
LimitNOFILE=65536
# SIGTERM goes to the first process, which ends its children in order.
KillMode=mixed
TimeoutStopSec=60
Restart=on-failure
RestartSec=2
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ReadWritePaths={writable}
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes

[Install]
WantedBy=multi-user.target
"""


class Command:
    """Not a Django command: it needs the settings only."""

    help = (
        "Print a systemd unit that runs Inturn, or one part of it, "
        "with this checkout and this home."
    )

    def run_from_argv(self, argv: list[str]) -> None:
        options = self._parser(argv[0], argv[1]).parse_args(argv[2:])
        print(unit(options.part, user=options.user, environment=env.read_environment()), end="")

    def print_help(self, program: str, name: str) -> None:
        """Print the help for `manage.py help unit`, which calls this method."""
        self._parser(program, name).print_help()

    def _parser(self, program: str, name: str) -> ArgumentParser:
        parser = ArgumentParser(prog=f"{Path(program).name} {name}", description=self.help)
        parser.add_argument(
            "--part", choices=PARTS, default="up", help="the command of the unit (default: up)"
        )
        parser.add_argument("--user", default=getpass.getuser(), help="who runs it (default: you)")
        return parser


def unit(part: str, *, user: str, environment: Environment) -> str:
    """Return the unit's text; raises ImproperlyConfigured for a folder no unit can name."""
    writable = [environment.home]
    if "://" not in environment.history_url:
        archive = Path(environment.history_url)
        writable += [] if archive.is_relative_to(environment.home) else [archive]
    for folder in (CHECKOUT, *writable):
        if any(character in str(folder) for character in ' \t"\\%$'):
            raise ImproperlyConfigured(
                f"{folder} has a space or a special character, "
                "which systemd would read in its own way: move it"
            )
    programs = {"python": sys.executable, "manage": ASSETS / "manage.py"}
    start = "\n".join(UP if part == "up" else OTHERS).format(**programs)
    return UNIT.format(
        **programs,
        name="inturn" if part == "up" else f"inturn-{part}",
        part=part,
        command=PARTS[part],
        start=start,
        version=version(),
        checkout=CHECKOUT,
        assets=ASSETS,
        user=user,
        home=environment.home,
        settings=Path(os.sep) / "etc" / "inturn" / "environment",
        writable=" ".join(map(str, writable)),
    )
