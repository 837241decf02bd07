"""Targets that cannot be opened or replaced, and standard output."""

import os
import subprocess
import textwrap

import pytest

from forked import interpreter
from tfrecord_io.store.write.atomic import open_output


@pytest.mark.fault(24)
def test_errors_of_opening_name_the_path(tmp_path):
    for path, error, text in [
        (tmp_path / "no" / "a", FileNotFoundError, f"the directory '{tmp_path}/no' does not exist"),
        (tmp_path, IsADirectoryError, "a directory, not a file"),
    ]:
        with pytest.raises(error, match=text) as caught:
            open_output(path)
        assert caught.value.filename == str(path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        open_output(tmp_path / "file" / "a")


@pytest.mark.fault(24)
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_read_only_file_is_not_replaced():
    code = """
        import os, tempfile, pytest
        from tfrecord_io.store.write.atomic import open_output
        os.umask(0)
        folder = tempfile.mkdtemp()
        os.chmod(folder, 0o777)
        open(folder + "/a", "wb").close()
        os.chmod(folder + "/a", 0o444)
        os.mkdir(folder + "/locked", 0o555)
        os.setgid(65534), os.setuid(65534)
        for path in (folder + "/a", folder + "/locked/b"):
            with pytest.raises(PermissionError) as caught:
                open_output(path)
            assert caught.value.filename == path
    """
    subprocess.run([*interpreter(), "-c", textwrap.dedent(code)], check=True)


def test_standard_output_is_written_directly(tmp_path):
    code = "from tfrecord_io.store.write.atomic import open_output\n"
    code += "with open_output('/dev/stdout') as out: out.write(b'data')"
    assert subprocess.run([*interpreter(), "-c", code], check=True, capture_output=True).stdout == b"data"
    with open(tmp_path / "out", "wb") as file:
        subprocess.run([*interpreter(), "-c", code], check=True, stdout=file)
        assert os.fstat(file.fileno()).st_size == 4
