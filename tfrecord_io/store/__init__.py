"""Files: filesystems, reading in blocks, resolving of paths, and atomic writing."""
