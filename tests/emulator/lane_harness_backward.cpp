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
namespace backward_program {
#define printf note
#define main unused_main
#include <emu_bwd.cpp>
#undef main
#undef printf

namespace {

LaneCounts counts() {
  return {emu::n_mma, emu::n_ldsm, emu::n_ldsm_phase,
          emu::n_w32, emu::n_bar,  std::exchange(noted(), "")};
}

using Wide = BwdU<64, 64, 128, 4, 2, 2>;
using Narrow = BwdU<64, 64, 64, 4, 2, 2>;
using Tiled = BwdU<64, 32, 128, 4, 2, 2>;

template <class K>
LaneCounts run_reverse(int tokens) {
  Ref reference;
  reference.make(2, tokens, K::P, K::N, K::Q * K::SAVE);
  BwdP arguments;
  ustate<K>(reference, arguments);
  return counts();
}

template <class U, class K>
LaneCounts run_all_heads(int tokens) {
  checkA<U, K>("", tokens, 1);
  return counts();
}

template <class K>
LaneCounts run_serial(int tokens) {
  checkC<K>("", tokens);
  return counts();
}

}  // namespace
}  // namespace backward_program

LaneCounts backward_lanes(const std::string& type, int tokens) {
  using namespace backward_program;
  static const std::map<std::string, LaneCounts (*)(int)> known{
      {"BwdU<64,64,128,4,2,2>", run_reverse<Wide>},
      {"BwdU<64,64,64,4,2,2>", run_reverse<Narrow>},
      {"BwdU<64,32,128,4,2,2>", run_reverse<Tiled>},
      {"BwdA<64,64,128,8,2,false,false,2>",
       run_all_heads<Wide, BwdA<64, 64, 128, 8, 2, false, false, 2>>},
      {"BwdA<64,64,128,8,1,false,false,2>",
       run_all_heads<Wide, BwdA<64, 64, 128, 8, 1, false, false, 2>>},
      {"BwdA<64,64,64,8,2,false,false,2>",
       run_all_heads<Narrow, BwdA<64, 64, 64, 8, 2, false, false, 2>>},
      {"BwdA<64,32,128,8,1,true,true,2>",
       run_all_heads<Tiled, BwdA<64, 32, 128, 8, 1, true, true, 2>>},
      {"BwdC<64,64,128,8,1>", run_serial<BwdC<64, 64, 128, 8, 1>>},
      {"BwdC<64,32,128,8,1>", run_serial<BwdC<64, 32, 128, 8, 1>>}};
  const auto found = known.find(type);
  if (found == known.end()) throw std::runtime_error("not among those: " + type);
  return found->second(tokens);
}

}  // namespace emulator_test
