"""Shards of a dataset by folder, glob, shard spec and braces: order, completeness and ambiguity."""

import gzip
import shutil
import warnings
import zlib
from pathlib import Path

import pytest

import tfrecord_io as tfr
from folder_trees import shards
from tfrecord_io.store.paths import sniff_files
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardName, ShardSpec
from tfrecord_io.store.paths.resolve import resolve_inputs


@pytest.mark.parametrize(
    "name",
    [
        "t-00000-of-00001",
        "t.tfrecord-00000-of-00001",
        "t-00000-of-00001.tfrecord",
        "t-00000-of-00001.tfrecord.gz",
        "t.tfrecord-00000-of-00001.gz",
        "t.tfrecord.gz-00000-of-00001",
        "t-0-of-1.tfrec",
        "v1.0-t-00000-of-00001",
    ],
)
def test_shards_of_every_form_are_record_files(name):
    assert FileName.parse(name).kind is Kind.RECORDS
    assert ShardName.parse(name) is not None


def test_files_come_in_natural_order(tree):
    names = [f"part{i}.tfrecord" for i in range(12)]
    tree.make(*names, "sub10/x.tfrecord", "sub9/x.tfrecord")
    assert tree.found("") == names
    assert tree.found("part*.tfrecord") == names
    assert tree.found("sub*/*") == ["sub9/x.tfrecord", "sub10/x.tfrecord"]


def test_several_families_in_a_directory_are_refused_with_a_glob_for_each_that_works(tree):
    tree.make(
        *shards("mnist-train.tfrecord", 3),
        *shards("mnist-test.tfrecord", 1),
        *shards("x[1]", 2, ".tfrec"),
        "x1-00000-of-00002.tfrec",
    )
    with pytest.raises(ValueError, match="families of shards; name one") as caught:
        tree.found("")
    globs = [g for g in str(caught.value).split("'") if "-*-of-" in g]
    assert len(globs) == 4
    sizes = [len(resolve_inputs(g, allow_missing_shards=True)) for g in globs]
    assert sorted(sizes) == [1, 1, 2, 3]


@pytest.mark.parametrize(
    "names",
    [
        ["part-m-00000", "part-r-00000", "part-r-100000"],
        ["a-00000.tfrecord", "part-00000.tfrecord", "part-00001-0123456789abcdef.tfrecord"],
    ],
)
def test_the_glob_of_a_family_matches_all_numbers_of_its_shards(tree, names):
    tree.make(*names)
    with pytest.raises(ValueError, match="families of shards; name one") as caught:
        tree.found("")
    globs = [g for g in str(caught.value).split("'") if "?????" in g]
    assert [len(resolve_inputs(g)) for g in globs] == [1, 2]


def test_a_glob_may_join_families(tree):
    tree.make(*shards("mnist-train", 2), *shards("mnist-test", 1))
    assert tree.found("mnist-*") == [*shards("mnist-test", 1), *shards("mnist-train", 2)]


def test_one_family_with_two_counts_is_refused(tree):
    tree.make(*shards("train", 2), *shards("train", 3))
    with pytest.raises(ValueError, match=r"train-\*-of-00002.*train-\*-of-00003"):
        tree.found("")
    with pytest.raises(FileNotFoundError, match="exists twice"):
        tree.found("train-*")
    assert tree.found("train@3") == shards("train", 3)
    with pytest.raises(ValueError, match="2 families"):
        tree.found("train@*")


def test_sidecars_and_directories_never_match_a_glob(tree):
    tree.make("a.tfrecord", "a.tfrecord.index", "a.json", "_a.tfrecord", "asub/b.tfrecord")
    assert tree.found("*") == ["a.tfrecord"]
    assert tree.found("a*") == ["a.tfrecord"]
    assert tree.found("_a*") == ["_a.tfrecord"]
    with pytest.raises(FileNotFoundError, match="directories or not data"):
        tree.found("*.index")
    assert tree.found("a.tfrecord.index") == ["a.tfrecord.index"]


def test_recursive_globs(tree):
    tree.make("x/a.tfrecord", "x/y/b.tfrecord", "c.tfrecord")
    assert sorted(tree.found("**/*.tfrecord")) == ["c.tfrecord", "x/a.tfrecord", "x/y/b.tfrecord"]


