"""``steelyard completion``: the script by which a shell completes commands and options."""

from __future__ import annotations

import click

_EPILOG = """\b
Examples:
  steelyard completion bash > ~/.local/share/bash-completion/completions/steelyard
  steelyard completion zsh > "${fpath[1]}/_steelyard"
  steelyard completion fish > ~/.config/fish/completions/steelyard.fish
"""


@click.command("completion", epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands and options."""
    from click.shell_completion import ShellComplete, get_completion_class

    program = ctx.find_root().command
    script = get_completion_class(shell)
    assert script is not None  # noqa: S101  click has all three
    # Not its own source(), which asks the shell of this machine for its version.
    click.echo(ShellComplete.source(script(program, {}, "steelyard", "_STEELYARD_COMPLETE")))
