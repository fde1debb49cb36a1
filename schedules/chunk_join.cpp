#include "schedules/chunk_join.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "dsl/error.h"
#include "schedules/chunk_products.h"

namespace krait::chunking {
namespace {

AxisNames together(const Graph& graph, AxisNames a, const AxisNames& b) {
  a.insert(a.end(), b.begin(), b.end());
  return graph.sorted(a);
}

double nominal_size(const Graph& graph, const AxisNames& axes) {
  double size = 1;
  // Small sizes count as 4, so that a state axis of one element still is an axis.
  for (const auto& axis : axes) {
    const Extent& extent = graph.axis(axis).extent;
    size *= extent.is_constant() ? std::max<double>(4, static_cast<double>(extent.offset)) : 64;
  }
  return size;
}

/// Makes the nodes.
struct Build {
  Graph& graph;
  using Term = Value;
  AxisNames axes(Value x) const { return graph.type(x).axes; }
  Value product(const std::vector<Value>& x) { return multiply(graph, 1, x); }
  Value contract(const AxisNames& sum, const std::vector<Value>& x) {
    return graph.contract(sum, x);
  }
};

/// Adds the sizes of what Build would make.
struct Measure {
  const Graph& graph;
  double size = 0;
  using Term = AxisNames;
  AxisNames axes(const AxisNames& x) const { return x; }
  AxisNames product(const std::vector<AxisNames>& x) {
    return x.size() == 1 ? x[0] : contract({}, x);
  }
  AxisNames contract(const AxisNames& sum, const std::vector<AxisNames>& x) {
    AxisNames all;
    for (const auto& axes : x) all.insert(all.end(), axes.begin(), axes.end());
    all = without(graph.sorted(all), sum);
    size += nominal_size(graph, all);
    return all;
  }
};

/// Multiplies factors, the smallest product first, until two are left: a contraction of two.
template <typename Algebra>
void fold_to_two(Algebra& algebra, std::vector<typename Algebra::Term>& terms) {
  while (terms.size() > 2) {
    std::size_t best_i = 0, best_j = 1;
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < terms.size(); ++i)
      for (std::size_t j = i + 1; j < terms.size(); ++j) {
        const double size = nominal_size(
            algebra.graph, together(algebra.graph, algebra.axes(terms[i]), algebra.axes(terms[j])));
        if (size < best) std::tie(best, best_i, best_j) = std::tuple(size, i, j);
      }
    terms[best_i] = algebra.product({terms[best_i], terms[best_j]});
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(best_j));
  }
}

/// Those of `axes` that `group` reaches over terms that have two of them.
template <typename Algebra>
AxisNames connected(const Algebra& algebra, const std::vector<typename Algebra::Term>& terms,
                    const AxisNames& axes, AxisNames group) {
  for (std::size_t before = 0; before != group.size();) {
    before = group.size();
    for (const auto& term : terms)
      if (meet(algebra.axes(term), group))
        group = together(algebra.graph, group, without(axes, without(axes, algebra.axes(term))));
  }
  return group;
}

template <typename Algebra>
typename Algebra::Term join_with(Algebra& algebra, std::vector<typename Algebra::Term> terms,
                                 int wide_number, const AxisNames& sum, const AxisNames& last) {
  using Term = typename Algebra::Term;
  const Graph& graph = algebra.graph;
  std::optional<Term> wide;
  if (wide_number >= 0) {
    wide = terms[wide_number];
    terms.erase(terms.begin() + wide_number);
  }

  // What can be summed without the wide factor: connected groups, each a contraction.
  const AxisNames late =
      wide ? together(graph, last, without(sum, without(sum, algebra.axes(*wide)))) : last;
  AxisNames early = without(sum, late);
  while (!early.empty()) {
    const AxisNames group = connected(algebra, terms, early, {early[0]});
    std::vector<Term> inside, outside;
    for (const Term& term : terms)
      (meet(algebra.axes(term), group) ? inside : outside).push_back(term);
    KRAIT_ASSERT(!inside.empty(), "no factor varies along ", group[0]);
    fold_to_two(algebra, inside);
    outside.push_back(algebra.contract(group, inside));
    terms = std::move(outside);
    early = without(early, group);
  }

  // The matrix of the final contraction, and what comes after it.
  std::vector<Term> matrix, after;
  for (const Term& term : terms) (meet(algebra.axes(term), late) ? matrix : after).push_back(term);
  if (wide) {
    // A factor that would widen the matrix, but not the wide factor, belongs to the latter.
    for (std::size_t i = 0; i < matrix.size() && matrix.size() > 1;) {
      AxisNames others;
      for (std::size_t j = 0; j < matrix.size(); ++j)
        if (j != i) others = together(graph, others, algebra.axes(matrix[j]));
      const AxisNames axes = algebra.axes(matrix[i]);
      if (!is_subset(axes, others) && is_subset(axes, algebra.axes(*wide))) {
        wide = algebra.product({*wide, matrix[i]});
        matrix.erase(matrix.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }
  // Factors that share no summed axis meet the wide one after each other: their product would be an
  // outer product. What is summed along the last axes comes last.
  AxisNames rest = late;
  while (wide && !rest.empty()) {
    AxisNames group{rest[0]};
    for (const auto& axis : rest)
      if (!contains(last, axis)) {
        group = {axis};
        break;
      }
    group = connected(algebra, matrix, rest, group);
    if (group.size() == rest.size()) break;
    std::vector<Term> inside, outside;
    for (const Term& term : matrix)
      (meet(algebra.axes(term), group) ? inside : outside).push_back(term);
    if (inside.empty()) {
      wide = algebra.contract(group, {*wide});
    } else {
      wide = algebra.contract(group, {algebra.product(inside), *wide});
    }
    matrix = std::move(outside);
    rest = without(rest, group);
  }
  std::vector<Term> final_terms;
  if (!matrix.empty()) final_terms.push_back(algebra.product(matrix));
  if (wide) final_terms.push_back(*wide);
  if (!rest.empty()) final_terms = {algebra.contract(rest, final_terms)};
  final_terms.insert(final_terms.end(), after.begin(), after.end());
  return algebra.product(final_terms);
}

}  // namespace

Value join(Graph& graph, const std::vector<Value>& factors, int wide, const AxisNames& sum,
           const AxisNames& last) {
  Build build{graph};
  return join_with(build, factors, wide, sum, last);
}

Value join_best(Graph& graph, const std::vector<Value>& factors, const std::vector<int>& choices,
                const AxisNames& sum, const AxisNames& last) {
  std::vector<AxisNames> axes;
  for (Value factor : factors) axes.push_back(graph.type(factor).axes);
  int best = -1;
  std::pair<double, double> least;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const int wide = choices[i];
    Measure measure{graph};
    join_with(measure, axes, wide, sum, last);
    const std::pair<double, double> size{measure.size,
                                         wide < 0 ? 0 : nominal_size(graph, axes[wide])};
    if (i == 0 || size < least) std::tie(best, least) = std::tie(wide, size);
  }
  return join(graph, factors, best, sum, last);
}

}  // namespace krait::chunking
