/* SPDX-License-Identifier: Apache-2.0 */
#include "host/nic/config.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"
#include "host/io/file.h"

enum { FILE_LIMIT = 256 << 20, DEFAULT_PORT = 19794 };

/* Where in the file we are: the file's name and the path of the row, `jobs[1]`. */
typedef struct {
    const char *file;
    char row[64];
} place;

__attribute__((format(printf, 3, 4))) static mr_status bad(const place *p, const char *field,
                                                           const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return mr_fail(MR_BAD_FORMAT, "%s: %s%s%s: %s", p->file, p->row, *p->row && *field ? "." : "",
                   field, text);
}

/* Every key of the object is one of `known`, NULL at its end. */
static mr_status only(const place *p, json_t *object, const char *const *known) {
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return bad(p, "", "must be an object");
    json_object_foreach(object, key, value) {
        const char *const *k = known;
        while (*k && strcmp(*k, key) != 0)
            k++;
        if (!*k)
            return bad(p, key, "unknown key");
    }
    return MR_OK;
}

static mr_status whole(const place *p, const char *field, const json_t *j, uint64_t least,
                       uint64_t most, uint64_t *out) {
    if (!j)
        return bad(p, field, "is missing");
    if (!json_is_integer(j) || json_integer_value(j) < 0 ||
        (uint64_t)json_integer_value(j) < least || (uint64_t)json_integer_value(j) > most)
        return bad(p, field, "must be a whole number, %llu to %llu", (unsigned long long)least,
                   (unsigned long long)most);
    *out = (uint64_t)json_integer_value(j);
    return MR_OK;
}

/* The list under `key`; *size is 0 and *list NULL when it is left out and may be. */
static mr_status array(const place *p, json_t *object, const char *key, bool required, size_t most,
                       json_t **list, size_t *size) {
    *list = json_object_get(object, key);
    *size = 0;
    if (!*list)
        return required ? bad(p, key, "is missing") : MR_OK;
    if (!json_is_array(*list))
        return bad(p, key, "must be a list");
    *size = json_array_size(*list);
    if (*size > most)
        return bad(p, key, "%zu entries, at most %zu", *size, most);
    if (required && !*size)
        return bad(p, key, "is empty");
    return MR_OK;
}

static int hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static mr_status mac_of(const place *p, const json_t *j, uint8_t mac[6]) {
    const char *s = json_string_value(j);
    if (!j)
        return bad(p, "mac", "is missing");
    bool ok = s && strlen(s) == 17;
    for (int i = 0; ok && i < 6; i++) {
        int high = hex(s[3 * i]), low = hex(s[3 * i + 1]);
        ok = high >= 0 && low >= 0 && s[3 * i + 2] == (i < 5 ? ':' : 0);
        mac[i] = (uint8_t)(high << 4 | low);
    }
    if (!ok)
        return bad(p, "mac", "must be six bytes, like 02:00:00:00:00:0a");
    if (mac[0] & 1)
        return bad(p, "mac", "%s is a group address", s);
    if (!memcmp(mac, "\0\0\0\0\0", 6))
        return bad(p, "mac", "is zero");
    return MR_OK;
}

static mr_status ip_of(const place *p, const json_t *j, uint32_t *ip) {
    struct in_addr a;
    if (!j)
        return bad(p, "ip", "is missing");
    if (!json_is_string(j) || inet_pton(AF_INET, json_string_value(j), &a) != 1)
        return bad(p, "ip", "must be an IPv4 address, like 10.0.0.1");
    *ip = ntohl(a.s_addr);
    if (*ip == 0 || *ip >> 28 >= 0xE)
        return bad(p, "ip", "%s is not the address of a host", json_string_value(j));
    return MR_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b) {
    return (int)((const mr_nic_node_row *)a)->rank - (int)((const mr_nic_node_row *)b)->rank;
}

const mr_nic_node_row *mr_nic_config_node(const mr_nic_config *c, unsigned rank) {
    for (size_t i = 0; i < c->num_nodes; i++)
        if (c->nodes[i].rank == rank)
            return &c->nodes[i];
    return NULL;
}

