import numpy as np
import tensorflow as tf

features = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def parse(data):
    row = tf.io.parse_single_example(data, features)
    image = tf.io.decode_jpeg(
        row["image"],
        channels=3,
        dct_method="INTEGER_ACCURATE",
    )
    image = tf.ensure_shape(image, [120, 176, 3])
    return {"image": image, "label": row["label"]}


files = tf.data.TFRecordDataset("meadow.tfrec")
rows = files.map(parse, tf.data.AUTOTUNE).batch(32)
batches = list(rows.as_numpy_iterator())
arrays = {
    name: np.concatenate([b[name] for b in batches])
    for name in features
}
