"""Writes small files in the form of public datasets, with TensorFlow, as their publishers describe them.

Run ``pip install tensorflow-cpu`` and ``python -P make.py``. Values are made up. Names of features, kinds and numbers of
values are those of the descriptions named here, except where a comment states that of the real files: NSynth's audio, the
agents and the road of Waymo, the attributes of CelebA and the steps of the simulations are cut short.
"""

import io
import json
from pathlib import Path

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
rng = np.random.default_rng(0)


def feature(value):
    """The feature of bytes, text, numbers or lists of them; integers and bools are int64, floats float."""
    values = value if isinstance(value, list | tuple | np.ndarray) else [value]
    values = np.ravel(values).tolist() if isinstance(values, np.ndarray) else list(values)
    if values and isinstance(values[0], bytes | str):
        values = [each.encode() if isinstance(each, str) else each for each in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(**features):
    return example_of(features)


def example_of(features):
    made = {name: feature(value) for name, value in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString(deterministic=True)


def sequence(context, lists):
    made = {name: tf.train.FeatureList(feature=[feature(step) for step in steps]) for name, steps in lists.items()}
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={name: feature(value) for name, value in context.items()}),
        feature_lists=tf.train.FeatureLists(feature_list=made),
    ).SerializeToString(deterministic=True)


def write(name, *records, compression=""):
    with tf.io.TFRecordWriter(str(HERE / name), compression) as writer:
        for record in records:
            writer.write(record)


def quantized(size):
    return rng.integers(0, 256, size, dtype="uint8").tobytes()


def floats(*shape):
    return rng.standard_normal(shape).astype("float32")


def jpeg(height=8, width=8):
    return tf.io.encode_jpeg(rng.integers(0, 256, (height, width, 3), dtype="uint8")).numpy()


def png(height=8, width=8, channels=3):
    return tf.io.encode_png(rng.integers(0, 256, (height, width, channels), dtype="uint8")).numpy()


# YouTube-8M, https://research.google.com/youtube8m/download.html: 1024 and 128 values
write(
    "yt8m_video.tfrecord",
    *(
        example_of({"id": id_, "labels": labels, "mean_rgb": floats(1024), "mean_audio": floats(128)})
        for id_, labels in (("eXbF", [0, 12]), ("qp2a", [3]))
    ),
)
write(
    "yt8m_frame.tfrecord",
    *(
        sequence(
            {"id": id_, "labels": labels},
            {"rgb": [quantized(1024) for _ in range(seconds)], "audio": [quantized(128) for _ in range(seconds)]},
        )
        for id_, labels, seconds in (("eXbF", [0, 12], 3), ("qp2a", [3], 2))
    ),
)

# AudioSet embeddings, https://research.google.com/audioset/download.html: 128 values for each second
write(
    "audioset.tfrecord",
    *(
        sequence(
            {"video_id": id_, "start_time_seconds": start, "end_time_seconds": start + 10.0, "labels": labels},
            {"audio_embedding": [quantized(128) for _ in range(10)]},
        )
        for id_, start, labels in (("--4gqARaEJE", 0.0, [0, 137]), ("-0RWZT-miFs", 420.0, [5]))
    ),
)

