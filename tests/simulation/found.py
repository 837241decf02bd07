"""Programs in which something was found, by what is mended."""

FOUND = {
    "a delete that finds no such rows in a version that a loss of power takes": (
        "disk grown indexed:1 ; overwrite:2 append:3 delete:2 | overwrite:4 | new:5 evolve:6 evolve:7"
        " @ 19>1 28>2 31>0 49!EIO+ 81!EIO 120>2 140p"
    ),
    "a read beside another dataset whose writer fails after its manifest was listed": (
        "plain grown+parts append:1 append:2 ; follow split | split @ 26>1 51!slow+ 60>0 85!timeout"
    ),
    "an append beside a new dataset whose writer fails after its manifest was listed": (
        "gcs grown ; txn_tasks:1 | overwrite:2 @ 0>1 4>0 5>1 6!slow+ 7>0 8>1"
    ),
    "a copy of a named dataset to which shards are added meanwhile": (
        "plain grown+parts1 append:1 b.append:2 append:200 append:201 ; b.copy | note:3 b.append:203 @ 10>1"
    ),
    "an index of what is added beside another dataset": (
        "disk grown+parts1 append:201 ; split | part.index | b.append:203 indexed:2 @ "
    ),
    "a directory that was created without an answer, and whose name no other writer makes durable": (
        "disk grown ; append:1 | append:2 append:4 @ 5!EIO+ 46p"
    ),
    "a directory without a shard that another writer removes before the manifest is written": (
        "disk folders ; note:1 | note:2 @ 12>1 12!EIO"
    ),
    "a directory without a shard that is removed while its writer waits for the lock": (
        "disk folders+parts ; note:1 | txn:2 @ 5>1 15>0 17>1 15!EIO+ 18>0 23>1"
    ),
    "a dataset that is begun without rows, to which another writer appends": "s3 folders ; note:1 | append:2 @ 3>1",
    "a staged shard whose partition another writer overwrites before it has its name": (
        "gcs folders ; folders:1 overwrite:2 folders:3 | copy_in:4 folders:5 @ 12>1 30>0 42>1"
    ),
    "a listing that the library for Azure keeps of a directory whose name ends with a slash": (
        "azure grown ; overwrite:1 | split salvage | overwrite:2 @ 22>2"
    ),
    "a copy that lists the shards of a writer without its manifest, which begins meanwhile": (
        "disk fixed+parts1 ; copy_in:5 | write_indexed:8 @ 3>1 19>0 38>1 53>0 74>1 75>0 76>1 80>0 81>1 103>0 106>1"
    ),
    "a new directory that two writers which fail remove while another one begins": (
        "disk grown ; convert dataset | index overwrite:1 | copy_in:2 append:4"
        " @ 7>2 33>1 42>2 43!EIO 44>1 47>2 53>1 57>2 64>1 67>2 68!EIO+"
    ),
    "an index that is removed before its dataset is replaced, while it is copied": (
        "disk fixed write_indexed:13 ; index index copy_in:25 | stream | split copy @ 29>2 105>0 151>2 197>0 229>2"
        " 257>0 300>2 326>0 351>2 368>0 382>2 384>0 387>2 389>0 391>2 398>0 401>2 404>0 405>2 406>0 407>2 409>0 411>2"
        " 413>0 414>2 415>0 421>2 423>0 424>2"
    ),
    "a copy that is published by a request that fails, and whose shards are merged before the error is reported": (
        "azure grown ; copy_in:1 | indexed:2 compact @ 13!slow+ 15>1"
    ),
    "a copy whose answer was lost, and whose shards are merged before the next request": (
        "kms fixed ; copy_in:13 | compact clean @ 11!timeout+"
    ),
    "an index that its writer has yet to remove, of a shard that was replaced": (
        "azure fixed write:3 ; convert verify | write_indexed:4 index | write_indexed:16"
        " @ 22>1 27>2 32>1 67>2 82>1 87>2 88>0"
    ),
    "a delete whose files are overwritten before it makes their indexes again": (
        "azure grown append:2 ; index delete:3 | overwrite:4 @ 5>1 10>0 26>1"
    ),
    "a shard of Azure that copy reads as a file, which the simulated store did not allow": (
        "azure fixed+retries write:1 ; delete:2 write_indexed:13 | create:25 | copy"
        " @ 3>1 10>2 12>0 14>2 15>1 16>2 18>0 25>2 34>0 36>2 37>0 54>2 55>0"
    ),
    "a new dataset that could not be made durable, and whose shards are merged before the error is reported": (
        "disk fixed ; create:2 | compact @ 48!EIO 52>1"
    ),
    "a new dataset whose answer was lost, and which is replaced before the next request": (
        "s3 fixed ; create:13 | arrays | write_indexed:25 @ 6!timeout+ 16>2"
    ),
    "an error of an overwrite whose shards are merged before it is reported": (
        "disk grown append:1 ; tasks_over:2 | count | compact @ 49>1 71!EIO+ 76>2"
    ),
    "a shard that was stored although its answer was lost, and which the store then does not describe": (
        "s3 grown+retries ; table | new:1 @ 13!timeout+ 16!slow"
    ),
    "a copy that is read before its writer could make it durable": (
        "disk grown append:1 ; copy_in:3 | convert @ 62!EIO 85p"
    ),
    "a copy whose source is replaced, and cannot be looked up again": (
        "disk fixed write:3 ; compact | copy | write:6 @ 43>2 108!EIO"
    ),
    "a folder that a writer which fails removes before a task moves its shard there": (
        "disk folders ; tasks:1 | folders:2 append:3 "
        "@ 5>1 7!EIO 13>0 16>1 28>0 40>1 48>0 52>1 53>0 74!EIO+ 76>0 82>1 87>0 89>1"
    ),
    "an append whose answer was lost adds a shard that an overwrite has removed": (
        "s3 grown ; append:1 | tasks_over:2 @ 4!timeout+"
    ),
    "a removal of shards whose answer was lost, before an overwrite and clean": (
        "s3 fixed write:5 ; delete:6 | convert | write:6 clean clean @ 10!timeout+ 47!timeout+"
    ),
    "a removal of shards that an overwrite of the same names has replaced": (
        "azure fixed write:13 write:14 ; write:26 delete:15 | write_indexed:38 @ 2!slow 24>1 38x"
    ),
    "a copy whose files another one has stored in Google Cloud Storage": "gcs grown ; copy_in:2 | copy_in:3 @ 7>1",
    "a copy to a dataset whose manifest its writer could not make durable": (
        "disk folders ; append:1 | number | copy_in:2 @ 37!EIO+ 49>2 145>1 184p"
    ),
    "a folder that was made before the manifest that its writer could not make durable": (
        "disk folders ; note:1 | append:3 @ 3>1 13>0 31!EIO 66p"
    ),
    "a copy that overtakes one which states what a writer has left": (
        "kms fixed+retries ; copy_in:14 | create:15 | delete:1 copy_in:16 @ 5>2 6>1 12>0 21>2 61>0 76>1"
    ),
    "a copy that is made again after an overwrite": (
        "s3 fixed+retries write:3 ; copy_in:4 | write_indexed:11 @ 11>1 26>0"
    ),
    "a copy beside an overwrite that removes an index": "disk fixed write_indexed:3 ; write:6 | copy @ 41>2 85>0",
    "an index that is written again while rows are deleted": "gcs grown append:1 ; index delete:2 | index @ 10>1",
    "an index that is written again while it is verified": "gcs grown append:1 index ; verify | index @ 3>1",
    "a copied folder whose names were not synced": "disk folders ; copy_in:2 table @ 130p",
    "two first appends": "s3 grown ; append:1 | append:2 @ 3>1",
    "an append next to the first one of folders": "s3 folders ; append:1 | folders:3 @ 1>1 3>0",
    "two new datasets": "s3 fixed ; write_indexed:1 | write:2 @ 2>1 15>0",
    "a new dataset beside one published since": "s3 fixed ; write:2 | dataset | write_indexed:3 @ 6>2 25>1",
    "a staged shard that is gone": "s3 fixed write:2 ; index | write_indexed:4 | write:6 @ 28>2 43>0",
    "a copy that was replaced": "s3 grown ; append:1 overwrite:2 | overwrite:3 @ 10>1 23>0",
    "an index older than its file": "s3 fixed write_indexed:1 ; dataset | verify | write:2 @ 5>2 12>1 17>2 19>1",
    "a shard that is replaced while it is indexed": "s3 grown ; append:1 indexed:2 | overwrite:3 @ 10>1",
    "shards that an overtaken writer leaves": (
        "s3 fixed write:2 ; write:3 | write_indexed:4 | write_indexed:5 @ 2>2 6>1 8>2 12>0 21>2 23>0 31>2 34>1 35>2"
    ),
    "a manifest without the shards that it names": "s3 fixed ; clean | write:1 @ 10!slow 14!timeout",
    "an index of a shard that was replaced": "disk fixed write:2 ; index | write:5 | verify @ 56>1 117>0 194>1",
    "a copy of a dataset whose index is gone": "disk grown indexed:1 ; overwrite:3 | copy @ 23>1 64>0",
    "a copy by the store of a shard that is gone": "gcs grown indexed:1 ; overwrite:3 | copy @ 1>1 6>0",
    "an index that is gone": "disk fixed write:2 ; index | write:5 | verify @ 115>1 126>2 194>1",
    "an overwrite beside an append": (
        "s3 grown+retries ; indexed:2 overwrite:3 | evolve:4 | index evolve:6 @ 1>2 18>0 25>2"
    ),
    "folders that are listed before the manifest": "disk folders ; append:1 | table @ 22>1 30>0",
    "an empty shard that is replaced": (
        "s3 fixed write:2 ; write:3 | count verify | write_indexed:5 @ 6>1 10!timeout 17!timeout 37>2"
    ),
    "a failed sync of a shard": "disk grown append:1 ; evolve:5 append:6 @ 54!EIO",
    "a failed sync of the first manifest": "disk grown ; evolve:2 | arrays @ 11>1 28!EIO",
    "a directory that is removed before a task": "disk grown ; tasks_over:1 | tasks_over:2 @ 1>2 9>0 13>2 15!EIO",
    "a staged shard that gets its name while it is converted": (
        "disk grown append:1 ; number filter convert | tasks_over:2 | tasks:3 "
        "@ 6>1 28>0 35>2 61>1 71>0 107>1 124>0 138>1 154>0 215>1"
    ),
    "a state of files that were replaced by others of their sizes": (
        "gcs fixed write_indexed:4 ; resumed | write:10 @ 3>1 6>0 9>1"
    ),
    "a shard that is written again while an overtaken writer removes it": (
        "s3 fixed+retries ; write_indexed:3 | write_indexed:6 index write:7 | table "
        "@ 3>1 8>2 10>0 40>0 44>1 46>2 67>1 79>0 81>1 109x"
    ),
    "a manifest that is put again after it was replaced": (
        "s3 fixed ; write_indexed:3 write_indexed:6 | write_indexed:10 "
        "@ 0>1 1!timeout 3>1 4>0 9>1 10>0 12>1 17>0 20>1 21!timeout+"
    ),
    "a compaction that removes what is written again": "s3 fixed write:2 ; compact | write:8 @ 20>1",
    "rows that are deleted beside an overwrite": "s3 fixed write:2 ; delete:3 | write_indexed:8 @ 18>1",
    "a copy over the shards of another writer": "s3 fixed ; copy_in:5 | write:8 @ 7>1",
    "a copy over the shards of another copy": "s3 fixed ; copy_in:5 | copy_in:8 @ 13>1",
    "a shard that is stored while the writer that has overtaken its own one settles": (
        "s3 fixed ; index | copy_in:5 | copy_in:6 @ 13>2 28>1 29>2 37>1 42>1"
    ),
    "a compaction where an overwrite died before it gave names": "disk fixed write:2 ; write:5 | compact @ 53x",
    "rows that are deleted where an overwrite died that had given a name": (
        "disk fixed write_indexed:2 ; write:5 | delete:6 verify @ 63x"
    ),
    "a copy of which an error after its publication did not tell": "disk fixed ; copy_in:12 @ 59!EIO+",
    "a copy to which another writer appends before it has its names": "s3 grown append:1 ; copy_in:5 | append:2 @ 10>1",
    "parts of an object that were put together without an answer, in a bucket where no ETag is a hash": (
        "kms fixed+retries write_indexed:14 ; filter | arrays convert copy | clean @ 89!timeout+"
    ),
    "a conversion that goes on where one ended after it had given a name": (
        "plain grown append:1 append:2 ; delete:3 | evolve:3 | convert convert @ 9>2 35>0 53>2 62!slow"
    ),
    "a shard in a folder whose copy was made without an answer": (
        "gcs folders ; clean compact | copy_in:1 clean overwrite:2 | tasks:3 copy_in:4 @ 3>1 55!timeout+"
    ),
    "a descriptor that is a copy of one of the simulated disk": (
        "disk grown indexed:1 ; convert | append:2 | verify "
        "@ 6>1 15>2 19>1 22>2 27>0 29>2 31>0 34>2 35>0 37>1 46>0 47>1 49>0 52>1 56>2 71>0 75>1 78>2 85>0 86>1"
    ),
    "two copies of numbered shards in folders": "gcs folders ; copy_in:3 | copy_in:6 @ 0>1 8>0",
    "two copies of numbered shards in folders, in S3": "s3 folders ; copy_in:3 | copy_in:6 @ 0>1 8>0",
    "a copy whose file another writer has stored twice": (
        "azure fixed+retries ; write_indexed:5 | clean copy_in:8 @ 6>1 23>0 34>0"
    ),
    "an index that could not be written after rows were removed": (
        "s3 grown indexed:1 indexed:2 ; dataset | delete:3 @ 19!slow"
    ),
    "an index that could not be written after all rows went": "kms fixed write_indexed:12 ; delete:13 @ 22!slow",
    "an index of a shard that is copied to its name, where a checksum of the same content differs": (
        "kms fixed write_indexed:13 ; write:14 | index | verify @ 17>1"
    ),
    "a directory that is removed before a folder is made in it": (
        "disk folders ; append:2 | append:3 @ 5>1 11>0 17>1 23>0 28!EIO 29>1 32>0 34>1 41>0"
    ),
    "a copy that is made again while an overwrite removes its shards": (
        "s3 folders+retries append:1 ; copy_in:4 | overwrite:7 @ 10>1 15>0"
    ),
    "a copy that is made again while an overwrite removes its shards, where no ETag is a hash": (
        "kms folders+retries append:1 append:2 ; tasks:3 copy_in:4 | delete:3 copy_in:6 overwrite:7 "
        "@ 7>1 18>0 27>1 40>0 48>0 58>1 67>0 74>1 85>0"
    ),
    "a copy that is made again while another one removes its shards, which it had not published": (
        "s3 folders ; copy_in:4 | copy_in:6 | copy_in:4 @ 9x 20>2"
    ),
    "a copy that is made again while another one of the same files begins, and dies": (
        "s3 folders ; copy_in:4 | copy_in:4 | copy_in:4 @ 9x 20>2 35x"
    ),
    "a directory that is removed after a look at it": "disk fixed ; copy_in:4 | write:7 @ 26>1 41>0 42>1 44!EIO",
    "a shard that is stored twice, as an answer was lost, while a reader lists it": (
        "kms folders ; append:1 | convert @ 3!timeout+ 9>0"
    ),
    "a shard of a task that is copied twice, as an answer was lost, while a reader lists it": (
        "gcs grown ; tasks:1 | table @ 9!timeout+ 12>0"
    ),
    "a copy to where a writer that fails removes what it began": (
        "gcs fixed ; copy_in:14 | write:17 @ 3>1 9!slow+ 13>0 15>1"
    ),
    "a request that a store refused, and made": "kms folders ; append:1 | tasks:2 @ 1>1 13>0 22!slow+ 23!slow",
    "a copy that is made again beside an overwrite that removes its staged files": (
        "gcs fixed+retries write:7 ; copy_in:19 | create:20 write_indexed:23 "
        "@ 8>1 21>0 28>1 33>0 34>1 37>0 57>1 65!timeout+"
    ),
    "an upload that was completed, whose answer and the look for it were lost": (
        "kms fixed write:13 ; write_indexed:25 | merge convert | count table salvage @ 45!timeout+ 84>1 86!slow"
    ),
    "a shard of a writer before the one that was overtaken": (
        "azure fixed write:4 ; write_indexed:7 | compact clean write:19 | write:20 "
        "@ 3>1 14>2 19>0 25>2 37>0 54>2 55>1 59>0 62>1 82>2"
    ),
    "rows that were published, and joined, by a writer whose last answer was lost": (
        "gcs fixed ; write:5 compact | write_indexed:8 @ 10>1 27!timeout+"
    ),
    "a shard of a copy that is overtaken, in a dataset that is verified": (
        "s3 fixed ; copy_in:3 | copy_in:16 | verify @ 8>1"
    ),
    "a shard of a writer that fails, while it removes it": (
        "s3 fixed+retries ; compact | salvage | create:5 @ 9>2 15!slow 22>1"
    ),
    "a shard of a copy that another writer has given its name": (
        "kms folders append:1 ; clean clean | delete:2 copy_in:2 | folders:3 compact @ 18>2 20>1 25>2 43>2 51>2 57>1"
    ),
    "a transaction that is repeated while its rows are overwritten": (
        "disk folders ; overwrite:1 | txn:3 txn:3 @ 3>2 53>0 89>0"
    ),
    "a conversion of a dataset that is not listed": "kms folders+parts1 append:1 append:2 ; follow | convert @ ",
    "a connection that is reset while a folder is listed": (
        "s3 folders+parts1 append:1 append:2 ; arrays key names | names | resumed shards key @ 36!timeout 112!timeout"
    ),
    "the only shard of a copy that another writer has given its name": (
        "gcs grown ; indexed:1 | overwrite:2 txn:3 | copy_in:4 @ 2>1 7>0 8>2 16>1 22>1 28>0 32>0 38>1 39>0"
    ),
    "shards of a writer that has begun, and waits for the store, in a directory that is overwritten": (
        "kms grown ; tasks_over:1 | txn_tasks:2 @ 3>1 9>0 10>1 12>0 13>1 14>0 15>1 16>0 18>1 21!slow 22>0"
    ),
    "a process that ends while a library waits for several answers": (
        "s3 fixed write:5 ; count resumed table | index compact | salvage shards count"
        " @ 14!slow 24>2 25!timeout 26>1 73x"
    ),
    "a directory that is removed": "disk grown ; append:1 | overwrite:3 @ 1>1 2>0 3>1 11>0 13>1 15!EIO+",
}
