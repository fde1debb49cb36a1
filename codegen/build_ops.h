// The values of a fused kernel while it is built, and the rule of each op.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "codegen/builder.h"

namespace krait {

/// Where each value of the kernel is: on chip, read straight from memory, or a literal; and from
/// which place on it may be read.
class Values {
 public:
  explicit Values(Builder& builder);

  Builder& builder() { return builder_; }
  const Builder& builder() const { return builder_; }
  const Graph& graph() const { return builder_.graph(); }

  bool is_computed(Value value) const { return computed_.count(value.node) != 0; }
  /// The value of a Constant node.
  std::optional<double> literal(Value value) const;
  /// How many nodes of the kernel read the value.
  int readers(Value value) const;
  /// Written to memory by this kernel.
  bool is_stored(Value value) const;
  /// The node is computed here, its operands from `place` on at the earliest.
  Place place_of_node(int node);

  /// The buffer on chip that holds the value; loads it, or fills it with a literal, where it is not
  /// there yet.
  int on_chip(Value value);
  /// For an elementwise reader: straight from memory where nothing else reads it, else on chip.
  Access operand(Value value);
  /// Declares that the value is in `buffer` and may be read from `place` on.
  void define(Value value, int buffer, Place place);
  Place place(Value value) const;
  /// A new buffer for the value, declared at `place`. Where the value only goes to memory, gives
  /// the access to it instead.
  Access result(Value value, Place place);
  /// Adds the copies of an already defined value to memory.
  void store(Value value);
  /// Copies a value that is loaded or literal to memory.
  void copy_through(Value value, const View& view);

  /// A statement that must come after every reader of a loop's state in the loop's body.
  void defer(Place place, std::function<void()> make) { deferred_.push_back({place, make}); }
  void run_deferred();
  /// The scan of this kernel goes on from what memory has there, whatever its own start is.
  void start_from(const std::vector<View>& views) { kept_ = &views; }
  const std::vector<View>* kept() const { return kept_; }
  /// A Contract that the update of a state performs itself, straight into the state.
  void fold_into_state(int node) { folded_.insert(node); }
  bool is_folded(int node) const { return folded_.count(node) != 0; }

 private:
  bool reads_elementwise_only(Value value) const;
  const Remade* remade(Value value) const;
  Access store_access(Value value, const View& view);
  Access partial_access(const Partial& partial);

  Builder& builder_;
  std::set<int> computed_;
  std::map<Value, std::vector<int>> readers_;
  std::map<Value, int> buffers_;
  std::map<Value, Place> places_;
  std::set<Value> direct_results_;  // written to memory by the statement that computes them
  std::vector<std::pair<Place, std::function<void()>>> deferred_;
  std::set<int> folded_;
  const std::vector<View>* kept_ = nullptr;
};

/// The loop that runs a scan on from the state kept last to the one that the kernel needs.
void build_remade(Values& values, const Remade& remade);

/// Builds one node: dispatches to the rule of its op.
void build_node(Values& values, int node);

void build_map(Values& values, int node, const Map& op);
void build_contract(Values& values, int node, const Contract& op);
void build_reduce(Values& values, int node, const Reduce& op);
void build_cumsum(Values& values, int node, const Cumsum& op);
void build_pair_sum(Values& values, int node, const PairSum& op);
void build_scan(Values& values, int node, const Scan& op);
void build_view(Values& values, int node);

/// Whether a node is a Contract of two operands that share the dtype and whose rows, columns and
/// sums are tile axes.
bool has_product_shape(const Builder& builder, int node);
/// The Mma of a Contract of two operands on chip, if it has rows and columns among the tile axes.
std::optional<Mma> product_statement(Values& values, int node);

BuiltKernel build_finish(const Plan& plan, const PlannedKernel& kernel);
BuiltKernel build_product(const Plan& plan, const PlannedKernel& kernel,
                          const ProductBlocks& blocks);

}  // namespace krait
