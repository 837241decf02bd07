"""The fixture `read`: a column read back from records of arrays."""

from tensor_cells import read  # noqa: F401
