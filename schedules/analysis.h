// What partition needs to know about a graph before it cuts it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "dsl/graph.h"

namespace krait {

/// An axis that was split into (outer, inner) and is dynamic, with its parts.
struct SplitAxis {
  std::string axis, inner;
};

struct Analysis {
  /// `tiles`: axes that count tiles of others.
  explicit Analysis(const Graph& graph, const AxisNames& tiles = {});

  const Graph& graph;
  std::vector<std::vector<int>> users;
  /// What carries a value from one turn of a loop to the next: every Scan, a Cumsum along a dynamic
  /// axis or along one that counts the parts of another.
  std::vector<bool> running;
  /// A library GEMM: a Contract of two operands of which one is a parameter, or that sums over
  /// dynamic axes, with at least 16 free positions on both sides.
  std::vector<bool> product;
  /// Another Contract with free axes on both sides and a sum: register-blocked inside a kernel.
  std::vector<bool> matmul;
  /// Axes along which work is cut: dynamic ones, their parts, those that count tiles, and those
  /// that some matmul batches over.
  AxisNames outer;
  AxisNames tiles;
  /// Elements of a value up to which a kernel without chains and products keeps all of it on chip.
  std::int64_t width = 16384;
  /// By the outer axis of each dynamic Split or Merge.
  std::map<std::string, SplitAxis> split_axes;

  bool is_dynamic(const std::string& axis) const;
  /// Axes over which the node sums (Contract, Reduce); empty for others.
  AxisNames summed(int node) const;
  bool is_running_axis(const std::string& axis) const { return running_axes.count(axis) != 0; }
  /// Of a Scan or Cumsum.
  const std::string& running_axis(int node) const;
  bool is_reverse(int node) const;
  /// Whether the axis counts positions inside a chunk.
  bool is_position(const std::string& axis) const { return positions.count(axis) != 0; }
  /// Of what runs in parts: the axis of the parts; empty for others.
  std::string parts_of(int node) const;
  /// Gives what each part leaves when it starts from zero, and nothing else.
  bool is_first_pass(int node) const;
  /// Runs over the parts with what enters each.
  bool is_second_pass(int node) const;

  std::set<std::string> running_axes;
  std::set<std::string> positions;
};

/// Free axes of the two operands of a Contract: left only, right only, both.
struct ContractAxes {
  AxisNames left, right, batch;
};
ContractAxes contract_axes(const Graph& graph, int node);

/// Axes in the order in which the inputs store them, dynamic ones first; parts of an axis stand
/// where it does. What is stored in this order can be merged back without a copy.
AxisNames storage_order(const Graph& graph, AxisNames axes, const AxisNames& tiles = {});

/// Elements of constant axes, dynamic ones counted as one.
std::int64_t constant_elements(const Graph& graph, const AxisNames& axes);

}  // namespace krait
