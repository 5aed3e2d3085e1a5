#include "sim/verilated_text.hpp"

#include <cstdarg>
#include <cstdio>

#include "sim/verilated_hooks.h"
#include "verilated.h"

static thread_local std::string *model_text;
static thread_local bool model_stopped;

namespace mr_sim_impl {

void listen(std::string *text) {
    model_text = text;
    model_stopped = false;
}

bool stopped() {
    model_text = nullptr;
    return model_stopped;
}

} // namespace mr_sim_impl

extern "C" int mr_sim_printf(const char *format, ...) {
    char line[512];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    if (model_text && model_text->size() < 2000)
        *model_text += line;
    return n;
}

static void note(const char *file, int line, const char *what) {
    model_stopped = true;
    if (model_text && model_text->empty())
        *model_text = std::string(file) + ":" + std::to_string(line) + ": " + what;
}

void vl_finish(const char *file, int line, const char *) { note(file, line, "$finish"); }
void vl_stop(const char *file, int line, const char *) { note(file, line, "$stop"); }
void vl_fatal(const char *file, int line, const char *, const char *msg) { note(file, line, msg); }
