#include "runtime/warning.h"

#include <cstdio>

namespace krait {

WarningSink warn_on_stderr() {
  return [](const std::string& message) {
    std::fprintf(stderr, "krait: warning: %s\n", message.c_str());
  };
}

}  // namespace krait