static mr_status node_row(place *p, mr_nic_config *c, json_t *j) {
    static const char *const known[] = {"rank", "mac", "ip", "port", NULL};
    mr_nic_node_row *n = &c->nodes[c->num_nodes];
    uint64_t rank = 0, port = DEFAULT_PORT;
    const json_t *given = json_object_get(j, "port");
    mr_status e = only(p, j, known);
    if (e == MR_OK)
        e = whole(p, "rank", json_object_get(j, "rank"), 0, MR_NIC_MAX_NODES - 1, &rank);
    if (e == MR_OK)
        e = mac_of(p, json_object_get(j, "mac"), n->mac);
    if (e == MR_OK)
        e = ip_of(p, json_object_get(j, "ip"), &n->ip);
    if (e == MR_OK && given)
        e = whole(p, "port", given, 1, 65535, &port);
    if (e != MR_OK)
        return e;
    n->rank = (uint8_t)rank;
    n->port = (uint16_t)port;
    for (size_t i = 0; i < c->num_nodes; i++) {
        const mr_nic_node_row *o = &c->nodes[i];
        if (o->rank == n->rank)
            return bad(p, "rank", "%u is the rank of nodes[%zu] too", n->rank, i);
        if (o->ip == n->ip && o->port == n->port && !memcmp(o->mac, n->mac, 6))
            return bad(p, "mac", "the address of nodes[%zu] too", i);
    }
    c->num_nodes++;
    return MR_OK;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

const mr_nic_job_row *mr_nic_config_job(const mr_nic_config *c, unsigned job) {
    for (size_t i = 0; i < c->num_jobs; i++)
        if (c->jobs[i].job == job)
            return &c->jobs[i];
    return NULL;
}

static bool is_member(const mr_nic_job_row *j, unsigned rank) {
    return memchr(j->members, (int)rank, j->count) != NULL;
}

static int by_value(const void *a, const void *b) {
    return (int)*(const uint8_t *)a - (int)*(const uint8_t *)b;
}

/* A list of ranks without repeats, sorted. */
static mr_status ranks(const place *p, const char *field, json_t *list, size_t size, uint8_t *out,
                       const mr_nic_config *c) {
    for (size_t i = 0; i < size; i++) {
        char name[64];
        uint64_t rank;
        snprintf(name, sizeof name, "%s[%zu]", field, i);
        mr_status e = whole(p, name, json_array_get(list, i), 0, MR_NIC_MAX_NODES - 1, &rank);
        if (e != MR_OK)
            return e;
        if (memchr(out, (int)rank, i))
            return bad(p, name, "rank %u is in the list twice", (unsigned)rank);
        if (!mr_nic_config_node(c, (unsigned)rank))
            return bad(p, name, "rank %u is not in nodes", (unsigned)rank);
        out[i] = (uint8_t)rank;
    }
    return MR_OK;
}

static mr_status job_row(place *p, mr_nic_config *c, json_t *j) {
    static const char *const known[] = {"job", "members", "root", NULL};
    mr_nic_job_row *row = &c->jobs[c->num_jobs];
    uint64_t job = 0, root = 0;
    json_t *list;
    size_t count;
    mr_status e = only(p, j, known);
    if (e == MR_OK)
        e = whole(p, "job", json_object_get(j, "job"), 0, UINT16_MAX, &job);
    if (e == MR_OK)
        e = array(p, j, "members", true, MR_NIC_MAX_MEMBERS, &list, &count);
    if (e == MR_OK)
        e = ranks(p, "members", list, count, row->members, c);
    if (e == MR_OK)
        e = whole(p, "root", json_object_get(j, "root"), 0, MR_NIC_MAX_NODES - 1, &root);
    if (e != MR_OK)
        return e;
    row->job = (uint16_t)job;
    row->root = (uint8_t)root;
    row->count = (uint8_t)count;
    if (!is_member(row, row->root))
        return bad(p, "root", "rank %u is not a member", row->root);
    qsort(row->members, count, 1, by_value);
    for (size_t i = 0; i < c->num_jobs; i++)
        if (c->jobs[i].job == row->job)
            return bad(p, "job", "%u is the job of jobs[%zu] too", row->job, i);
    c->num_jobs++;
    return MR_OK;
}

/* ---- KV entries ------------------------------------------------------------------------------ */

static mr_status kv_member(const place *p, const char *field, const mr_nic_job_row *job,
                           unsigned rank) {
    return is_member(job, rank)
               ? MR_OK
               : bad(p, field, "rank %u is not a member of job %u", rank, job->job);
}

static mr_status kv_row(place *p, mr_nic_config *c, json_t *j) {
    static const char *const known[] = {"job",      "layer", "block", "owner",
                                        "replicas", "epoch", "bytes", NULL};
    mr_nic_kv_row *row = &c->kv[c->num_kv];
    uint64_t job = 0, layer = 0, block = 0, owner = 0, epoch = 0, bytes = 0;
    const json_t *given = json_object_get(j, "epoch");
    json_t *list;
    size_t count = 0;
    mr_status e = only(p, j, known);
    if (e == MR_OK)
        e = whole(p, "job", json_object_get(j, "job"), 0, UINT16_MAX, &job);
    if (e == MR_OK)
        e = whole(p, "layer", json_object_get(j, "layer"), 0, UINT16_MAX, &layer);
    if (e == MR_OK)
        e = whole(p, "block", json_object_get(j, "block"), 0, UINT32_MAX, &block);
    if (e == MR_OK)
        e = whole(p, "owner", json_object_get(j, "owner"), 0, MR_NIC_MAX_NODES - 1, &owner);
    if (e == MR_OK)
        e = array(p, j, "replicas", false, MR_NIC_MAX_MEMBERS, &list, &count);
    if (e == MR_OK)
        e = ranks(p, "replicas", list, count, row->replicas, c);
    if (e == MR_OK && given)
        e = whole(p, "epoch", given, 0, UINT32_MAX, &epoch);
    if (e == MR_OK)
        e = whole(p, "bytes", json_object_get(j, "bytes"), 1, UINT32_MAX, &bytes);
    if (e != MR_OK)
        return e;
    const mr_nic_job_row *known_job = mr_nic_config_job(c, (unsigned)job);
    if (!known_job)
        return bad(p, "job", "%u is not in jobs", (unsigned)job);
    e = kv_member(p, "owner", known_job, (unsigned)owner);
    for (size_t i = 0; i < count && e == MR_OK; i++) {
        char name[64];
        snprintf(name, sizeof name, "replicas[%zu]", i);
        if (row->replicas[i] == owner)
            return bad(p, name, "rank %u is the owner", (unsigned)owner);
        e = kv_member(p, name, known_job, row->replicas[i]);
    }
    if (e != MR_OK)
        return e;
    qsort(row->replicas, count, 1, by_value);
    row->job = (uint16_t)job;
    row->layer = (uint16_t)layer;
    row->block = (uint32_t)block;
    row->owner = (uint8_t)owner;
    row->count = (uint8_t)count;
    row->epoch = (uint32_t)epoch;
    row->bytes = (uint32_t)bytes;
    c->num_kv++;
    return MR_OK;
}

typedef struct {
    const mr_nic_kv_row *row;
    size_t index;
} kv_ref;

static int by_key(const void *a, const void *b) {
    const mr_nic_kv_row *x = ((const kv_ref *)a)->row, *y = ((const kv_ref *)b)->row;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return 0;
}

/* Two entries for one block would be two owners of it. */
static mr_status kv_distinct(const char *file, const mr_nic_config *c) {
    kv_ref *refs = calloc(c->num_kv + 1, sizeof *refs);
    mr_status e = MR_OK;
    if (!refs)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", file);
    for (size_t i = 0; i < c->num_kv; i++)
        refs[i] = (kv_ref){&c->kv[i], i};
    qsort(refs, c->num_kv, sizeof *refs, by_key);
    for (size_t i = 1; i < c->num_kv && e == MR_OK; i++) {
        if (by_key(&refs[i - 1], &refs[i]) != 0)
            continue;
        size_t a = refs[i - 1].index, b = refs[i].index;
        const mr_nic_kv_row *r = refs[i].row;
        e = mr_fail(MR_BAD_FORMAT,
                    "%s: kv[%zu].block: job %u, layer %u, block %u is the entry kv[%zu] too, with "
                    "owner %u there and %u here",
                    file, a > b ? a : b, r->job, r->layer, r->block, a > b ? b : a,
                    c->kv[a > b ? b : a].owner, c->kv[a > b ? a : b].owner);
    }
    free(refs);
    return e;
}

/* ---- the file -------------------------------------------------------------------------------- */

static mr_status rows(place *p, mr_nic_config *c, const char *key, json_t *list, size_t count,
                      mr_status (*row)(place *p, mr_nic_config *c, json_t *j)) {
    mr_status e = MR_OK;
    for (size_t i = 0; i < count && e == MR_OK; i++) {
        snprintf(p->row, sizeof p->row, "%s[%zu]", key, i);
        e = row(p, c, json_array_get(list, i));
    }
    p->row[0] = 0;
    return e;
}

static mr_status read_all(const char *file, json_t *root, mr_nic_config *c) {
    static const char *const known[] = {"nodes", "jobs", "kv", NULL};
    place p = {file, ""};
    json_t *nodes, *jobs, *kv;
    size_t num_nodes, num_jobs, num_kv;
    if (!json_is_object(root))
        return mr_fail(MR_BAD_FORMAT, "%s: must be a JSON object", file);
    mr_status e = only(&p, root, known);
    if (e == MR_OK)
        e = array(&p, root, "nodes", true, MR_NIC_MAX_NODES, &nodes, &num_nodes);
    if (e == MR_OK)
        e = array(&p, root, "jobs", false, MR_NIC_MAX_JOBS, &jobs, &num_jobs);
    if (e == MR_OK)
        e = array(&p, root, "kv", false, MR_NIC_MAX_KV, &kv, &num_kv);
    if (e != MR_OK)
        return e;
    c->nodes = calloc(num_nodes, sizeof *c->nodes);
    c->jobs = calloc(num_jobs + 1, sizeof *c->jobs);
    c->kv = calloc(num_kv + 1, sizeof *c->kv);
    if (!c->nodes || !c->jobs || !c->kv)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", file);
    e = rows(&p, c, "nodes", nodes, num_nodes, node_row);
    if (e == MR_OK)
        e = rows(&p, c, "jobs", jobs, num_jobs, job_row);
    if (e == MR_OK)
        e = rows(&p, c, "kv", kv, num_kv, kv_row);
    if (e == MR_OK)
        e = kv_distinct(file, c);
    if (e == MR_OK)
        qsort(c->nodes, c->num_nodes, sizeof *c->nodes, by_rank);
    return e;
}

mr_status mr_nic_config_parse(const char *name, const char *text, size_t size, mr_nic_config *out) {
    json_error_t error;
    mr_nic_config c = {0};
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return mr_fail(MR_BAD_FORMAT, "%s: line %d, column %d: %s", name, error.line, error.column,
                       error.text);
    mr_status e = read_all(name, root, &c);
    json_decref(root);
    if (e != MR_OK) {
        mr_nic_config_free(&c);
        return e;
    }
    *out = c;
    return MR_OK;
}

mr_status mr_nic_config_load(const char *path, mr_nic_config *out) {
    void *data;
    size_t size;
    mr_status e = mr_file_read(path, FILE_LIMIT, &data, &size);
    if (e != MR_OK)
        return e;
    e = mr_nic_config_parse(path, data, size, out);
    free(data);
    return e;
}

void mr_nic_config_free(mr_nic_config *c) {
    free(c->nodes);
    free(c->jobs);
    free(c->kv);
    memset(c, 0, sizeof *c);
}

uint64_t mr_nic_config_pages(const mr_nic_config *c, unsigned rank) {
    uint64_t pages = 0;
    for (size_t i = 0; i < c->num_kv; i++) {
        const mr_nic_kv_row *k = &c->kv[i];
        if (k->owner == rank || memchr(k->replicas, (int)rank, k->count))
            pages += ((uint64_t)k->bytes + MR_NIC_KV_PAGE - 1) / MR_NIC_KV_PAGE;
    }
    return pages;
}
