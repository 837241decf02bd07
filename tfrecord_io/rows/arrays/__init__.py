from tfrecord_io.base.public_names import refuse_calls

refuse_calls(__name__)
