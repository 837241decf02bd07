"""``python -m tfrecord_io`` is the ``tfr`` command."""

from tfrecord_io.apps.cli import main

if __name__ == "__main__":
    main()
