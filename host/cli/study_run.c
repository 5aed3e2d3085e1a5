/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of the study, several at a time; none depends on another. */
#include "host/cli/study.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const study *s;
    const mr_machine *machine;
    study_run *runs;
    size_t count, next, over;
    pthread_mutex_t lock;
    bool terminal;
} pool;

/* T GPUs as one node: compute, memory and links T-fold, and two all-reduces a layer. Reduce-scatter
   and all-gather straight between the members, each 2 (T-1) / T of the activations a GPU. */
static void tensor_parallel(const study *s, size_t degree, mr_machine *m, mr_cluster_config *c) {
    double vector = (double)(s->hidden * s->value_bytes);
    double wire = vector * (1 + (double)s->frame_overhead_bytes / (double)s->frame_payload_bytes);
    double hop = (double)(2 * s->link_latency_ns + s->switch_latency_ns + s->host_ns + s->route_ns);
    m->degree = degree;
    m->reduce_ns_a_token = 4.0 * (double)(degree - 1) / (double)degree * wire * (double)s->layers *
                           8 / (double)s->gbit_per_s;
    m->reduce_latency_ns = 4.0 * hop * (double)s->layers;
    c->nodes /= degree;
    c->byte_ps /= degree;
    c->capacity *= degree;
    c->group = c->group / degree ? c->group / degree : 1;
}

static int one(const study *s, const mr_machine *machine, study_run *r) {
    mr_machine m = *machine;
    uint64_t block = mr_machine_kv_bytes(&m) * s->block_tokens;
    mr_cluster_config c = {.machine = &m,
                           .policy = mr_kv_policy_find(r->policy),
                           .nodes = r->nodes,
                           .group = s->group,
                           .capacity = s->kv_bytes / block,
                           .block_tokens = s->block_tokens,
                           .step_requests = s->step_requests,
                           .byte_ps = 8000 / s->gbit_per_s,
                           .trunk_bytes = s->trunk_gbit_per_s,
                           .trunk_ps = 8000,
                           .link_ns = s->link_latency_ns,
                           .switch_ns = s->switch_latency_ns,
                           .host_ns = s->host_ns,
                           .route_ns = s->route_ns,
                           .merge_ns = s->merge_ns,
                           .frame_overhead = s->frame_overhead_bytes,
                           .frame_payload = s->frame_payload_bytes,
                           .kv_payload = s->kv_payload_bytes,
                           .blocks = r->requests->blocks,
                           .request = r->requests->request,
                           .requests = r->requests->requests,
                           .load = r->load};
    if (r->degree > 1) {
        c.policy = &mr_kv_prefix_cache;
        tensor_parallel(s, r->degree, &m, &c);
    }
    const char *why = mr_cluster_config_error(&c);
    if (why)
        return cli_error(CLI_FAILED, "the cluster of %s refuses %s", r->policy, why);
    if (!mr_cluster_run(&c, (const volatile int *)&cli_stop, &r->result, r->ttft_ns))
        return cli_stop ? CLI_INTERRUPTED : cli_error(CLI_FAILED, "out of memory");
    const mr_cluster_result *o = &r->result;
    r->impossible = o->refused == r->requests->requests;
    /* what must hold for any result to mean something */
    const char *broken = o->finished + o->refused != r->requests->requests
                             ? "a request neither finished nor was refused"
                         : o->sent_bytes != o->received_bytes ? "bytes were lost on the way"
                         : o->peak_blocks > c.capacity        ? "a node held more than it can"
                                                              : NULL;
    return broken ? cli_error(CLI_FAILED, "%s on %zu nodes at load %g: %s", r->policy, r->nodes,
                              r->load, broken)
                  : CLI_OK;
}

static void *worker(void *context) {
    pool *p = context;
    for (;;) {
        pthread_mutex_lock(&p->lock);
        size_t i = p->next < p->count ? p->next++ : p->count;
        pthread_mutex_unlock(&p->lock);
        if (i == p->count || cli_stop)
            return NULL;
        p->runs[i].code = one(p->s, p->machine, &p->runs[i]);
        pthread_mutex_lock(&p->lock);
        p->over++;
        if (p->terminal)
            fprintf(stderr, "\rnic study: %zu of %zu runs ", p->over, p->count);
        pthread_mutex_unlock(&p->lock);
    }
}

int study_execute(const study *s, const mr_machine *machine, study_run *runs, size_t count,
                  size_t jobs) {
    enum { MOST = 64 };
    pool p = {.s = s,
              .machine = machine,
              .runs = runs,
              .count = count,
              .terminal = isatty(STDERR_FILENO)};
    pthread_t thread[MOST];
    size_t threads = 0;
    pthread_mutex_init(&p.lock, NULL);
    while (threads + 1 < jobs && threads < MOST &&
           pthread_create(&thread[threads], NULL, worker, &p) == 0)
        threads++;
    worker(&p);
    while (threads--)
        pthread_join(thread[threads], NULL);
    pthread_mutex_destroy(&p.lock);
    if (p.terminal)
        fprintf(stderr, "\r%40s\r", "");
    if (cli_stop)
        return cli_error(CLI_INTERRUPTED, "nic study: interrupted");
    for (size_t i = 0; i < count; i++)
        if (runs[i].code != CLI_OK)
            return runs[i].code;
    return CLI_OK;
}
