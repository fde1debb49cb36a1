// Placement: which values stand in memory and how they lie there.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "schedules/analysis.h"
#include "schedules/padding.h"
#include "schedules/plan.h"
#include "schedules/view.h"

namespace krait {

class Placement {
 public:
  /// Makes an object for every input and output of the graph.
  explicit Placement(const Analysis& analysis);

  /// Sees to it that the value stands in memory: what computes it becomes a stored value, unless
  /// the value is already a view of memory.
  void request(Value value);
  /// The same, with a place of its own even where it is a view of memory: for what cannot be read
  /// through that view.
  void keep(Value value);
  /// Keeps the value only where `rest` is 0, at `run` in place of the axis: numbers that every
  /// kernel knows that writes or reads it. It must have a place of its own, with a dim for the
  /// axis.
  void thin(Value value, const std::string& axis, const Axis& run, const std::string& rest);
  /// How the value lies in memory, where it does; no view at all for what is zero everywhere. Holds
  /// until something is placed.
  const std::vector<View>* memory_view(Value value) const;
  /// How the result of a view node lies in memory by way of its operands, whether or not it is
  /// written to a place of its own.
  const std::vector<View>* source_view(Value value) const;
  /// Values behind a chain of views: what would have to be in memory.
  std::vector<Value> roots(Value value) const;
  /// Of these roots, those that kernels write into the memory that the views show.
  std::vector<Value> written(const std::vector<Value>& roots, const std::vector<View>& views) const;
  bool is_stored(Value value) const { return stored_.count(value) != 0; }
  /// Values that kernels must write, with all the places where each goes.
  const std::map<Value, std::vector<View>>& stored() const { return stored_; }
  const std::vector<MemoryObject>& objects() const { return objects_; }
  std::vector<MemoryObject>& objects() { return objects_; }
  int add_temporary(const std::string& name, DType dtype, std::vector<Axis> dims);

 private:
  /// Writes the value into the view: through views that can be undone, down to what is computed.
  void place(Value value, const View& view);
  /// From now on the value is read there.
  void live(Value value, const View& view);
  std::optional<std::vector<View>> shown(Value value) const;
  /// Axes of a temporary: outer ones first, the two parts of a split dynamic axis as that axis
  /// where nothing is asked of what stands past its end.
  std::vector<Axis> storage_axes(Value value) const;
  /// Whether the view shows the value as it is past the end of a split axis too.
  bool shows_padding(Value value, const View& view) const;

  const Analysis& analysis_;
  const Graph& graph_;
  Padding padding_;
  std::vector<MemoryObject> objects_;
  std::map<Value, std::vector<View>> stored_;
  std::map<Value, std::vector<View>> lives_;  // how to read: inputs, requested and stored values
  mutable std::map<Value, std::optional<std::vector<View>>> shown_;  // by way of operands, as asked
};

}  // namespace krait
