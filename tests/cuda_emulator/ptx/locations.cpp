#include "tests/cuda_emulator/ptx/locations.h"

#include "tests/cuda_emulator/ptx/constant.h"

namespace emulator::ptx {

namespace {

constexpr uint64_t kMost = 0xffffffff;

}  // namespace

Locations::Position Locations::position(Reader& reader) {
  const int at = reader.line();
  const auto file = static_cast<uint32_t>(read_literal(reader, 0, kMost, "a file"));
  const auto line = static_cast<uint32_t>(read_literal(reader, 0, kMost, "a source line"));
  const auto column = static_cast<uint32_t>(read_literal(reader, 0, kMost, "a column"));
  if (file != 0) used_.emplace(file, at);
  return {file, line, column};
}

void Locations::read_location(Reader& reader) {
  const Position inner = position(reader);
  current_ = {};
  std::tie(current_.file, current_.line, current_.column) = inner;
  while (reader.accept(',')) {
    const std::string_view what = reader.word("function_name or inlined_at");
    if (what == "function_name") {
      // A label in .debug_str, which is passed over.
      reader.word("a label");
      if (reader.accept('+')) read_literal(reader, 0, kMost, "an offset");
    } else if (what == "inlined_at") {
      const Position place = position(reader);
      std::tie(current_.outer_file, current_.outer_line, std::ignore) = place;
      if (const auto found = inlined_.find(place); found != inlined_.end()) {
        current_.outer_file = found->second.outer_file;
        current_.outer_line = found->second.outer_line;
      }
      inlined_[inner] = current_;
    } else {
      reader.fail("expected function_name or inlined_at before " + quoted(what));
    }
  }
}

void Locations::read_file(Reader& reader, Module& module) {
  const int line = reader.line();
  const auto index = static_cast<uint32_t>(read_literal(reader, 0, kMost, "a file's number"));
  if (!reader.at(Token::Kind::string)) reader.unexpected("a file's name");
  const std::string name(reader.take().text);
  for (const char* what : {"a time stamp", "a size"}) {
    if (reader.accept(',')) read_literal(reader, 0, ~uint64_t{0}, what);
  }
  const auto [found, fresh] = module.files.emplace(index, name);
  if (!fresh && found->second != name) {
    throw Error(line, "file " + std::to_string(index) + " is declared already");
  }
}

void Locations::check(const Module& module) const {
  for (const auto& [file, line] : used_) {
    if (!module.files.count(file)) {
      throw Error(line, "file " + std::to_string(file) + " is not declared");
    }
  }
}

}  // namespace emulator::ptx
