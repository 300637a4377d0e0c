"""The bounds on everything that comes from outside, in one place; units are in the names."""

FORMAT_VERSION = 1

JSON_SIZE_BYTES_MAX = 64 << 20
JSON_DEPTH_MAX = 64
JSON_BRACKET_COUNT_MAX = 1 << 22  # lists and objects: each takes far more memory than its text
MANIFEST_SIZE_BYTES_MAX = 256 << 20
MANIFEST_EXPANDED_BYTES_MAX = 1 << 30
FOOTER_SIZE_BYTES_MAX = 64 << 20

PATH_LENGTH_BYTES_MAX = 1024
IDENTIFIER_LENGTH_MAX = 255
COLUMN_COUNT_MAX = 5_000
TYPE_DEPTH_MAX = 32
TAG_COUNT_MAX = 10_000
COUNT_MAX = (1 << 53) - 1  # rows, files, bytes: JSON and floats hold it exactly
TIME_MS_MAX = 253_402_300_799_999  # the end of the year 9999
PREDICATE_LENGTH_MAX = 1 << 20
PREDICATE_DEPTH_MAX = 200

BOUND_LENGTH_MAX = 64  # characters or bytes kept of a string or binary bound
SUMMARY_BOUND_LENGTH_MAX = 16  # the same in the summary of a manifest
SUMMARY_COLUMN_COUNT_MAX = 8  # leading columns whose range is kept per manifest
STATS_COLUMN_COUNT_MAX = 64  # leading columns whose range is kept per file

TAIL_FILE_COUNT_MAX = 16  # files listed inside the snapshot before they fold into a manifest
TAIL_SIZE_BYTES_MAX = 16 << 10
TIER_FANOUT = 8  # manifests of one tier that fold into one of the next
MANIFEST_FILE_COUNT_SEALED = 16_384  # a manifest this large is not rewritten by appends
TOKEN_APP_COUNT_MAX = 64  # writers whose last token travels inside each snapshot

COMMIT_ATTEMPT_COUNT_MAX = 16
COMMIT_BACKOFF_MS_MIN = 10
COMMIT_BACKOFF_MS_MAX = 2_000

DATA_FILE_ROW_COUNT_MAX = 4_000_000
ROW_GROUP_ROW_COUNT_MAX = 1 << 20
