"""Sessions with PostgreSQL: how they are opened, and what their errors mean to a caller.

Errors are told apart by SQLSTATE, never by their text. The password is in the parameters for
libpq and nowhere else: not in the URI that is shown, nor in a message.
"""

import os
from typing import Any, LiteralString
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.types.json import set_json_loads

from lakebed.catalog.postgres_schema import prepare
from lakebed.catalog.postgres_values import json_loads
from lakebed.errors import BadMetadataError, LakebedError, RequestError, UnavailableError

Session = psycopg.Connection[tuple[Any, ...]]

CONNECT_TIMEOUT_S = 10
LOCK_TIMEOUT_MS = 30_000
STATEMENT_TIMEOUT_MS = 60_000
IDLE_TIMEOUT_MS = 60_000  # in a transaction: a writer that hangs may not stop the others for ever
KEEPALIVE = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
_SETTINGS: LiteralString = f"""
SELECT set_config('timezone', 'UTC', false),
  set_config('statement_timeout', '{STATEMENT_TIMEOUT_MS}', false),
  set_config('lock_timeout', '{LOCK_TIMEOUT_MS}', false),
  set_config('idle_in_transaction_session_timeout', '{IDLE_TIMEOUT_MS}', false),
  CASE current_setting('synchronous_commit') WHEN 'off'
    THEN set_config('synchronous_commit', 'on', false) END"""

_SECRETS = ("password", "sslpassword")
_LOST = ("08", "57P")  # the connection failed; the server ends it
_BUSY = ("40", "53", "55", "57", "58")  # rollback, resources, locks, operator, system
_REFUSED = ("0A", "22", "25", "28", "3D", "3F", "42501", "54")  # values, rights, limits
COLLIDED = ("40001", "40P01")  # the server chose this transaction to give way to another


class Address:
    """A parsed URI; it never shows its password."""

    def __init__(self, uri: str) -> None:
        base, _, query = uri.partition("?")
        if base.count("@") > 1:  # libpq would take the end of a password for a host, and show it.
            raise _no_address()
        pairs = parse_qsl(query, keep_blank_values=True)
        rest = urlencode([pair for pair in pairs if pair[0] != "schema"], quote_via=quote)
        self.schema = next((value for key, value in pairs if key == "schema"), "")
        try:
            self.parameters: dict[str, Any] = dict(
                conninfo_to_dict(f"{base}?{rest}" if rest else base)
            )
        except psycopg.Error:
            raise _no_address() from None  # The cause may quote a piece of the password.
        self.uri = self._without_secrets()

    def __repr__(self) -> str:
        return f"Address({self.uri!r})"

    def _without_secrets(self) -> str:
        shown = {key: str(value) for key, value in self.parameters.items() if key not in _SECRETS}
        host, port = shown.pop("host", ""), shown.pop("port", "")
        if "/" in host or "," in host or ":" in host:  # a socket, several hosts, IPv6
            shown["host"], host = host, ""
            if port:
                shown["port"], port = port, ""
        user, database = shown.pop("user", ""), shown.pop("dbname", "")
        if self.schema:
            shown["schema"] = self.schema
        return (
            f"postgresql://{quote(user, safe='') + '@' if user else ''}{host}"
            f"{':' + port if port else ''}/{quote(database, safe='')}"
            f"{'?' + urlencode(shown, quote_via=quote) if shown else ''}"
        )


def _no_address() -> RequestError:
    return RequestError(
        "this is no PostgreSQL URI",
        hint="Write postgresql://user@host:5432/database?schema=name, with special characters"
        " percent-encoded",
    )


def connect(address: Address) -> Session:
    """Open a session with the settings that commits stand on, or raise what `problem` says."""
    parameters = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": "lakebed",
        **KEEPALIVE,
        **address.parameters,
        "client_encoding": "utf8",
    }
    try:
        # Nothing is prepared behind our back: after an aborted pipeline psycopg may take for
        # prepared what the server never saw (26000), and a pooler may not know it either.
        session: Session = psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise _unconnected(error, address) from error
    is_sound = False
    try:
        set_json_loads(json_loads, session)
        session.execute(_SETTINGS)
        prepare(session, address.schema)
        is_sound = True
    except psycopg.Error as error:
        raise problem(error, address.uri) from error
    finally:
        if not is_sound:
            session.close()
    return session


def let_go(session: Session) -> None:
    """In a forked child: close the copy of the socket, so that it does not outlive the parent.

    Nothing is sent; libpq's part of the session is never touched again.
    """
    try:
        os.close(session.fileno())
    except (OSError, psycopg.Error):
        return  # It was closed before.


def is_lost(session: Session, error: psycopg.Error) -> bool:
    """Whether the session is of no more use, and what became of its transaction is unsaid."""
    state = error.sqlstate or "08"
    return session.closed or session.broken or state.startswith(_LOST) or state == "40003"


def is_idle(session: Session) -> bool:
    """Whether no transaction is open."""
    return session.info.transaction_status == TransactionStatus.IDLE


def problem(error: psycopg.Error, uri: str) -> LakebedError:
    """What an error means to a caller, given that nothing was changed."""
    state = error.sqlstate or ""
    where = {"catalog": uri, "sqlstate": state}
    text = (error.diag.message_primary or str(error)).strip()
    if isinstance(error, psycopg.DataError) and not state:
        return RequestError(f"the catalog {uri} cannot take this: {text}", **where)
    if not state or state.startswith(_LOST):
        return UnavailableError(f"the catalog {uri} cannot be reached ({text})", **where)
    if state.startswith(_BUSY):
        return UnavailableError(f"the catalog {uri} is busy ({state}: {text})", **where)
    if state.startswith(_REFUSED):
        return RequestError(f"the catalog {uri} refused this ({state}: {text})", **where)
    return BadMetadataError(f"the catalog {uri} does not work ({state}: {text})", **where)


def _unconnected(error: psycopg.Error, address: Address) -> LakebedError:
    """What a refused connection means; libpq gives no SQLSTATE, but knows of a missing password."""
    text = str(error).strip()
    for key in _SECRETS:
        secret = address.parameters.get(key)
        if secret:
            text = text.replace(str(secret), "***")
    if error.pgconn is not None and error.pgconn.needs_password:
        return RequestError(
            f"the catalog {address.uri} asks for a password",
            hint="Put it into ~/.pgpass, PGPASSWORD or the URI",
            catalog=address.uri,
        )
    return UnavailableError(
        f"the catalog {address.uri} cannot be reached ({text})", catalog=address.uri
    )