def test_a_missing_shard_is_named(tree):
    names = shards("train.tfrecord", 12)
    tree.make(*[n for n in names if "00007" not in n and "00009" not in n])
    for path in ("", "train*", "train@12", "train.tfrecord@*"):
        with pytest.raises(
            FileNotFoundError, match=r"shard 7 of 12 is missing \(and 1 more\); allow_missing_shards=True"
        ) as caught:
            tree.found(path)
        assert caught.value.filename == f"{tree.root}/{names[7]}"
        assert len(tree.found(path, allow_missing_shards=True)) == 10


def test_a_glob_that_names_some_shards_reads_those(tree):
    names = shards("part", 500)
    tree.make(*names[:3], *names[9:12])
    assert tree.found("part-0000[01]-of-00500") == names[:2]
    assert tree.found("part-0001[01]-of-*") == names[10:12]
    assert tree.found("*-00002-*") == [names[2]]
    with pytest.raises(FileNotFoundError, match=r"shard 3 of 500 is missing \(and 5 more\)") as caught:
        tree.found("part-0000?-of-00500")
    assert caught.value.filename == f"{tree.root}/{names[3]}"


def test_a_missing_shard_is_found_among_names_with_several_suffixes(tree):
    tree.make("t-00000-of-00004", "t-00001-of-00004.gz")
    assert tree.found("t-0000[01]*") == ["t-00000-of-00004", "t-00001-of-00004.gz"]
    with pytest.raises(FileNotFoundError, match="shard 2 of 4 is missing;"):
        tree.found("t-0000[012]-of-00004*")


@pytest.mark.parametrize(
    ("names", "pattern", "missing"),
    [
        (["t-00000-of-100000", "t-99999-of-100000"], "t-?????-of-100000", "t-00001-of-100000"),
        (["t-00000-of-100000", "t-00002-of-100000"], "t-0000[012]-*", "t-00001-of-100000"),
        (["t-00000-of-100001", "t-100000-of-100001"], "t-*", "t-00001-of-100001"),
        (["t-000000-of-100000", "t-000002-of-100000"], "t-00000[012]-*", "t-000001-of-100000"),
        (["t-000001-of-000003"], "t-*", "t-000000-of-000003"),
        (["t-0-of-12", "t-11-of-12"], "t-?-of-12", "t-1-of-12"),
    ],
)
def test_a_missing_shard_is_named_as_the_others(tree, names, pattern, missing):
    tree.make(*names)
    with pytest.raises(FileNotFoundError) as caught:
        tree.found(pattern)
    assert caught.value.filename.endswith(f"/{missing}")


@pytest.mark.parametrize("name", ["x-{:05d}-of-00003", "x-{}-of-3.tfrecord", "x.tfrecord-{:05d}-of-00003.gz"])
def test_shards_that_count_from_1_are_a_full_set(tree, name):
    names = [name.format(index) for index in (1, 2, 3)]
    tree.make(*names)
    for path in ("", "x*", "x@3", "x@*"):
        assert tree.found(path) == names
    tree.fs.rm_file(f"{tree.root}/{names[1]}")
    for path in ("", "x*", "x@3"):
        with pytest.raises(FileNotFoundError, match=r"shard 2 of 3 is missing;") as caught:
            tree.found(path)
        assert caught.value.filename == f"{tree.root}/{names[1]}"
    assert tree.found(names[2].replace("3-of", "[3]-of")) == [names[2]]
    tree.make(name.format(0))  # beside which the last is no shard of them
    with pytest.raises(FileNotFoundError, match=r"shard 2 of 3 is missing;"):
        tree.found("")
    tree.fs.rm_file(f"{tree.root}/{names[0]}")
    with pytest.raises(FileNotFoundError, match=r"shard 1 of 3 is missing \(and 1 more\);"):
        tree.found("")


def test_shards_that_count_from_1_are_read_of_a_web_server(web):
    record = bytes.fromhex("000000000000000029039807") + bytes(4)
    names = [f"x-{index:05d}-of-00003" for index in (1, 2, 3)]
    web.files.update(dict.fromkeys(names, record))
    assert [source.path for source in resolve_inputs(web.url("x@3"))] == [web.url(name) for name in names]
    del web.files[names[0]]
    with pytest.raises(FileNotFoundError, match="shard 1 of 3 is missing;"):
        resolve_inputs(web.url("x@3"))


def test_salvage_names_the_missing_of_shards_that_count_from_1(tmp_path):
    for index in (1, 3):
        (tmp_path / "in").mkdir(exist_ok=True)
        tfr.write_tfrecord({"x": [index]}, tmp_path / "in" / f"x-{index:05d}-of-00003.tfrecord")
    report = tfr.salvage(tmp_path / "in", f"{tmp_path}/out/")
    assert [Path(name).name for name in report.missing] == ["x-00002-of-00003.tfrecord"]


