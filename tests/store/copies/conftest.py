"""The fixtures `pair` and `store`: directories on disk and in stores between which files are copied."""

from copy_stores import pair, store  # noqa: F401
