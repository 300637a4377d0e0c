"""Clients of object stores: how they are built from options, and what their errors mean.

Secrets stay inside the client. Its error texts quote URLs, which may carry a signature, so they
are cleaned before they are shown, and the client's own exception is not chained to ours.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from obstore.exceptions import (
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import from_url

from lakebed.errors import (
    LakebedError,
    ObjectMissingError,
    RequestError,
    StorageError,
    UnavailableError,
)

CLIENT_ERRORS = (BaseError, OSError, ValueError)

_REQUEST_TIMEOUT_MS = 60_000
_CONNECT_TIMEOUT_MS = 5_000
_RETRY_TIMEOUT_MS = 60_000
_RETRY_COUNT_MAX = 5
_ERROR_LENGTH_MAX = 400

# The options of the HTTP client, which obstore wants apart from those of the service.
_CLIENT_KEYS = {
    *("allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type"),
    *("http1_only", "http2_keep_alive_interval", "http2_keep_alive_timeout"),
    *("http2_keep_alive_while_idle", "http2_only", "pool_idle_timeout"),
    *("pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes", "proxy_url"),
    *("randomize_addresses", "read_timeout", "root_certificate", "timeout", "user_agent"),
}
_SERVICE_PREFIXES = ("aws_", "azure_", "google_")
_PUBLIC_KEYS = re.compile(r"endpoint|region|bucket|account_name|container|allow|timeout|style|http")
_STATUS = re.compile(r"status code: (\d{3})")
_URL = re.compile(r"(https?://)(?:[^/\s@]*@)?([^\s?]*)\?[^\s\"',]*|(https?://)[^/\s@]*@")
_RETRYABLE_STATUSES = {408, 409, 429}


@dataclass(frozen=True, slots=True)
class Clients:
    """The connections that a store and its children share.

    `writer` never repeats a request by itself, so that we know whether one was in doubt.
    """

    reader: Any = field(repr=False)
    writer: Any = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    identity: str


def connect(location: str, options: Mapping[str, Any]) -> Clients:
    """Build the clients for a bucket or container such as `s3://bucket`."""
    service, client = _split_options(options)
    secrets = _secrets(options)
    built = []
    for retry_count_max in (_RETRY_COUNT_MAX, 0):
        retry: Any = {
            "max_retries": retry_count_max,
            "retry_timeout": timedelta(milliseconds=_RETRY_TIMEOUT_MS),
        }
        try:
            built.append(
                from_url(location, config=service, client_options=client, retry_config=retry)
            )
        except UnknownConfigurationKeyError as error:
            raise RequestError(
                f"a storage option is not known: {clean(error, secrets)}",
                hint="Use the names of object_store, such as AWS_ENDPOINT_URL",
            ) from None
        except CLIENT_ERRORS as error:
            raise RequestError(f"cannot open {location}: {clean(error, secrets)}") from None
    endpoints = sorted(str(value) for key, value in service.items() if "endpoint" in key)
    reader, writer = built
    return Clients(reader, writer, secrets, " ".join([location, *endpoints]))


def is_conflict(error: Exception) -> bool:
    """Tell a race that has not been decided (409) from an object that is there (412)."""
    return _status(error) == 409


def is_beyond_end(error: Exception) -> bool:
    """Tell a range that an object does not have, such as any range of an empty one."""
    return _status(error) == 416


def read_error(error: Exception, place: str, secrets: Iterable[str]) -> LakebedError:
    """Say what a failed request means."""
    text = clean(error, secrets)
    if isinstance(error, FileNotFoundError):
        if "NoSuchBucket" in text:
            return StorageError(f"there is no bucket for {place}", hint="Create it first")
        return ObjectMissingError(f"there is no {place}", path=place)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return StorageError(
            f"the store refuses access to {place}: {text}",
            hint="Check the credentials and the bucket's policy",
        )
    status = _status(error)
    if status is not None and 400 <= status < 500 and status not in _RETRYABLE_STATUSES:
        return StorageError(f"the store refuses a request for {place}: {text}")
    return UnavailableError(f"the store gave no answer for {place}: {text}", path=place)


def write_error(error: Exception, place: str, secrets: Iterable[str]) -> LakebedError:
    """Say what a failed put means."""
    if isinstance(error, FileNotFoundError):  # one can only miss the bucket
        return StorageError(f"there is no bucket for {place}", hint="Create it first")
    return read_error(error, place, secrets)


def clean(error: Exception, secrets: Iterable[str]) -> str:
    """The client's words without secrets, queries and its debug output."""
    text = _URL.sub(r"\1\2\3", str(error).split("\n\nDebug source", 1)[0])
    for secret in secrets:
        text = text.replace(secret, "***")
    return " ".join(text.split())[:_ERROR_LENGTH_MAX]


def _split_options(options: Mapping[str, Any]) -> tuple[Any, Any]:
    service: dict[str, Any] = {}
    client: dict[str, Any] = {
        "timeout": timedelta(milliseconds=_REQUEST_TIMEOUT_MS),
        "connect_timeout": timedelta(milliseconds=_CONNECT_TIMEOUT_MS),
    }
    for key, value in options.items():
        name = key.lower()
        bare = next((name.removeprefix(p) for p in _SERVICE_PREFIXES if name.startswith(p)), name)
        if bare in _CLIENT_KEYS:
            client[bare] = value
        else:
            service[name] = value
    return service, client


def _secrets(options: Mapping[str, Any]) -> tuple[str, ...]:
    """All values but those known to be harmless, longest first so that none hides a part."""
    values = {str(value) for key, value in options.items() if not _PUBLIC_KEYS.search(key.lower())}
    return tuple(sorted((value for value in values if len(value) > 2), key=len, reverse=True))


def _status(error: Exception) -> int | None:
    found = _STATUS.search(str(error))
    return int(found[1]) if found else None
