"""`lakebed inspect-manifest`: what the metadata says of a table's files."""

import click

from lakebed.cli.group import command
from lakebed.cli.session import Session


@command("inspect-manifest")
@click.argument("name")
@click.argument("manifest", required=False)
@click.pass_obj
def inspect_manifest(session: Session, name: str, manifest: str | None) -> None:
    """List the manifests of the table NAME, or the entries of one MANIFEST.

    A MANIFEST is named as the list names it; one that is inside a snapshot file is PATH#N.
    """
    table = session.table(name)
    found = table.inspect.manifests() if manifest is None else table.manifest(manifest)
    session.output.arrow(found.schema, found.to_batches())
