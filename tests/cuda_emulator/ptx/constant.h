#pragma once

// Constant expressions (PTX ISA 4.5): integers of 64 bits, signed or not, and floats.

#include <cstdint>
#include <string>

#include "tests/cuda_emulator/ptx/reader.h"

namespace emulator::ptx {

struct Constant {
  enum class Kind : uint8_t { signed_integer, unsigned_integer, single, number };
  Kind kind = Kind::signed_integer;
  uint64_t bits = 0;

  bool is_integer() const { return kind == Kind::signed_integer || kind == Kind::unsigned_integer; }
};

// Whether an expression can begin with the token.
bool begins_constant(const Token& token);

Constant read_constant(Reader& reader);
// The same without the operators of the lowest level, so that "p|q" and "<n>" are left alone.
int64_t read_integer(Reader& reader, const char* what);
// An integer from least to most.
uint64_t read_count(Reader& reader, uint64_t least, uint64_t most, const char* what);
// A single unsigned literal from least to most: sizes in < >, versions.
uint64_t read_literal(Reader& reader, uint64_t least, uint64_t most, const char* what);

}  // namespace emulator::ptx
