// The rewrite behind `chunk`: one object a graph.
//
// A value that varies along the scanned axis t exists in up to two forms: whole (over t) and
// chunked (over c and q, t = c * Q + q). Positions past the end are 0 where a whole value is split;
// a Map of such zeros need not be zero, so what enters a sum along q is masked. What stands at
// those positions must be finite, as zero times it is taken; it is cut off when c and q are merged.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "dsl/graph.h"
#include "schedules/chunk_products.h"

namespace krait::chunking {

class Rewrite {
 public:
  /// `graph` must outlive the object; `time` is the axis of its scans.
  Rewrite(const Graph& graph, const std::string& time, std::int64_t chunk);
  /// Throws NotChunkable.
  Graph run();

 private:
  /// Where a value that varies along t is at home. The whole ones depend on no scan; those that
  /// are neither read from memory nor library products are made in either form, as asked for.
  enum class Home : std::uint8_t { whole, chunked };

  /// A scan along t as products over k (the second position of a chunk) and a scan over chunks.
  struct ChunkedScan {
    std::string label;
    AxisNames axes;    // of the state, without t
    AxisNames decay;   // of the log decay, without t
    Products input;    // over c and q, zero past the end
    Value from_start;  // what is left at q of the state that entered the chunk
    Value between;     // what is left at q of the input at k; 0 where k is later than q
    Value entering;    // the state that enters each chunk; invalid where it is zero
  };

  // chunk_time.cpp: the two forms.
  bool varies(Value old) const;
  bool acts_along_time(const Node& node) const;
  bool is_matrix_product(const Node& node) const;
  /// Whether the chunked form is read from the whole one, rather than made of chunked operands.
  bool is_stored(const Node& node) const;
  Home home_of(const Node& node) const;
  Value whole(Value old);
  Value chunked(Value old);
  /// A whole value's few positions along t: made of the operands' positions where the value itself
  /// is chunked, so that it need not be kept for all t.
  Value positions(Value old, const Slice& slice);
  Value new_positions(Value old, const Slice& slice);
  /// Node `id` of the expression of `map`, over chunked operands.
  Value part(const Node& map, int id);
  Op over_chunks(const Op& op) const;
  AxisNames over_axes(AxisNames axes) const;
  /// c * Q + q.
  int position(Formula& formula) const;
  void keep(std::map<Value, Value>& form, Value old, Value made);
  /// c * Q + q < T.
  int inside(Formula& formula) const;
  /// `value` with zeros past the end.
  Value masked(Value value);
  bool zero_past_end(Value value) const;
  /// Nonzero where a document starts, zero past the end.
  Value flags(Value reset);

  // chunk_linear.cpp: what is linear in a trajectory is kept as a sum of products until it is read
  // by something else.
  void extend_linear(int id);
  bool can_stand(const Product& product) const;
  Value value_of(const Product& product);
  Value value_of(const Products& products);
  AxisNames trajectory_axes(const Product& product) const;

  // chunk_scan.cpp
  void chunk_scan(int id);
  Products factors_of(Value old, const ChunkedScan& scan);
  AxisNames state_axes(const AxisNames& axes, const ChunkedScan& scan) const;
  /// Whether no factor has all axes of the state that the products have together.
  bool is_outer(const Products& products, const ChunkedScan& scan) const;
  /// Whether `factor` varies along no other axis of the state than the decay does.
  bool is_narrow(Value factor, const ChunkedScan& scan) const;
  void gather_factors(Product& product, const ChunkedScan& scan);
  void settle(Products& products, const ChunkedScan& scan, const std::function<Value()>& atom);
  /// Makes the product zero past the end.
  void mask(Product& product, const ChunkedScan& scan);

  // chunk_cumsum.cpp
  void chunk_cumsum(int id);
  Value chunk_cumsum_forward(int id, Value x, Value initial, Value reset);
  Value chunk_cumsum_reverse(int id, Value x, Value initial, Value reset);

  const Graph& from_;
  Graph to_;
  std::int64_t size_;  // Q
  std::string t_, c_, q_, k_;
  std::vector<Home> homes_;  // of the nodes of from_
  std::map<Value, Value> whole_, chunked_;
  std::map<std::tuple<Value, std::int64_t, bool, std::string>, Value> positions_;
  std::map<Value, Products> linear_;
  std::vector<ChunkedScan> scans_;
};

}  // namespace krait::chunking
