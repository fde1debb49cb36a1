// Runs a block of its own through the installed library, or hands its arguments to the commands.
#include <krait/cli.h>
#include <krait/krait.h>

#include <cmath>
#include <iostream>
#include <vector>

namespace {

/// S[t] = S[t-1] / 2 + x[t]
void halving(krait::Scope& s) {
  const krait::Axis b("b"), t("t"), d("d", 4);
  const krait::Expr x = s.input("x", {b, t, d});
  const krait::Expr decay = s.constant(-std::log(2.0));
  s.output("y", krait::scan(t, decay, x).leaving, {b, t, d});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1)
    return krait::cli(argc, argv,
                      {{"halving", {}, [](krait::Scope& s, const krait::Sizes&) { halving(s); }}});
  const krait::Layer layer(halving);
  const std::vector<float> ones(1 * 3 * 4, 1.0f);
  const auto forward = layer.forward({{"x", {ones.data(), {1, 3, 4}}}});
  const auto gradients = layer.backward(forward.tape, {{"y", {ones.data(), {1, 3, 4}}}});
  std::cout << "y " << forward.outputs.at("y").data_as<float>()[11] << ", dx "
            << gradients.at("x").data_as<float>()[0] << '\n';
}
