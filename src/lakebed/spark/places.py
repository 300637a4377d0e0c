"""Where the JVM can read a table's files by itself.

    local directory   file:///…, as it is
    s3://bucket/…     s3a://bucket/… if hadoop-aws is among Spark's jars; our storage options go
                      along with the read, under Hadoop's names
    the rest          not by the JVM: through Python workers, or over the driver for `memory:`

Under Spark Connect nobody can ask the server for its jars, so `spark.lakebed.s3a` says it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakebed.table.services import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S3A_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
S3A_SETTING = "spark.lakebed.s3a"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_S3A_NAMES = {
    "access_key_id": "fs.s3a.access.key",
    "secret_access_key": "fs.s3a.secret.key",
    "session_token": "fs.s3a.session.token",
    "token": "fs.s3a.session.token",
    "endpoint": "fs.s3a.endpoint",
    "endpoint_url": "fs.s3a.endpoint",
    "region": "fs.s3a.endpoint.region",
    "default_region": "fs.s3a.endpoint.region",
}
_TEMPORARY_KEYS = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"


@dataclass(frozen=True, slots=True, kw_only=True)
class JvmPlace:
    """A directory as Hadoop names it: `prefix` ends with a slash, `options` may hold secrets."""

    prefix: str
    is_local: bool
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def uri(self, path: str) -> str:
        """The name of a file; Hadoop takes it as it is, so nothing is percent-encoded."""
        return self.prefix + path


def is_connect(spark: "SparkSession") -> bool:
    """Whether the session is one of Spark Connect, which has no JVM of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_memory(place: Place) -> bool:
    """Whether the files are in this process and nowhere else."""
    return place.location.startswith("memory:")


def jvm_place(spark: "SparkSession", place: Place) -> JvmPlace | None:
    """How the JVM reads the directory, or None if it cannot."""
    found = _SCHEME.match(place.location)
    if found is None:
        return JvmPlace(prefix=f"file://{place.location.rstrip('/')}/", is_local=True)
    if found[1] == "s3" and _has_s3a(spark):
        prefix = f"s3a{place.location[found.end(1) :].rstrip('/')}/"
        return JvmPlace(prefix=prefix, is_local=False, options=s3a_options(place.storage_options))
    return None


def s3a_options(storage_options: Mapping[str, Any]) -> dict[str, str]:
    """Our options for S3 under the names of hadoop-aws; those it has no name for are left out."""
    options: dict[str, str] = {}
    for key, value in storage_options.items():
        name = key.lower().removeprefix("aws_")
        if name in _S3A_NAMES:
            options[_S3A_NAMES[name]] = str(value)
        elif name == "virtual_hosted_style_request":
            options["fs.s3a.path.style.access"] = str(not _is_true(value)).lower()
        elif name == "allow_http":
            options["fs.s3a.connection.ssl.enabled"] = str(not _is_true(value)).lower()
    if "fs.s3a.endpoint" in options:
        # Servers that are named by an endpoint mostly have no names for buckets.
        options.setdefault("fs.s3a.path.style.access", "true")
    if "fs.s3a.session.token" in options:
        options["fs.s3a.aws.credentials.provider"] = _TEMPORARY_KEYS
    return options


def _is_true(value: object) -> bool:
    return str(value).lower() in ("true", "1", "yes", "on")


def _has_s3a(spark: "SparkSession") -> bool:
    said = spark.conf.get(S3A_SETTING, "")
    if said or is_connect(spark):
        return _is_true(said)
    jvm: Any = spark._jvm
    return bool(jvm.org.apache.spark.util.Utils.classIsLoadable(S3A_CLASS))


__all__ = [
    "S3A_CLASS",
    "S3A_SETTING",
    "JvmPlace",
    "is_connect",
    "is_memory",
    "jvm_place",
    "s3a_options",
]
