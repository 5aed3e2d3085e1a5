// The block streams of two recorded traces through the directory in RTL: every block of every
// request is looked up, one that is not there is entered by host/nic/tables.c. With room for
// everything the hit rates are those of an infinite cache: 36.6 % of the conversation trace, 64.0 %
// of the synthetic one.
#include "tests/rtl/nic/dir_bench.hpp"

#include <fstream>
#include <string>
#include <unordered_set>

namespace {

struct Trace {
    const char *name;
    size_t blocks, different; // known counts of the whole trace
    const char *rate;
};

// The numbers of "hash_ids": [...] in one line of the trace.
std::vector<uint32_t> blocks_of(const std::string &line) {
    std::vector<uint32_t> ids;
    size_t at = line.find("\"hash_ids\"");
    if (at == std::string::npos)
        return ids;
    at = line.find('[', at);
    while (at != std::string::npos && line[at] != ']') {
        at++;
        char *end = nullptr;
        const unsigned long id = strtoul(&line[at], &end, 10);
        if (end == &line[at])
            break;
        ids.push_back((uint32_t)id);
        at = (size_t)(end - line.c_str());
        at = line.find_first_of(",]", at);
    }
    return ids;
}

// False, and says why, when something is not as it must be.
bool replay(const Trace &t, std::ifstream &file) {
    DirBench b(run_seed());
    mr_nic_dir *dir = mr_nic_dir_create(BUCKET_BITS);
    std::unordered_set<uint32_t> seen;
    size_t looked = 0, hits = 0, moves = 0;
    const char *wrong = nullptr;
    auto entry_of = [](uint32_t block) {
        mr_nic_dir_entry e = {};
        e.job = 1, e.block = block;
        e.owner = (uint8_t)(block % 8), e.named = 1u << e.owner, e.epoch = 1;
        e.bytes = 4096, e.page = block;
        return e;
    };
    for (std::string line; !wrong && std::getline(file, line);)
        for (const uint32_t block : blocks_of(line)) {
            const mr_nic_dir_entry e = entry_of(block);
            const Found f = b.look_up(DirBench::key(1, 0, block));
            looked++;
            hits += f.hit;
            if (f.hit != (seen.count(block) != 0))
                wrong = "a look-up and the set of blocks entered disagree";
            if (f.hit && !(f == found(e)))
                wrong = "an entry has another's values";
            if (f.hit)
                continue;
            mr_nic_desc steps[MR_NIC_DIR_STEPS];
            size_t n = 0;
            if (mr_nic_dir_put(dir, &e, false, steps, &n) != MR_OK)
                wrong = mr_last_error();
            for (size_t i = 0; i < n; i++)
                b.execute(steps[i]);
            moves += n - 1;
            seen.insert(block);
        }
    for (const uint32_t block : seen)
        if (!wrong && !(b.look_up(DirBench::key(1, 0, block)) == found(entry_of(block))))
            wrong = "an entry is not there at the end";
    char rate[16];
    snprintf(rate, sizeof rate, "%.1f %%", 100.0 * (double)hits / (double)(looked ? looked : 1));
    printf(
        "%s: %zu blocks, %zu different, hit rate %s (asked %s); %zu entries moved, %llu cycles\n",
        t.name, looked, seen.size(), rate, t.rate, moves, (unsigned long long)b.cycles);
    if (!wrong && (looked != t.blocks || seen.size() != t.different ||
                   hits != t.blocks - t.different || strcmp(rate, t.rate)))
        wrong = "not the known counts";
    if (!wrong && (b.late || b.broken || b.latency != 3))
        wrong = "an answer out of time, or an assertion of the design fired";
    mr_nic_dir_destroy(dir);
    if (wrong)
        printf("FAIL %s: %s\n", t.name, wrong);
    return !wrong;
}

} // namespace

int main() {
    const Trace traces[] = {{"mooncake_conversation", 288500, 182790, "36.6 %"},
                            {"mooncake_synthetic", 121877, 43924, "64.0 %"}};
    const char *data = getenv("MILLRACE_DATA");
    int passed = 0, failed = 0, skipped = 0;
    for (const Trace &t : traces) {
        const std::string path =
            std::string(data ? data : "../shared/data") + "/traces/" + t.name + ".jsonl";
        std::ifstream file(path);
        if (!file) {
            printf("skipped %s: %s is not there (MILLRACE_DATA says where the data are)\n", t.name,
                   path.c_str());
            skipped++;
        } else if (replay(t, file))
            passed++;
        else
            failed++;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
