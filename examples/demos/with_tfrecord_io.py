import tfrecord_io as tfr

arrays = tfr.read_arrays(
    "meadow.tfrec",
    schema={
        "image": tfr.image((120, 176, 3)),
        "label": "int64",
    },
)