def test_a_single_shard_that_counts_from_1_is_read(tree):
    tree.make("x-00001-of-00001")
    assert tree.found("") == tree.found("x@1") == ["x-00001-of-00001"]


def test_a_count_without_bound_is_still_checked(tree):
    tree.make("t-00000-of-99999999999999")
    with pytest.raises(FileNotFoundError, match="shard 1 of 99999999999999 is missing"):
        tree.found("t-00000-*")


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("base", ["part", "part-r", "part-m"])
def test_files_of_hadoop_are_shards_without_a_count(tree, base, suffix):
    names = [f"{base}-{i:05d}{suffix}" for i in (0, 2)]
    tree.make(*names, "_SUCCESS", f".{base}-00000.crc")
    assert tree.found("") == names
    assert ShardName.parse("model-00010") is None


def test_a_directory_without_known_names_is_read_by_content(tree):
    record = bytes.fromhex("000000000000000029039807") + bytes(4)
    contents = {
        "events.out.tfevents.1.host": record,
        "data": gzip.compress(record * 3),
        "small.bin": zlib.compress(record * 3, wbits=10),
        "hidden/_x": record,
        "_x": record,
        "x.idx": record,
        "notes.md": b"some notes",
        "broken": gzip.compress(record)[:11],
        "empty": b"",
    }
    for name, content in contents.items():
        tree.make(name)
        tree.fs.pipe_file(f"{tree.root}/{name}", content)
    assert tree.found("") == ["data", "events.out.tfevents.1.host", "small.bin"]
    tree.make("a.tfrecord")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert tree.found("") == ["a.tfrecord"]
    if "://" in tree.root:  # a request for each file
        assert not caught
    else:
        assert "'data' and 2 more not read: the content is TFRecord, but the name is not" in str(caught[0].message)


def test_a_warning_names_a_file_in_a_folder_that_is_not_a_partition(tree):
    tree.make("a.tfrecord", "k=1/b.tfrecord", "_sub/c.tfrecord", ".sub/c.tfrecord", "1/x", "2/d.tfrecord")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert tree.found("") == ["a.tfrecord", "k=1/b.tfrecord"]
    if "://" in tree.root:  # a request for each folder
        assert not caught
    else:
        (message,) = [str(warning.message) for warning in caught]
        assert "'2/d.tfrecord' not read: in a folder that is not a partition" in message
        assert f"the glob '{tree.root}/**/*.tfrecord' names all" in message
    assert set(tree.found("**/*.tfrecord")) >= {"a.tfrecord", "k=1/b.tfrecord", "2/d.tfrecord"}


@pytest.mark.filterwarnings("error")
def test_files_without_records_are_ignored_without_a_warning(tree):
    tree.make("a.tfrecord", "_x", "data.index", "notes.md", "sub/x", "other")
    assert tree.found("") == ["a.tfrecord"]


def test_a_directory_of_many_other_files_is_not_opened(tree, monkeypatch):
    monkeypatch.setattr(sniff_files, "MOST_SNIFFED", 2)
    tree.make("1.jpg", "2.jpg", "3.jpg")
    with pytest.raises(
        FileNotFoundError, match="its 3 other files were not inspected, as there are more than 2; it has 3"
    ):
        tree.found("")


def test_duplicate_shard_is_named(tree):
    tree.make(*shards("train", 2), "train-00001-of-00002.gz")
    with pytest.raises(FileNotFoundError, match="shard 1 exists twice"):
        tree.found("")
    assert len(tree.found("", allow_missing_shards=True)) == 3


def test_explicit_list_keeps_its_order_and_is_not_checked(tree):
    names = shards("train", 4)
    tree.make(*names, "x.tfrecord")
    listed = [f"{tree.root}/{n}" for n in (names[2], "x.tfrecord", names[0], names[0])]
    assert tree.found(listed) == [names[2], "x.tfrecord", names[0], names[0]]
    assert tree.found(iter(listed)) == tree.found(tuple(listed))
    assert tree.found([f"{tree.root}/train-0000[12]*"]) == names[1:3]


def test_missing_element_of_a_list_is_named(tree):
    tree.make("a.tfrecord")
    with pytest.raises(FileNotFoundError, match=r"no such file.*b\.tfrecord"):
        tree.found([f"{tree.root}/a.tfrecord", f"{tree.root}/b.tfrecord"])


