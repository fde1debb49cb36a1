// Where warnings go. A warning never changes a result.
#pragma once

#include <functional>
#include <string>

namespace krait {

/// Takes one message without a line end. May be called by several threads at once.
using WarningSink = std::function<void(const std::string&)>;

/// One line on stderr: "krait: warning: MESSAGE".
WarningSink warn_on_stderr();

}  // namespace krait
