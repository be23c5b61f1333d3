"""The tables of a store's database."""

SCHEMA = """
CREATE TABLE results (
    key TEXT PRIMARY KEY,
    operation TEXT NOT NULL,
    request TEXT NOT NULL,
    response TEXT NOT NULL,
    created REAL NOT NULL
) STRICT;
-- Row ids give the order of writing, independent of the clock.
CREATE INDEX results_operation ON results(operation);
CREATE TABLE blobs (
    key TEXT NOT NULL REFERENCES results(key) ON DELETE CASCADE,
    role TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    suffix TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (key, role)
) STRICT;
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    started REAL NOT NULL,
    latency_s REAL,
    status TEXT NOT NULL,
    http_status INTEGER,
    error_type TEXT,
    error TEXT
) STRICT;
-- Keys are random, so each row in an index of them rewrites another page: attempts that succeeded need none.
CREATE INDEX attempts_failed ON attempts(key) WHERE status = 'error';
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    operation TEXT NOT NULL,
    status TEXT NOT NULL,
    started REAL NOT NULL,
    ended REAL,
    manifest TEXT NOT NULL
) STRICT;
CREATE TABLE run_parts (
    run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    rows INTEGER NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;
-- No reference to results: a result may be replaced without the timing of its reply.
CREATE TABLE replies (key TEXT PRIMARY KEY, facts TEXT NOT NULL) STRICT;
"""
# Version of the schema; a database of another version is refused.
SCHEMA_VERSION = 1
