"""The versions shown for bug reports."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

import tfrecord_io as tfr


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    tfr.show_versions()
    return dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())


def test_versions_of_installed_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    tfr.show_versions()
    names = [line.split(": ", 1)[0] for line in capsys.readouterr().out.splitlines()]
    assert names[0] == "tfrecord_io"
    assert "pyarrow" in names
    assert len(set(names)) == len(names)
    assert shown(capsys)["pyarrow"] == metadata.version("pyarrow")


def test_a_module_is_found_without_its_usual_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual, missing = metadata.version, {"tensorflow", "torch", "ray"}

    def version(name: str) -> str:
        if name in missing:
            raise metadata.PackageNotFoundError(name)
        return usual(name)

    for name in ("tensorflow", "torch"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise AssertionError('imported')")
    info = tmp_path / "tensorflow_cpu-9.8.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow-cpu\nVersion: 9.8\n")
    (info / "top_level.txt").write_text("tensorflow\n")
    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.syspath_prepend(tmp_path)
    versions = shown(capsys)
    assert versions["tensorflow"] == "9.8 (tensorflow-cpu)"
    assert versions["torch"] == f"version unknown ({tmp_path / 'torch' / '__init__.py'})"
    assert versions["ray"] == "not installed"
