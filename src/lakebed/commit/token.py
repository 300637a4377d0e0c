"""Exactly-once tokens: whether a change has been committed before."""

from lakebed.catalog.backend import CatalogBackend
from lakebed.commit.change import Commit, commit_of
from lakebed.commit.head import Head
from lakebed.errors import TokenError
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.pointer import Token


def repeated_commit(
    catalog: CatalogBackend, files: MetadataFiles, head: Head, token: Token | None
) -> Commit | None:
    """The commit that this token made before; None if the token is new.

    The snapshot itself knows the last token of each app that wrote lately, so the common case
    asks the catalog nothing.

    Raises:
        TokenError: the token is older than the app's last one and was never committed.
    """
    if token is None:
        return None
    last = _last(catalog, head, token.app)
    if last is None or token.version > last:
        return None
    found = catalog.find_token(head.pointer, token)
    if found is not None:
        return commit_of(files.snapshot(found.snapshot_path), repeated=True)
    raise TokenError(
        f"token {token.version} of {token.app!r} comes after {last}, which is committed",
        hint="Tokens of one app grow; use the number of the batch, or another app name",
        app=token.app,
        version=token.version,
        last=last,
    )


def _last(catalog: CatalogBackend, head: Head, app: str) -> int | None:
    known = head.snapshot.tokens.get(app)
    if known is not None:
        return known[0]
    if head.snapshot.tokens_complete:
        return None
    token = catalog.last_token(head.pointer, app)
    return None if token is None else token.version