# NSynth, https://magenta.tensorflow.org/datasets/nsynth: 64,000 samples of audio
write(
    "nsynth.tfrecord",
    *(
        example_of(
            {
                "note": note,
                "note_str": f"bass_synthetic_033-022-0{note}",
                "instrument": 417,
                "instrument_str": "bass_synthetic_033",
                "pitch": 22,
                "velocity": 50,
                "sample_rate": 16000,
                "audio": floats(64),
                "qualities": [0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
                "qualities_str": qualities,
                "instrument_family": 0,
                "instrument_family_str": "bass",
                "instrument_source": 2,
                "instrument_source_str": "synthetic",
            }
        )
        for note, qualities in ((25, ["dark"]), (75, ["dark", "multiphonic"]))
    ),
)

# Waymo Open Motion, tf.Example form, https://waymo.com/open/data/motion/tfexample: 128 agents, 30,000 points of the road
AGENTS, POINTS, LIGHTS = 2, 4, 16


def waymo(scenario):
    features = {"scenario/id": scenario}
    for name in ("id", "type", "is_sdc", "tracks_to_predict", "difficulty_level"):
        features[f"state/{name}"] = floats(AGENTS) if name in ("id", "type") else rng.integers(0, 2, AGENTS)
    for when, steps in (("past", 10), ("current", 1), ("future", 80)):
        for name in "x y z bbox_yaw length width height velocity_x velocity_y vel_yaw speed".split():
            features[f"state/{when}/{name}"] = floats(AGENTS, steps)
        for name in ("valid", "timestamp_micros"):
            features[f"state/{when}/{name}"] = rng.integers(0, 2, (AGENTS, steps))
    for name in ("xyz", "dir"):
        features[f"roadgraph_samples/{name}"] = floats(POINTS, 3)
    for name in ("id", "type", "valid"):
        features[f"roadgraph_samples/{name}"] = rng.integers(0, 20, (POINTS, 1))
    for when, steps in (("past", 10), ("current", 1)):
        for name in "xyz":
            features[f"traffic_light_state/{when}/{name}"] = floats(steps, LIGHTS)
        for name in ("state", "id", "valid"):
            features[f"traffic_light_state/{when}/{name}"] = rng.integers(0, 9, (steps, LIGHTS))
    return example_of(features)


write("waymo_motion.tfrecord", waymo("637f20cafde22ff8"), waymo("ee519cf571686d19"))

# Objectron, https://github.com/google-research-datasets/Objectron, objectron/schema/features.py: frames of a video
write(
    "objectron.tfrecord",
    *(
        example_of(
            {
                "image/encoded": jpeg(),
                "image/format": "jpeg",
                "image/filename": f"chair/batch-1/0/{frame}",
                "image/width": 8,
                "image/height": 8,
                "image/colorspace": "RGB",
                "image/channels": 3,
                "image/timestamp": 33_000 * frame,
                "image/id": frame,
                "point_2d": floats(9 * instances, 3),
                "point_3d": floats(9 * instances, 3),
                "point_num": [9] * instances,
                "instance_num": instances,
                "camera/projection": floats(4, 4),
                "camera/view": floats(4, 4),
                "camera/extrinsics": floats(4, 4),
                "camera/intrinsics": floats(3, 3),
                "object/name": ["chair"] * instances,
                "object/translation": floats(instances, 3),
                "object/orientation": floats(instances, 3, 3),
                "object/scale": floats(instances, 3),
                "object/visibility": floats(instances),
                "plane/center": floats(3),
                "plane/normal": floats(3),
            }
        )
        for frame, instances in ((0, 1), (1, 2))
    ),
)

# ImageNet, as imagenet_to_gcs.py writes it, https://github.com/tensorflow/tpu/tree/master/tools/datasets
write(
    "imagenet-train-00000-of-01024",
    *(
        example_of(
            {
                "image/height": 8,
                "image/width": width,
                "image/colorspace": "RGB",
                "image/channels": 3,
                "image/class/label": label,
                "image/class/synset": synset,
                "image/format": "JPEG",
                "image/filename": f"{synset}_{label}.JPEG",
                "image/encoded": jpeg(8, width),
            }
        )
        for label, synset, width in ((1, "n01440764", 8), (1000, "n15075141", 12))
    ),
)

# StyleGAN and ProGAN, dataset_tool.py of https://github.com/NVlabs/stylegan: [3, 2^k, 2^k] for each level
for level in (2, 3):
    pixels = rng.integers(0, 256, (3, 3, 2**level, 2**level), dtype="uint8")
    write(
        f"stylegan-r{level:02d}.tfrecords", *(example(shape=list(each.shape), data=each.tobytes()) for each in pixels)
    )

# MeshGraphNets, https://github.com/google-deepmind/deepmind-research/tree/master/meshgraphnets: 600 steps
STEPS = 4
FIELDS = {
    "cells": ("static", [1, -1, 3], "int32"),
    "mesh_pos": ("static", [1, -1, 2], "float32"),
    "node_type": ("static", [1, -1, 1], "int32"),
    "velocity": ("dynamic", [STEPS, -1, 2], "float32"),
    "pressure": ("dynamic", [STEPS, -1, 1], "float32"),
}


def trajectory(nodes):
    made = {}
    for name, (_, (steps, _, size), dtype) in FIELDS.items():
        count = 2 * nodes if name == "cells" else nodes
        values = rng.integers(0, nodes, (steps, count, size)) if dtype == "int32" else floats(steps, count, size)
        made[name] = values.astype(dtype).tobytes()
    return example_of(made)


(HERE / "cylinder_flow").mkdir(exist_ok=True)
write("cylinder_flow/train.tfrecord", trajectory(5), trajectory(7))
described = {name: {"type": type_, "shape": shape, "dtype": dtype} for name, (type_, shape, dtype) in FIELDS.items()}
meta = {"simulator": "comsol", "dt": 0.01, "collision_radius": None, "features": described}
meta |= {"field_names": list(FIELDS), "trajectory_length": STEPS}
(HERE / "cylinder_flow/meta.json").write_text(json.dumps(meta) + "\n")

# Learning to simulate, https://github.com/google-deepmind/deepmind-research/tree/master/learning_to_simulate
(HERE / "WaterDrop").mkdir(exist_ok=True)
write(
    "WaterDrop/train.tfrecord",
    *(
        sequence(
            {"key": key, "particle_type": np.full(particles, 5, "int64").tobytes()},
            {"position": [floats(particles, 2).tobytes() for _ in range(STEPS + 1)]},
        )
        for key, particles in ((0, 3), (1, 4))
    ),
)
metadata = {"bounds": [[0.1, 0.9], [0.1, 0.9]], "sequence_length": STEPS, "default_connectivity_radius": 0.015}
metadata |= {"dim": 2, "dt": 0.0025, "vel_mean": [0, 0], "vel_std": [1, 1], "acc_mean": [0, 0], "acc_std": [1, 1]}
(HERE / "WaterDrop/metadata.json").write_text(json.dumps(metadata) + "\n")

# Criteo, as https://github.com/GoogleCloudPlatform/cloudml-samples (criteo_tft) writes the examples before transforming
write(
    "criteo.tfrecord.gz",
    *(
        example_of(
            {"clicked": clicked}
            | {f"int-feature-{n}": int(rng.integers(0, 99)) for n in range(1, 14) if n % 4 or clicked}
            | {f"categorical-feature-{n}": f"{rng.integers(0, 2**32):08x}" for n in range(14, 40) if n % 5 or clicked}
        )
        for clicked in (0, 1, 0)
    ),
    compression="GZIP",
)

# CelebA, the features of https://www.tensorflow.org/datasets/catalog/celeb_a: 40 attributes, 10 coordinates
ATTRIBUTES = ("5_o_Clock_Shadow", "Bald", "Male", "Smiling", "Young")
LANDMARKS = [f"{place}_{axis}" for place in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth") for axis in "xy"]
write(
    "celeb_a-train.tfrecord-00000-of-00001",
    *(
        example_of(
            {"image": jpeg()}
            | {f"attributes/{name}": int(rng.integers(0, 2)) for name in ATTRIBUTES}
            | {f"landmarks/{name}": int(rng.integers(0, 178)) for name in LANDMARKS}
        )
        for _ in range(2)
    ),
)


# COCO, create_coco_tf_record.py of https://github.com/tensorflow/models/tree/master/research/object_detection
def coco(id_, boxes):
    columns = list(zip(*boxes, strict=True)) if boxes else [()] * 4
    features = {
        "image/height": 16,
        "image/width": 32,
        "image/filename": f"{id_:012d}.jpg",
        "image/source_id": str(id_),
        "image/key/sha256": "0" * 64,
        "image/encoded": jpeg(16, 32),
        "image/format": "jpeg",
    }
    for side, values in zip(("xmin", "ymin", "xmax", "ymax"), columns, strict=True):
        features[f"image/object/bbox/{side}"] = np.array(values, "float32") if boxes else []
    if boxes:
        mask = io.BytesIO(tf.io.encode_png(np.tri(16, 32, dtype="uint8")[..., None]).numpy()).getvalue()
        features["image/object/class/text"] = ["person", "dog"][: len(boxes)]
        features["image/object/class/label"] = [1, 18][: len(boxes)]
        features["image/object/is_crowd"] = [0] * len(boxes)
        features["image/object/area"] = [150.5, 96.25][: len(boxes)]
        features["image/object/mask"] = [mask] * len(boxes)
    else:
        features = {name: value for name, value in features.items() if "bbox" not in name}
    return example_of(features)


write(
    "coco_train.record-00000-of-00100",
    coco(139, [(0.25, 0.25, 0.75, 0.75), (0.0, 0.0, 0.5, 1.0)]),
    coco(285, []),
    coco(632, [(0.125, 0.5, 1.0, 1.0)]),
)

# Kaggle, "Petals to the Metal" (flowers) and "SIIM-ISIC Melanoma" as TFRecords for TPUs
write("flowers-00-192x192-2.tfrec", *(example(image=jpeg(), **{"class": n, "id": f"{n:09x}"}) for n in (57, 103)))
write("flowers-test-00-192x192-1.tfrec", example(image=jpeg(), id="252d840db"))
write(
    "melanoma-00-2.tfrec",
    *(
        example_of(
            {"image": jpeg(), "image_name": f"ISIC_{n}", "patient_id": n, "sex": n % 2, "age_approx": 45}
            | {"anatom_site_general_challenge": 3, "diagnosis": 1, "target": 0, "width": 6000, "height": 4000}
        )
        for n in (1, 2)
    ),
)

# img2dataset, output_format="tfrecord", https://github.com/rom1504/img2dataset: the columns of the table besides
write(
    "img2dataset-00000.tfrecord",
    *(
        example_of(
            {"key": key, "jpg": jpeg(), "txt": caption, "caption": caption, "url": f"https://example.org/{key}.jpg"}
            | {"status": "success", "error_message": "", "width": 8, "height": 8}
            | {"original_width": 640, "original_height": 480, "exif": "{}", "sha256": "0" * 64}
        )
        for key, caption in (("000000000", "a red bus"), ("000000001", "ein Café"))
    ),
)

# C4, as https://www.tensorflow.org/datasets/catalog/c4, and a task of T5 as seqio caches it
write(
    "c4-train.tfrecord-00000-of-01024",
    *(
        example_of(
            {"text": text, "url": "https://example.org", "timestamp": "2019-04-25T12:57:54Z"}
            | {"content-type": "text/html", "content-length": str(len(text))}
        )
        for text in ("Beginners BBQ Class\nTaking Place in Missoula!", "Discussion in 'Mac OS X'")
    ),
)
write(
    "t5-train.tfrecord-00000-of-00001",
    *(
        example_of(
            {
                "inputs": inputs,
                "targets": targets,
                "inputs_pretokenized": "cola sentence: x",
                "targets_pretokenized": "acceptable",
            }
        )
        for inputs, targets in (([3, 9, 7142, 1], [9961, 1]), ([8, 1], [9961, 1]))
    ),
)
