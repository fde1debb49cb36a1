#include "schedules/schedule.h"

#include <catch2/catch.hpp>

#include "dsl/error.h"

namespace krait {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_schedule(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("a schedule's text comes back as it was, keys in one order") {
  for (const char* text :
       {"", "plan=step", "plan=recurrent", "chunk=64",
        "plan=chunks chunk=64 backward.chunk=128 segments=3 backward.segments=chunks",
        "segments=chunks", "chunk=8 warps=4 backward.warps=16 math=exact", "math=fast",
        "warps=2 save.every=256 backward.save.every=96 tile=32 backward.tile=16 recompute=0",
        "width=4096 backward.width=1024", "chunk=8 math=exact gemm=library", "gemm=generated",
        "stages=2 backward.stages=1"}) {
    CHECK(to_text(parse_schedule(text)) == text);
  }
  CHECK(to_text(parse_schedule("  segments=2   plan=chunks\tchunk=5 ")) ==
        "plan=chunks chunk=5 segments=2");
}

TEST_CASE("the key of a pass wins over the key for both") {
  const Schedule schedule = parse_schedule("chunk=64 backward.chunk=32 segments=chunks");
  CHECK(schedule.chunk_of(Pass::forward) == 64);
  CHECK(schedule.chunk_of(Pass::backward) == 32);
  CHECK(schedule.segments_of(Pass::forward) == 0);
  CHECK(schedule.segments_of(Pass::backward) == 0);
  CHECK(parse_schedule("chunk=64").chunk_of(Pass::backward) == 64);
  CHECK(parse_schedule("save.every=64").save_every_of(Pass::backward) == 64);
  CHECK(parse_schedule("backward.save.every=64").save_every_of(Pass::forward) == std::nullopt);
  CHECK(parse_schedule("tile=64").tile_of(Pass::backward) == 64);
  CHECK(parse_schedule("tile=64 backward.tile=16").tile_of(Pass::backward) == 16);
  CHECK(parse_schedule("backward.tile=64").tile_of(Pass::forward) == std::nullopt);
  CHECK_THROWS_AS(Schedule{}.chunk_of(Pass::forward), InternalError);
}

TEST_CASE("what is set over a base replaces it, the rest stays") {
  const Schedule base = parse_schedule("plan=chunks chunk=64 segments=2");
  CHECK(to_text(merge(base, parse_schedule("chunk=16 backward.segments=3"))) ==
        "plan=chunks chunk=16 segments=2 backward.segments=3");
  const Schedule scoped = parse_schedule("chunk=64 backward.chunk=32 backward.segments=2");
  CHECK(to_text(merge(scoped, parse_schedule("chunk=16"))) == "chunk=16 backward.segments=2");
  CHECK(to_text(merge(scoped, parse_schedule("segments=3"))) ==
        "chunk=64 backward.chunk=32 segments=3");
  CHECK(to_text(merge(parse_schedule("warps=2 backward.warps=4 math=exact"),
                      parse_schedule("warps=8 math=fast"))) == "warps=8 math=fast");
  CHECK(to_text(merge(parse_schedule("save.every=64 backward.save.every=96"),
                      parse_schedule("save.every=128"))) == "save.every=128");
  CHECK(to_text(merge(parse_schedule("tile=64 backward.tile=16"), parse_schedule("tile=32"))) ==
        "tile=32");
  CHECK(merge(base, {}) == base);
  CHECK(merge({}, base) == base);
}

TEST_CASE("a file has keys on any lines, and comments") {
  CHECK(
      to_text(parse_schedule_file("# for long windows\nchunk=64 # and\n\n backward.chunk=32\n")) ==
      "chunk=64 backward.chunk=32");
  CHECK(parse_schedule_file("") == Schedule{});
  CHECK_THROWS_AS(parse_schedule_file("chunk=64\nchunk=32\n"), UsageError);
}

TEST_CASE("a schedule that says nothing sensible is refused, key and value named") {
  const auto names = [](const std::string& text, const std::string& part) {
    INFO(text << ": " << error_of(text));
    CHECK(error_of(text).find(part) != std::string::npos);
  };
  names("plan=fast", "plan is fast; allowed: chunks, recurrent, step");
  names("plan", "\"plan\"; allowed: KEY=VALUE");
  names("chunk=0", "chunk is 0; allowed: 1 to");
  names("chunk=-4", "chunk is -4");
  names("chunk=4.5", "chunk is 4.5");
  names("chunk=", "chunk is empty");
  names("chunk=99999999999999999999", "chunk is 99999999999999999999");
  names("chunk=chunks", "chunk is chunks");
  names("segments=0", "segments is 0; allowed: 1 to 1048576, or chunks");
  names("chunk=4 chunk=8", "chunk is 4 and 8");
  names("colour=red", "key colour (colour=red); allowed: plan, chunk, backward.chunk");
  names("forward.chunk=4", "key forward.chunk");
  names("warps=3", "warps is 3; allowed: 1, 2, 4, 8, 16, 32");
  names("stages=3", "stages is 3; allowed: 1 to 2");
  names("backward.warps=64", "backward.warps is 64; allowed: 1, 2");
  names("save.every=0", "save.every is 0; allowed: 1 to");
  names("tile=0", "tile is 0; allowed: 1 to");
  names("width=0", "width is 0; allowed: 1 to");
  names("recompute=101", "recompute is 101; allowed: 0 to 100");
  names("recompute=-1", "recompute is -1; allowed: 0 to 100");
  names("gemm=mine", "gemm is mine; allowed: library, generated");
  names("math=quick", "math is quick; allowed: fast, exact");
}

}  // namespace
}  // namespace krait
