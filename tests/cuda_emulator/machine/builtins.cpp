#include "tests/cuda_emulator/machine/builtins.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "tests/cuda_emulator/machine/spaces.h"
#include "tests/cuda_emulator/machine/state.h"

namespace emulator {
namespace {

// Arguments and what they point to, of one lane.
class Reader {
 public:
  Reader(Warp& warp, const Op& op, const Call& call, int lane)
      : warp_(warp), op_(op), call_(call), lane_(lane) {}

  uint64_t argument(size_t i) {
    const Transfer& transfer = call_.arguments.at(i);
    uint64_t value = 0;
    uint8_t* defined = nullptr;
    const std::byte* from = warp_.param(lane_, transfer.from, transfer.bytes, &defined, false);
    if (!from) outside(transfer.from, transfer.bytes);
    take(&value, from, defined, transfer.bytes);
    return value;
  }

  void read(void* to, uint64_t address, unsigned bytes) {
    const ptx::Space space = space_of(address);
    if (space == ptx::Space::global) {
      if (!warp_.block->grid.memory.read(to, address, bytes)) outside(address, bytes);
      return;
    }
    const uint64_t offset = address - window_of(space);
    if (space == ptx::Space::constant) {
      const auto& constant = warp_.block->grid.constant;
      if (offset > constant.size() || bytes > constant.size() - offset) outside(address, bytes);
      std::memcpy(to, &constant[offset], bytes);
      return;
    }
    uint8_t* defined = nullptr;
    const std::byte* from = nullptr;
    if (space == ptx::Space::local) from = warp_.local(lane_, offset, bytes, &defined);
    if (!from) outside(address, bytes);
    take(to, from, defined, bytes);
  }

  std::string string(uint64_t address) {
    std::string text;
    for (char c = 0; text.size() < 65536; ++address) {
      read(&c, address, 1);
      if (!c) break;
      text += c;
    }
    return text;
  }

 private:
  void take(void* to, const std::byte* from, const uint8_t* defined, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) {
      if (!defined[i]) undefined();
    }
    std::memcpy(to, from, bytes);
  }
  [[noreturn]] void undefined() {
    fail(warp_, op_, lane_, Fault::undefined, "an argument of the call is undefined");
  }
  [[noreturn]] void outside(uint64_t address, unsigned bytes) {
    fail_at(warp_, op_, lane_, Fault::out_of_bounds, space_of(address), address, bytes,
            "an argument of the call points outside of all memory");
  }

  Warp& warp_;
  const Op& op_;
  const Call& call_;
  const int lane_;
};

// One conversion of a format: prints it with its arguments from the buffer.
class Conversion {
 public:
  Conversion(Reader& reader, uint64_t& buffer) : reader_(reader), buffer_(buffer) {}

  // `text` is from % to the letter of the conversion, without its length.
  std::string print(std::string text, char letter, bool wide) {
    switch (letter) {
      case 'd':
      case 'i':
        return wide ? formatted(text + "ll" + letter, next<long long>())
                    : formatted(text + letter, next<int>());
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return wide ? formatted(text + "ll" + letter, next<unsigned long long>())
                    : formatted(text + letter, next<unsigned>());
      case 'c': return formatted(text + letter, next<int>());
      case 'p': return formatted(text + letter, reinterpret_cast<void*>(next<uint64_t>()));
      case 's': {
        const std::string value = reader_.string(next<uint64_t>());
        return formatted(text + letter, value.c_str());
      }
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A': return formatted(text + letter, next<double>());
      default: return text + letter;
    }
  }
  int width() { return next<int>(); }

 private:
  template <class T>
  T next() {
    buffer_ = (buffer_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value;
    reader_.read(&value, buffer_, sizeof(T));
    buffer_ += sizeof(T);
    return value;
  }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
  template <class T>
  static std::string formatted(const std::string& format, T value) {
    const int length = std::snprintf(nullptr, 0, format.c_str(), value);
    std::string text(length > 0 ? static_cast<size_t>(length) : 0, ' ');
    std::snprintf(text.data(), text.size() + 1, format.c_str(), value);
    return text;
  }
#pragma GCC diagnostic pop

  Reader& reader_;
  uint64_t& buffer_;
};

std::string printed(Reader& reader, const std::string& format, uint64_t buffer) {
  std::string out;
  Conversion conversion(reader, buffer);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == '%') {
      out += '%';
      ++i;
      continue;
    }
    std::string text = "%";
    bool wide = false;
    for (++i; i < format.size(); ++i) {
      const char c = format[i];
      if (c == '*') {
        text += std::to_string(conversion.width());
      } else if (std::strchr("-+ #0123456789.", c)) {
        text += c;
      } else if (c == 'l' || c == 'j' || c == 'z' || c == 't') {
        wide = true;
      } else if (c != 'h') {
        break;
      }
    }
    if (i >= format.size()) return out + text;
    out += conversion.print(text, format[i], wide);
  }
  return out;
}

void vprintf(Warp& warp, const Op& op, const Call& call, Mask lanes) {
  static std::mutex mutex;
  std::string text;
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    Reader reader(warp, op, call, std::countr_zero(rest));
    const std::string format = reader.string(reader.argument(0));
    text += printed(reader, format, reader.argument(1));
  }
  const std::lock_guard lock(mutex);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void run_builtin(Warp& warp, const Op& op, const Call& call, Mask lanes) {
  if (call.builtin == Builtin::assertfail) {
    const int lane = std::countr_zero(lanes);
    Reader reader(warp, op, call, lane);
    const std::string message = reader.string(reader.argument(0));
    const std::string file = reader.string(reader.argument(1));
    const uint64_t line = reader.argument(2);
    const std::string function = reader.string(reader.argument(3));
    fail(warp, op, lane, Fault::assertion,
         file + ":" + std::to_string(line) + ": " + function + ": assertion `" + message +
             "` failed");
  }
  vprintf(warp, op, call, lanes);
  for (const Transfer& result : call.results) {
    each_lane(lanes, [&](int lane) {
      uint8_t* defined = nullptr;
      std::byte* to = warp.param(lane, result.to, result.bytes, &defined, true);
      std::memset(to, 0, result.bytes);
      std::memset(defined, 0xff, result.bytes);
    });
  }
}

}  // namespace emulator
