// Numbers in printed text.
#pragma once

#include <string>

namespace krait {

/// The shortest decimal text that reads back as `value`; "inf", "-inf", "nan".
std::string number_text(double value);

}  // namespace krait