@pytest.mark.parametrize(
    ("spec", "files"),
    [
        ("name@3", shards("name", 3)),
        ("name@*", shards("name", 3)),
        ("mnist-train@3", shards("mnist-train.tfrecord", 3)),
        ("mnist-train.tfrecord@3", shards("mnist-train.tfrecord", 3)),
        ("name.tfrecord@3", shards("name", 3, ".tfrecord")),
        ("name@3", shards("name", 3, ".tfrecord.gz")),
        ("name.tfrecord.gz@3", shards("name", 3, ".tfrecord.gz")),
        ("name.tfrecord@3", shards("name.tfrecord", 3, ".gz")),
    ],
)
def test_shard_specs_find_every_form(tree, spec, files):
    tree.make("sub/other-00000-of-00003", *(f"sub/{f}" for f in files))
    assert tree.found(f"sub/{spec}") == [f"sub/{f}" for f in files]


def test_form_that_matches_the_stem_exactly_wins(tree):
    tree.make(*shards("train", 2), *shards("train.tfrecord", 2))
    assert tree.found("train@2") == shards("train", 2)
    assert tree.found("train.tfrecord@2") == shards("train.tfrecord", 2)


def test_a_spec_that_fits_several_forms_is_refused(tree):
    tree.make(*shards("train.tfrecord", 2), *shards("train.tfrec", 2))
    with pytest.raises(ValueError, match=r"train\.tfrec-\*-of-00002.*train\.tfrecord-\*-of-00002"):
        tree.found("train@2")


def test_spec_with_wrong_count_names_the_existing_one(tree):
    tree.make(*shards("train", 2))
    with pytest.raises(FileNotFoundError, match="no shards such as 'train-00000-of-00008'; there is train@2"):
        tree.found("train@8")
    with pytest.raises(FileNotFoundError, match="no shards such as"):
        tree.found("nowhere/train@8")


def test_at_sign_elsewhere_is_not_a_spec():
    for name in ("a@b", "a@8b", "@8", "a/@8", "a@", "a@-1", "a@2.png", "a@2.", "a@2x.tfrecord", "a@2.b.tfrecord"):
        assert ShardSpec.parse(name) is None
    assert ShardSpec.parse("s3://user@2/x@8") == ("s3://user@2/x", 8, False)


def test_braces(tree):
    tree.make("a.tfrecord", "b.tfrecord", *(f"f{i:04d}.tfrec" for i in range(20)))
    assert tree.found("{b,a}.tfrecord") == ["a.tfrecord", "b.tfrecord"]
    assert tree.found("f{0000..0019}.tfrec") == [f"f{i:04d}.tfrec" for i in range(20)]
    assert tree.found("{a,f000[12]}.*") == ["a.tfrecord", "f0001.tfrec", "f0002.tfrec"]
    assert tree.found("{a,a*}.tfrecord") == ["a.tfrecord"]


def test_missing_file_of_braces_is_named(tree):
    tree.make("f0.tfrec", "f2.tfrec")
    with pytest.raises(FileNotFoundError, match=r"f1\.tfrec"):
        tree.found("f{0..2}.tfrec")
    assert tree.found("f{0..2}.tfrec", allow_missing_shards=True) == ["f0.tfrec", "f2.tfrec"]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        tree.found("g{0..2}.tfrec", allow_missing_shards=True)


def test_shards_named_by_braces_are_a_list(tree):
    tree.make(*shards("train", 8))
    assert tree.found("train-{00002..00004}-of-00008") == shards("train", 8)[2:5]
    assert tree.found("train-0000[2-4]-of-00008") == shards("train", 8)[2:5]


@pytest.mark.parametrize("digits", [5, 6])
@pytest.mark.parametrize("suffix", ["", ".tfrecord"])
def test_any_number_of_shards_with_a_suffix(digits: int, suffix: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "one.tfrecord", embed_schema=False)
    for number in range(2):
        shutil.copy(tmp_path / "one.tfrecord", tmp_path / f"train-{number:0{digits}}-of-{2:0{digits}}{suffix}")
    for name in ("train@*", "train@2", f"train@*{suffix}", f"train@2{suffix}"):
        assert tfr.count(tmp_path / name) == 2


def test_any_number_of_shards_with_a_suffix_is_not_the_name_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="leaves the number of shards open"):
        tfr.write_tfrecord({"x": [1]}, tmp_path / "train@*.tfrecord")
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "train@*.tfrecord", shards=2)
    assert sorted(path.name for path in tmp_path.glob("train*")) == [
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
    ]
