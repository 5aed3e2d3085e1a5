/* Times of one node, worked out by hand. */
#include "tests/unit/cycle/support.h"

#include "models/cycle/machine.h"

#include <CppUTest/TestHarness.h>

TEST_GROUP(Machine) {
    mr_machine m;
    void setup() override {
        m = {};
        m.layers = 2;
        m.query_heads = 4;
        m.kv_heads = 2;
        m.head_dim = 8;
        m.hidden = 32;
        m.value_bytes = 2;
        m.step_tokens = 100;
        m.flops_per_s = 1e9;
        m.bytes_per_s = 1e9;
        m.degree = 1;
        for (uint32_t t = 1; t <= MR_MACHINE_TOKENS; t++) {
            m.layer_ns[t] = 1000 + 10 * t;
            m.embed_ns[t] = t;
            m.head_ns[t] = 500 * t;
        }
    }
};

TEST(Machine, AStep) {
    LONGS_EQUAL(0, mr_machine_step_ns(&m, 0, 0, 0));
    LONGS_EQUAL(2 * 1070 + 7 + 0, mr_machine_step_ns(&m, 7, 0, 0));
    LONGS_EQUAL(2 * 1070 + 7 + 1500, mr_machine_step_ns(&m, 7, 3, 0));
    LONGS_EQUAL(2 * 1070 + 7 + 1500 + 40, mr_machine_step_ns(&m, 7, 3, 40));
}

TEST(Machine, Attention) {
    /* 2 (K and V) * 2 layers * 2 heads * 8 * 2 bytes */
    LONGS_EQUAL(128, mr_machine_kv_bytes(&m));
    /* 4 * 32 * 2 layers * 10 queries * (20 + 5) FLOP against 30 * 128 bytes at one a nanosecond */
    LONGS_EQUAL(64000, mr_machine_prompt_attention_ns(&m, 10, 20, 1));
    LONGS_EQUAL(16000, mr_machine_prompt_attention_ns(&m, 10, 20, 4));
    LONGS_EQUAL(256 * 3 * 50, mr_machine_cross_attention_ns(&m, 3, 50));
    LONGS_EQUAL(128 * 77, mr_machine_decode_attention_ns(&m, 77));
    m.flops_per_s = 1e12; /* now the bytes take longer */
    LONGS_EQUAL(30 * 128, mr_machine_prompt_attention_ns(&m, 10, 20, 4));
}

TEST(Machine, TheBestStepHasTheLeastTimeAToken) {
    LONGS_EQUAL(100, mr_machine_best_step(&m));
    m.layer_ns[64] = 700; /* 10.9 ns a token; 100 tokens take 20 each */
    LONGS_EQUAL(64, mr_machine_best_step(&m));
    m.step_tokens = 50;
    LONGS_EQUAL(50, mr_machine_best_step(&m));
}

TEST(Machine, AWholePrompt) {
    m.flops_per_s = m.bytes_per_s = 1e30; /* no attention */
    /* 250 tokens on one node: 100, 100, 50 and one head */
    LONGS_EQUAL(2 * (2 * 2000 + 100) + 2 * 1500 + 50 + 500,
                mr_machine_prompt_ns(&m, 100, 250, 0, 0, 1));
    /* on two: 100 each, then 25 each */
    LONGS_EQUAL(2 * 2000 + 100 + 2 * 1250 + 25 + 500, mr_machine_prompt_ns(&m, 100, 250, 0, 0, 2));
    /* exactly one step */
    LONGS_EQUAL(2 * 2000 + 100 + 500, mr_machine_prompt_ns(&m, 100, 100, 0, 0, 1));
}

TEST(Machine, TensorParallel) {
    m.degree = 4;
    LONGS_EQUAL(16000, mr_machine_prompt_attention_ns(&m, 10, 20, 1));
    m.reduce_latency_ns = 900;
    m.reduce_ns_a_token = 1;
    LONGS_EQUAL((2 * 1070 + 7 + 500) / 4 + 1 + 900, mr_machine_step_ns(&m, 7, 1, 0)); /* 661.75 */
    m.reduce_ns_a_token = 200; /* the links are slower than the GPUs */
    LONGS_EQUAL(7 * 200 + 900, mr_machine_step_ns(&m, 7, 1, 0));
    /* attention hides the links too: 661.75 + 700 < 1,400 < 661.75 + 1,000 */
    LONGS_EQUAL(7 * 200 + 900, mr_machine_step_ns(&m, 7, 1, 700));
    LONGS_EQUAL(1662 + 900, mr_machine_step_ns(&m, 7, 1, 1000));
}
