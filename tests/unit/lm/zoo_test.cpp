/* The committed models against the logits that their training code computes (models/zoo/vectors).
 */
#include "tests/unit/lm/support.h"

#include <cmath>

#include "host/io/safetensors.h"
#include "host/lm/lm.h"

#include <CppUTest/TestHarness.h>

namespace {

const std::string zoo = "models/zoo/"; /* tests run from the top of the tree */

/* The last rows of the logits after the tokens, however the text is cut into steps. */
std::vector<float> logits(mr_lm *lm, const uint8_t *tokens, size_t count, size_t first_step) {
    std::vector<float> out(count * 256);
    mr_lm_restart(lm);
    CHECK_STATUS(MR_OK, mr_lm_forward(lm, tokens, first_step, true, out.data()));
    for (size_t t = first_step; t < count; t++)
        CHECK_STATUS(MR_OK, mr_lm_forward(lm, tokens + t, 1, true, &out[t * 256]));
    return out;
}

void check_model(const std::string &name, const mr_st_tensor *want, const mr_st_tensor *tokens) {
    const std::string path = zoo + (name == "base" ? "" : "variants/") + name + ".safetensors";
    const size_t count = tokens->count, rows = want->shape[0];
    mr_lm_model *m;
    CHECK_STATUS(MR_OK, mr_lm_model_open(path.c_str(), &m));
    for (const char *rgu : {"golden", (const char *)nullptr}) {
        mr_lm_options o = {};
        o.gpu = "cpu:";
        o.rgu = rgu;
        o.timeout_ns = 60000000000u;
        mr_lm *lm;
        CHECK_STATUS(MR_OK, mr_lm_create(m, &o, &lm));
        for (size_t first : {count, count - 3}) {
            std::vector<float> have = logits(lm, (const uint8_t *)tokens->data, count, first);
            double error = 0, size = 0;
            for (size_t i = 0; i < want->count; i++) {
                double w = mr_st_tensor_f64(want, i), h = have[(count - rows) * 256 + i];
                error += (w - h) * (w - h);
                size += w * w;
            }
            /* fp32 sums in another order; with the golden unit also its bounded rounding of weights
             */
            double bound = rgu && m->num_seeds ? 5e-3 : 2e-4;
            if (!(std::sqrt(error / size) < bound))
                FAIL(
                    (name + ": relative error " + std::to_string(std::sqrt(error / size))).c_str());
        }
        mr_lm_destroy(lm);
    }
    mr_lm_model_close(m);
}

} // namespace

TEST_GROUP(Zoo){};

TEST(Zoo, LogitsOfTheCommittedModels) {
    mr_safetensors *st;
    CHECK_STATUS(MR_OK, mr_safetensors_open((zoo + "vectors/logits.safetensors").c_str(), &st));
    const mr_st_tensor *tokens = mr_safetensors_find(st, "tokens");
    CHECK(tokens && tokens->dtype == MR_ST_U8);
    size_t models = 0;
    for (size_t i = 0; i < mr_safetensors_count(st); i++) {
        const mr_st_tensor *t = mr_safetensors_at(st, i);
        if (strncmp(t->name, "logits.", 7) != 0)
            continue;
        check_model(t->name + 7, t, tokens);
        models++;
    }
    CHECK(models >= 2);
    mr_safetensors_close(st);
}
