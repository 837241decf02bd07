"""Values of records as HTML: the renderers of `tfr report` and `tfr browse`, which import them from here."""

from tfrecord_io.apps.views.charts import Label, histogram_chart, share_bar, value_bars
from tfrecord_io.apps.views.drawings import figure
from tfrecord_io.apps.views.elements import element, number, percent, style, table, text, value_text
from tfrecord_io.apps.views.feature_card import feature_card
from tfrecord_io.apps.views.feature_statistics import (
    FeatureAccumulator,
    FeatureStatistics,
    ValueCounts,
    convert_to_one_unit,
    nanoseconds_of,
)
from tfrecord_io.apps.views.media import Gallery, MediaSample, Row, box_forms_of, galleries
from tfrecord_io.apps.views.number_statistics import (
    QUANTILES,
    Histogram,
    NumberAccumulator,
    NumberStatistics,
    edges_of,
    histogram,
)
from tfrecord_io.apps.views.value_cells import (
    NULL,
    LargeValue,
    bytes_cell,
    cell_forms,
    companions,
    may_be_image,
    value_cell,
    value_mime,
    value_of,
)

__all__ = [
    "NULL",
    "QUANTILES",
    "FeatureAccumulator",
    "FeatureStatistics",
    "Gallery",
    "Histogram",
    "Label",
    "LargeValue",
    "MediaSample",
    "NumberAccumulator",
    "NumberStatistics",
    "Row",
    "ValueCounts",
    "box_forms_of",
    "bytes_cell",
    "cell_forms",
    "companions",
    "convert_to_one_unit",
    "edges_of",
    "element",
    "feature_card",
    "figure",
    "galleries",
    "histogram",
    "histogram_chart",
    "may_be_image",
    "nanoseconds_of",
    "number",
    "percent",
    "share_bar",
    "style",
    "table",
    "text",
    "value_bars",
    "value_cell",
    "value_mime",
    "value_of",
    "value_text",
]
