#include <algorithm>

#include "codegen/tile/tile.h"

namespace krait {

std::int64_t Index::factor_of(int var) const {
  for (const Term& term : terms)
    if (term.var == var) return term.factor;
  return 0;
}

Index operator+(const Index& a, const Index& b) {
  Index sum{a.constant + b.constant, {}};
  auto left = a.terms.begin(), right = b.terms.begin();
  while (left != a.terms.end() || right != b.terms.end()) {
    if (right == b.terms.end() || (left != a.terms.end() && left->var < right->var)) {
      sum.terms.push_back(*left++);
    } else if (left == a.terms.end() || right->var < left->var) {
      sum.terms.push_back(*right++);
    } else {
      if (left->factor + right->factor != 0)
        sum.terms.push_back({left->var, left->factor + right->factor});
      ++left, ++right;
    }
  }
  return sum;
}

Index operator*(const Index& a, std::int64_t factor) {
  if (factor == 0) return {};
  Index product = a;
  product.constant *= factor;
  for (Index::Term& term : product.terms) term.factor *= factor;
  return product;
}

}  // namespace krait
