// Plug-ins: libraries with a dependency of their own, loaded when they are first asked for, and for good,
// since what stands behind them has threads. They are in the folder heddle/ beside libheddle.so, or in that
// of HEDDLE_PLUGINS. Any thread.
#pragma once

#include <string>

namespace heddle {

/// The folder of libheddle.so, or of the program that it is linked into.
[[nodiscard]] std::string library_folder();

/// The extern "C" function of the plug-in `file`, or null and why there is none; `how` one comes by it is a
/// part of that.
[[nodiscard]] void* plug_in_function(const std::string& file, const char* function, const std::string& how,
                                     std::string& reason);

}  // namespace heddle
