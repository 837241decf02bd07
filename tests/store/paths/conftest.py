"""The fixture `tree`: each test of paths runs on a folder on disk and on one in memory."""

from folder_trees import tree  # noqa: F401
