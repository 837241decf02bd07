"""Queries in SQL that come from the page: of one table, which is the dataset.

Tests: tests/plugins/browse/test_browse_server.py.
"""

from __future__ import annotations

from threading import Timer
from typing import Any

from tfrecord_io.kit import needs

_SECONDS = 120
_SETTINGS = (
    "python_enable_replacements = false",  # variables of this program are not tables
    "enable_external_access = false",
    "memory_limit = '50MB'",
    "threads = 1",
    "lock_configuration = true",
)


def query_rows(source: Any, sql: str, limit: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns and the first rows of a query, whose only table is ``data``: it reads no other file, and writes none.

    ValueError if DuckDB refuses it.
    """
    import tfrecord_io as tfr

    with needs("duckdb"):
        import duckdb
    with duckdb.connect() as connection:
        tfr.register_duckdb(connection, source, name="data")
        for setting in _SETTINGS:
            connection.execute(f"SET {setting}")
        timer = Timer(_SECONDS, connection.interrupt)
        timer.start()
        try:
            answer = connection.execute(sql)
            return [column[0] for column in answer.description or ()], answer.fetchmany(limit)
        except duckdb.Error as error:
            raise ValueError(str(error)) from error
        finally:
            timer.cancel()
