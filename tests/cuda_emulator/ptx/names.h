#pragma once

#include <string_view>

namespace emulator::ptx {

// Whether PTX has a special register of that name ("%laneid"), and whether it has parts .x .y .z .w
// ("%tid").
enum class Special { none, scalar, vector };
Special special_register(std::string_view name);

}  // namespace emulator::ptx
