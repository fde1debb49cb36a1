#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/emulator/lane_harness.h"
#include "tests/emulator/lane_note.h"

namespace emulator_test {
// In a namespace, since the other program has the same names; what it prints is kept, and its main
// is a function that nobody calls.
namespace forward_program {
#define printf note
#define main unused_main
#include <emu_fwd.cpp>
#undef main
#undef printf

namespace {

LaneCounts counts() {
  return {emu::n_mma, emu::n_ldsm, emu::n_ldsm_phase,
          emu::n_w32, emu::n_bar,  std::exchange(noted(), "")};
}

template <class K>
LaneCounts run(int tokens) {
  check<K>("", tokens);
  return counts();
}

}  // namespace
}  // namespace forward_program

LaneCounts forward_lanes(const std::string& arguments, int tokens) {
  using namespace forward_program;
  static const std::map<std::string, LaneCounts (*)(int)> known{
      {"64,64,128,4,2,1,2,0,false", run<FwdK<64, 64, 128, 4, 2, 1, 2, 0, false>>},
      {"64,64,128,4,2,1,2,2,false", run<FwdK<64, 64, 128, 4, 2, 1, 2, 2, false>>},
      {"64,64,128,8,2,2,1,0,false", run<FwdK<64, 64, 128, 8, 2, 2, 1, 0, false>>},
      {"128,64,128,8,2,1,2,0,false", run<FwdK<128, 64, 128, 8, 2, 1, 2, 0, false>>}};
  const auto found = known.find(arguments);
  if (found == known.end()) throw std::runtime_error("not among those: " + arguments);
  return found->second(tokens);
}

}  // namespace emulator_test
