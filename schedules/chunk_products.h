// Sums of products, the algebra in which `chunk` takes the inputs and the readers of scans apart.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsl/graph.h"

namespace krait::chunking {

/// Why the graph at hand cannot be chunked; ends the rewrite.
struct NotChunkable {
  std::string reason;
};

/// scale * sum over `sum` of the product of `factors` (values of the new graph), and of the
/// trajectory of scan number `scan` where that is not negative: the state after each step, or
/// before it. `views` (Rename, Split, Merge, Slice) were applied to the trajectory, in order.
struct Product {
  double scale = 1;
  std::vector<Value> factors{};
  AxisNames sum{};
  int scan = -1;
  bool leaving = true;
  std::vector<Op> views{};
};

/// The sum of its members.
using Products = std::vector<Product>;

/// Builds one Map: `read` gives the node of an operand, `finish` adds the Map.
class Formula {
 public:
  explicit Formula(Graph& graph) : graph_(graph) {}
  Scalar& scalar() { return scalar_; }
  int read(Value value);
  int constant(double value) { return scalar_.constant(value); }
  int operator()(ScalarOp op, int a, int b = -1, int c = -1) { return scalar_.apply(op, a, b, c); }
  Value finish(int result);

 private:
  Graph& graph_;
  Scalar scalar_;
  std::vector<Value> operands_;
};

/// The axes of any of these values.
AxisNames axes_of(const Graph& graph, const std::vector<Value>& values);
bool is_subset(const AxisNames& axes, const AxisNames& of);
bool meet(const AxisNames& a, const AxisNames& b);

/// scale times the product, elementwise, as one Map.
Value multiply(Graph& graph, double scale, const std::vector<Value>& factors);
/// The sum, elementwise, as one Map.
Value add_up(Graph& graph, const std::vector<Value>& terms);
/// `value`, varying along `axes` too.
Value spread(Graph& graph, Value value, const AxisNames& axes);

/// Whether `op` is a view of one axis or two, which a product can take factor by factor.
bool is_view(const Op& op);
/// The view of a factor; one that lacks the axis stays as it is.
Value apply_view(Graph& graph, const Op& view, Value value);
AxisNames apply_view(const Graph& graph, const Op& view, AxisNames axes);
void apply_view(Graph& graph, const Op& view, Product& product);

/// Gives a new name to the summed axes of `product` that are among `taken`.
void rename_sums(Graph& graph, Product& product, const AxisNames& taken);
/// a times b. Nothing where both are trajectories.
std::optional<Product> multiply(Graph& graph, Product a, Product b);
/// Sums `product` over `axes`; along an axis that no factor has, its size is the sum. `trajectory`
/// are the axes of its trajectory before the views.
void sum_over(Graph& graph, Product& product, const AxisNames& axes, AxisNames trajectory);

/// How `expand` takes a Map apart.
struct Expansion {
  std::function<Products(Value)> operand;  // what an operand of the Map is a sum of
  std::function<Value(int)> atom;          // the value of a node of the expression
  std::function<bool(int)> whole;          // nodes that are not to be taken apart
  // A select both of whose branches are plain is not taken apart.
  std::function<bool(const Products&)> plain = [](const Products&) { return false; };
  std::function<void(int, Products&)> settle = [](int, Products&) {};  // after each node
};

/// Node `id` of the expression of `map` as a sum of products; nothing where it is not linear in a
/// trajectory.
std::optional<Products> expand(Graph& graph, const Node& map, int id, const Expansion& how);

}  // namespace krait::chunking
