"""The ``steelyard`` command: its sub-commands by name, loaded only when called.

``steelyard --help`` shows the table below and imports no command, so it answers at once.
"""

from __future__ import annotations

import difflib
import gc
import importlib
import signal
from typing import Any

import click

from steelyard.cli.failures import (
    INTERRUPTED,
    REFUSED,
    disk_failures,
    exit_status,
    show_failure,
    show_notes,
)
from steelyard.cli.terminal import write_any_text
from steelyard.errors import SteelyardError
from steelyard.settings import InvalidSettingError
from steelyard.version import __version__

#: The line that lists each command; its module has its name, with one exception.
COMMANDS = {
    "account": "Make and list accounts, and add credit.",
    "alarm": "Show where models no longer decide as they did.",
    "backup": "Copy a home while its server runs.",
    "billing": "Confirm and refund purchases, and look into payments.",
    "completion": "Print the script that makes a shell complete commands and options.",
    "dataset": "Make, list, read and delete datasets.",
    "decide": "Answer decisions about one context.",
    "decision": "Keep decisions under names, on a server and as files of a repository.",
    "decisions": "Draw stored decisions to check, and export them.",
    "evaluate": "Score models on a dataset, and show what was measured.",
    "evaluation": "Export what an evaluation scored, and find thresholds.",
    "family": "Grow, switch and roll back lineages of fine-tuned models.",
    "frontier": "Show which models of a dataset no other model beats.",
    "job": "List, follow and stop jobs of all kinds.",
    "doctor": "Check this installation.",
    "judge": "Hold judges to labels of people, and show what they qualified by.",
    "key": "Make, list and revoke API keys.",
    "labeling": "Ask other models to label rows, and make datasets of them.",
    "lint": "Show what about a request makes its answers worse.",
    "map": "Lay out the rows of datasets as points: those that are alike lie near.",
    "mcp": "Offer a server's API to agents, as tools of the Model Context Protocol.",
    "model": "Show the model that ships, and connect others.",
    "move-home": "Copy a home to a database and an object store, or back.",
    "review": "Begin reviews, assign their rows, and show how far people are.",
    "restore": "Put a copy in the place of a home.",
    "route": "Fit, list and remove routes: models asked in turn, cheap ones first.",
    "serve": "Answer decisions over HTTP.",
    "workbench": "Show a server's workbench in the browser.",
    "worker": "Run the evaluations and fine-tunes of a server.",
    "tune": "Rewrite a decision's wording on a dataset's rows, and prove it.",
    "triton": "Run the models' passes in a Triton server.",
    "webhook": "Deliver events of an account to endpoints of other programs.",
    "up": "Start everything, with sample datasets.",
}
_MODULES = {"worker": "job_worker", "move-home": "move_home"}
#: Objects before Python's collector of cycles looks at them: modules stay, and looking at them
#: again and again took a twentieth of a server's start.
_LOADED_OBJECTS = 50_000

_EPILOG = """\b
Examples:
  steelyard decide --context "Invoice 118 was paid twice." \\
      --question "Does the writer ask for money back?" --kind binary
  steelyard decide request.json --json
  steelyard lint request.json
  steelyard serve

\b
To complete commands in a shell: eval "$(steelyard completion bash)"
"""


class LazyGroup(click.Group):
    """A group that lists commands from ``COMMANDS`` and imports the one that is called.

    Errors of the package end the command with a message on the error stream and a status that
    scripts can tell apart.
    """

    def __call__(self, *args: Any, **extra: Any) -> Any:
        """Run the command line of this process, whose end no further Ctrl-C shows a traceback of."""
        try:
            return self.main(*args, **extra)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line, whatever the output stream's encoding."""
        write_any_text()
        gc.set_threshold(_LOADED_OBJECTS, 10, 10)
        return super().main(*args, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands' names, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; ``None`` when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"steelyard.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; an unknown name is refused with those like it."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(name.lower(), COMMANDS)
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such command {name!r}.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        """Run a command, turning the package's errors into messages and exit statuses."""
        try:
            with disk_failures():
                return super().invoke(ctx)
        except (SteelyardError, InvalidSettingError) as error:
            show_failure(error)
            ctx.exit(exit_status(error))
        except click.FileError as error:  # a file of the command line, for which click has 1
            error.show()
            ctx.exit(REFUSED)
        except RecursionError:
            click.echo("Error: The input is nested too deep; send fewer levels.", err=True)
            ctx.exit(REFUSED)
        except KeyboardInterrupt as error:
            click.echo("Stopped.", err=True)
            show_notes(error)
            ctx.exit(INTERRUPTED)


@click.group(
    cls=LazyGroup,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="steelyard")
def main() -> None:
    """Calibrated decisions on your own machine.

    Exit status: 0 answered, 2 the request or the command line cannot be used, 3 the engine is not
    available, 130 Ctrl-C stopped it, 1 anything else.
    """
