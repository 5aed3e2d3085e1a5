// What every bench of the common cells needs: a reproducible seed (rng.hpp), a model whose
// registers start with noise, and assertions that are reported to the test instead of ending the
// program.
#ifndef MR_TESTS_RTL_COMMON_BENCH_HPP
#define MR_TESTS_RTL_COMMON_BENCH_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>
#include <verilated.h>

#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/MemoryLeakWarningPlugin.h>
#include <CppUTest/TestHarness.h>

#include "rng.hpp"

// A model under test. Registers and memories without reset begin with noise drawn from `noise`.
template <class Top>
class Bench {
public:
    virtual ~Bench() {
        // the model's scopes unregister with the thread's context, which may be another bench's
        Verilated::threadContextp(&context);
        top.reset();
    }
    explicit Bench(uint64_t noise) {
        context.fatalOnError(false);
        context.randReset(2);
        context.randSeed((int)(noise % 0x7FFFFFFF) + 1);
        context.assertOn(true);
        context.traceEverOn(true);
        top = std::make_unique<Top>(&context, "tb");
    }
    // Sees inputs set since the last call; registers do not move.
    void settle() { top->eval(); }
    void tick() {
        top->clk_i = 0;
        top->eval();
        dump();
        top->clk_i = 1;
        top->eval();
        dump();
        cycles++;
    }
    void reset() {
        top->rst_ni = 0;
        for (int k = 0; k < 3; k++)
            tick();
        top->rst_ni = 1;
    }
    // True when an assertion of the design has fired since the last call.
    bool fired() {
        const bool error = context.gotError();
        context.gotError(false);
        context.gotFinish(false);
        return error;
    }
    VerilatedContext context;
    std::unique_ptr<Top> top;
    uint64_t cycles = 0;

protected:
    virtual void dump() {}
};

// What the program prints to stdout while this object lives; used to see which assertion fired.
class Capture {
public:
    Capture() {
        fflush(stdout);
        saved_ = dup(1);
        file_ = tmpfile();
        dup2(fileno(file_), 1);
    }
    std::string end() {
        fflush(stdout);
        dup2(saved_, 1);
        close(saved_);
        std::string text;
        rewind(file_);
        for (int c; (c = fgetc(file_)) != EOF;)
            text += (char)c;
        fclose(file_);
        return text;
    }

private:
    int saved_;
    FILE *file_;
};

inline int bench_main(int argc, char **argv) {
    // models allocate in their own time: the leak detector would blame the test that came first
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads();
    run_seed();
    return CommandLineTestRunner::RunAllTests(argc, argv);
}

#endif
