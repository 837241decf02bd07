"""The names of the core that the pages for browsing are made of; no other module of the plugin imports more of it.

Tests: tests/plugins/browse/test_browse_server.py.
"""

from tfrecord_io.apps.adapters.duckdb import query_rows as query_rows
from tfrecord_io.apps.views.charts import histogram_chart as histogram_chart
from tfrecord_io.apps.views.charts import value_bars as value_bars
from tfrecord_io.apps.views.elements import element as element
from tfrecord_io.apps.views.elements import number as number
from tfrecord_io.apps.views.elements import text as text
from tfrecord_io.apps.views.elements import value_text as value_text
from tfrecord_io.apps.views.media import Row as Row
from tfrecord_io.apps.views.media import box_forms_of as box_forms_of
from tfrecord_io.apps.views.media import media_of as media_of
from tfrecord_io.apps.views.number_statistics import NumberAccumulator as NumberAccumulator
from tfrecord_io.apps.views.value_cells import NULL as NULL
from tfrecord_io.apps.views.value_cells import bytes_cell as bytes_cell
from tfrecord_io.apps.views.value_cells import companions as companions
from tfrecord_io.apps.views.value_cells import may_be_image as may_be_image
from tfrecord_io.apps.views.value_cells import text_if_any as text_if_any
from tfrecord_io.apps.views.value_cells import value_cell as value_cell
from tfrecord_io.apps.views.value_cells import value_mime as value_mime
from tfrecord_io.base import Registry as Registry
from tfrecord_io.base import byte_size as byte_size
from tfrecord_io.base import short as short
from tfrecord_io.bytes import Array as Array
from tfrecord_io.bytes import FrameHeader as FrameHeader
from tfrecord_io.bytes import crc32c as crc32c
from tfrecord_io.columns import ArrayBuffers as ArrayBuffers
from tfrecord_io.columns import Column as Column
from tfrecord_io.columns import EmbeddedSchema as EmbeddedSchema
from tfrecord_io.errors import TFRecordError as TFRecordError
from tfrecord_io.kit import ReadOptions as ReadOptions
from tfrecord_io.kit import check_keywords as check_keywords
from tfrecord_io.kit import counted as counted
from tfrecord_io.kit import needs as needs
from tfrecord_io.kit import printable as printable
from tfrecord_io.plugins.browse.wire_fields import fields_of as fields_of
from tfrecord_io.read import CallSource as CallSource
from tfrecord_io.read import Damage as Damage
from tfrecord_io.read import RecordMap as RecordMap
from tfrecord_io.read import Recovery as Recovery
from tfrecord_io.read import Scan as Scan
from tfrecord_io.read import ScanHolder as ScanHolder
from tfrecord_io.read import ScanRows as ScanRows
from tfrecord_io.read import options_from_call as options_from_call
from tfrecord_io.store import ShardName as ShardName
from tfrecord_io.typing import FilesLike as FilesLike
from tfrecord_io.typing import RandomAccess as RandomAccess
from tfrecord_io.typing import Reader as Reader
from tfrecord_io.typing import StorageLike as StorageLike
