// The safetensors file format: named dense tensors behind a JSON header.
//
// Layout: 8 bytes, the header's length (little-endian); the header, a JSON object of {"NAME":
// {"dtype", "shape", "data_offsets": [begin, end]}} and an optional "__metadata__" of strings; then
// the data, row-major, without holes. Of its dtypes F64, F32, F16, BF16 and I32 are read; the rest
// are a UsageError. Little-endian machines only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "dsl/dtype.h"
#include "dsl/evaluate.h"

namespace krait {

/// A tensor as it lies in a file: row-major bytes.
struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

/// Converts to float64; exact for every dtype.
Tensor64 to_tensor64(const StoredTensor& tensor);
/// Rounds to nearest even. Throws UsageError that names `field` for a value that i32 cannot hold.
StoredTensor to_stored(const Tensor64& tensor, DType dtype, const std::string& field = "tensor");

struct SafeTensors {
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Parses the bytes of a file; `file` is its name in errors. Throws UsageError that names the file,
/// the tensor, the field, its value and what is allowed. Never reads outside `bytes`.
SafeTensors parse_safetensors(std::span<const std::byte> bytes, const std::string& file);

/// Reads and parses. Throws EnvironmentError where the file cannot be read.
SafeTensors load_safetensors(const std::string& path);

/// Writes to a new file beside `path`, then renames: a reader sees the old file or the new one, and
/// no partial file is left behind. Throws EnvironmentError where that fails, UsageError where a
/// tensor's bytes do not fit its shape.
void save_safetensors(const std::string& path, const SafeTensors& content);

}  // namespace krait
