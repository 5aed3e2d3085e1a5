// What a Verilated model says: its messages, and whether an assertion or $stop ended it.
#ifndef SIM_VERILATED_TEXT_HPP
#define SIM_VERILATED_TEXT_HPP

#include <string>

namespace mr_sim_impl {

// From now on what the models of this thread say goes to `text`, which the caller has emptied.
void listen(std::string *text);

// Stops listening; true when a model stopped meanwhile.
bool stopped();

} // namespace mr_sim_impl
#endif
