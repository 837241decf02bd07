from tfrecord_io.public_names import refuse_calls

refuse_calls(__name__)
