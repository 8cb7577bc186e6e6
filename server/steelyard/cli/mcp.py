"""``steelyard mcp``: a server's API as tools of the Model Context Protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from steelyard.cli.options import PORT_NUMBER, setting_option
from steelyard.cli.serve import bind

_EPILOG = """\b
Examples:
  steelyard mcp                        on stdio, for an agent that starts it
  steelyard mcp --port 8422            over HTTP, at http://127.0.0.1:8422/mcp
"""


@click.command("mcp", epilog=_EPILOG)
@setting_option("url")
@setting_option("api_key")
@click.option(
    "--port",
    type=PORT_NUMBER,
    help="Serve over HTTP on this port of 127.0.0.1, 0 for a free one; on stdio when left out.",
)
@click.option("--read-only", is_flag=True, help="Offer only the tools that change nothing.")
def command(*, url: str | None, api_key: str | None, port: int | None, read_only: bool) -> None:
    """Offer the API of a server to agents, as tools of the Model Context Protocol.

    On stdio the key is that of STEELYARD_API_KEY, and gets the tools of its scope. Over HTTP each
    caller brings a key of its own as a bearer token.
    """
    try:
        from steelyard.mcp.server import make_server, scope_of
        from steelyard.mcp.tools import OF_SCOPE, READING
    except ImportError as error:
        raise click.ClickException(
            f"The package {error.name} is missing; install it: pip install 'steelyard[mcp]'."
        ) from None
    from steelyard.cli.connecting import client_options, client_settings

    settings = client_settings(url=url, api_key=api_key)
    if port is not None:
        with bind("127.0.0.1", port) as listener:  # so that one line says so where it is taken
            port = listener.getsockname()[1]
    options = client_options(settings)

    def offered(scope: str) -> list[str]:
        return [name for name in OF_SCOPE[scope] if name in READING or not read_only]

    async def serve() -> None:
        if port is not None:
            server: Any = make_server(options, names=offered("full"))
            click.echo(f"MCP at http://127.0.0.1:{port}/mcp, for {options.url}", err=True)
            await server.run_streamable_http_async(
                host="127.0.0.1", port=port, json_response=True, stateless_http=True
            )
            return
        await make_server(options, names=offered(await scope_of(options))).run_stdio_async()

    asyncio.run(serve())
