// The variables of this process, changed while other threads read them.
//
// setenv() of glibc 2.36 and before frees the array that getenv() goes through when it adds a variable, and
// runtimes read variables whenever they begin, each in a thread of its own. What is changed here stays valid
// for who reads it meanwhile, for good: some hundred bytes a change.
//
// Any thread. Who calls setenv() at the very same time may lose one of the two changes.
#pragma once

#include <string>

namespace heddle {

void set_variable(const std::string& name, const std::string& value);
void unset_variable(const std::string& name);

/// Before code of others that calls setenv(), as PoCL does when it looks for devices: what that frees then is
/// nothing that anybody still goes through.
void keep_variables();

}  // namespace heddle
