// Whole files in, whole files out.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace krait {

/// The bytes of a regular file. Throws EnvironmentError that names the path and the reason.
std::vector<std::byte> read_file(const std::string& path);
/// The same as text.
std::string read_text(const std::string& path);

/// Writes a new file beside `path`, flushes it and renames it: a reader sees the old file or the
/// whole new one, and a failure leaves nothing behind. Throws EnvironmentError.
void write_file_atomically(const std::string& path,
                           std::span<const std::span<const std::byte>> parts);
void write_file_atomically(const std::string& path, const std::string& text);

}  // namespace krait
