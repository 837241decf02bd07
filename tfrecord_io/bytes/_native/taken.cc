#include "taken.h"

#include <utility>

namespace tfr {
namespace {

TakenColumn take_column(Column& column);

SharedBuffer share(Buffer& buffer) { return std::make_shared<const Buffer>(std::move(buffer)); }

// The column alone, without those of other kinds.
TakenColumn take_one(Column& column) {
  TakenColumn taken{};
  taken.kind = column.kind;
  taken.layout = column.layout;
  taken.text = !column.steps && column.kind == Kind::kBytes && column.text == Text::kTrack && column.binary_row < 0;
  taken.rows = column.rows;
  taken.null_count = column.null_count;
  taken.value_count = column.value_count;
  taken.data_bytes = column.data_bytes;
  taken.first_row = column.first_row;
  taken.list_row = column.list_row;
  taken.binary_row = column.binary_row;
  if (column.null_count > 0 && column.layout != Layout::kNull) taken.validity = share(column.validity);
  if (column.layout == Layout::kList) taken.offsets = share(column.offsets);
  bool filled = column.kind != Kind::kNone && !column.steps;
  if (filled) taken.values = share(column.values);
  if (filled && column.kind == Kind::kBytes) taken.value_offsets = share(column.value_offsets);
  if (column.steps) taken.steps = std::make_shared<const TakenColumn>(take_column(*column.steps));
  return taken;
}

TakenColumn take_column(Column& column) {
  TakenColumn taken = take_one(column);
  for (Column* other = column.other.get(); other != nullptr; other = other->other.get())
    if (other->first_row >= 0) taken.others.push_back(take_one(*other));
  return taken;
}

}  // namespace

TakenColumns take_columns(Decoder& decoder) {
  decoder.finish();
  TakenColumns taken;
  taken.columns.reserve(decoder.slots.size());
  for (Decoder::Slot& slot : decoder.slots) taken.columns.push_back(take_column(slot.column));
  decoder.reset();
  return taken;
}

}  // namespace tfr
