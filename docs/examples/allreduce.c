/* Four nodes add up a vector in the network; then one of them is silent.
 *
 *   allreduce [CLUSTER]     such as golden?nodes=4&loss=0.05 or sim:nic?nodes=4
 */
#include <stdio.h>

#include <millrace/nic.h>

enum { COUNT = 5000, MOST = 16 };

static float x[MOST][COUNT], sum[MOST][COUNT];

static mr_nic_call call_of(uint8_t rank) {
    mr_nic_call c = mr_nic_call_init(MR_NIC_ALLREDUCE, 1);
    c.dtype = MR_NIC_DT_FP32;
    c.rop = MR_NIC_ROP_SUM;
    c.count = COUNT;
    c.send = x[rank];
    c.recv = sum[rank];
    return c;
}

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, mr_last_error());
    return 1;
}

int main(int argc, char **argv) {
    const char *uri = argc > 1 ? argv[1] : "golden?nodes=4&loss=0.05";
    mr_nic *nic;
    mr_nic_info info;
    if (mr_nic_open(uri, &nic) != MR_OK || mr_nic_get_info(nic, &info) != MR_OK)
        return failed(uri);
    uint8_t ranks[MOST];
    mr_nic_call calls[MOST];
    uint32_t n = info.nodes < MOST ? info.nodes : MOST;
    for (uint32_t r = 0; r < n; r++) {
        ranks[r] = (uint8_t)r;
        for (int i = 0; i < COUNT; i++)
            x[r][i] = (float)(i % 100) + (float)r;
        calls[r] = call_of((uint8_t)r);
    }
    if (mr_nic_job_create(nic, 1, ranks, n, 0, 0) != MR_OK)
        return failed("job");
    if (mr_nic_run(nic, ranks, calls, n) != MR_OK)
        return failed("allreduce");
    mr_nic_get_info(nic, &info);
    printf("%u nodes: sum[0] = %g, sum[99] = %g after %llu cycles, %llu frames sent again\n", n,
           (double)sum[0][0], (double)sum[n - 1][99], (unsigned long long)info.cycles,
           (unsigned long long)info.resent);

    /* the last rank does not take part: everybody else is told who is missing */
    if (n > 1 && mr_nic_run(nic, ranks, calls, n - 1) != MR_OK)
        printf("without rank %u: %s\n", n - 1, mr_last_error());
    return mr_nic_close(nic) == MR_OK ? 0 : failed("close");
}
