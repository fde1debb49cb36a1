#include "codegen/cuda/writer.h"

#include <algorithm>

namespace krait {
namespace {

constexpr std::size_t columns = 100;

/// Moves every line from `start` on to the left by one block.
void dedent(std::string& text, std::size_t start) {
  std::string moved;
  for (std::size_t at = start; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    moved.append(text, at + 2, end - at - 2);
    at = end;
  }
  text.replace(start, std::string::npos, moved);
}

}  // namespace

void CudaWriter::line(const std::string& text) {
  const bool statement = !text.empty() && text[0] != '#' && text[0] != '/';
  if (statement && !blocks_.empty()) ++blocks_.back().statements;
  if (!text.empty()) out_.append(2 * blocks_.size(), ' ');
  out_ += text + '\n';
}

void CudaWriter::comment(const std::string& text) {
  std::string part = "//";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (part.size() > 2 && 2 * blocks_.size() + part.size() + 1 + end - at > columns) {
      line(part);
      part = "//    ";
    }
    part += " " + text.substr(at, end - at);
    at = end + 1;
  }
  line(part);
}

void CudaWriter::open(const std::string& text) {
  const std::size_t start = out_.size();
  line(text.empty() ? "{" : text + " {");
  blocks_.push_back({start, 0, text.empty()});
}

void CudaWriter::close() {
  const Block block = blocks_.back();
  blocks_.pop_back();
  if (block.for_names && block.statements == 1) {
    out_.erase(block.start, out_.find('\n', block.start) + 1 - block.start);
    dedent(out_, block.start);
    return;
  }
  out_.append(2 * blocks_.size(), ' ');
  out_ += "}\n";
}

std::string broken_lines(const std::string& text) {
  std::string broken;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    at = end + 1;
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const bool code = line.find("//") == std::string::npos && line.find('"') == std::string::npos &&
                      line[indent] != '#';
    for (std::size_t least = indent; code && line.size() > columns;) {
      const std::size_t space = line.rfind(' ', columns);
      if (space == std::string::npos || space <= least) break;
      broken += line.substr(0, space) + '\n';
      line = std::string(indent + 4, ' ') + line.substr(space + 1);
      least = indent + 4;
    }
    broken += line + '\n';
  }
  return broken;
}

}  // namespace krait
