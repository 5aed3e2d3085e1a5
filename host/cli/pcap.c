/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/pcap.h"

#include <errno.h>
#include <pcap.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

enum { SNAP_LENGTH = 262144 };

/* ---- reading --------------------------------------------------------------------------------- */

static mr_status grow(cli_frames *f, size_t *room, const char *path) {
    if (f->count < *room)
        return MR_OK;
    size_t more = *room ? 2 * *room : 256;
    cli_frame *frames = realloc(f->frames, more * sizeof *frames);
    if (!frames)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", path);
    f->frames = frames;
    *room = more;
    return MR_OK;
}

static mr_status read_frames(const char *path, pcap_t *p, cli_frames *out) {
    struct pcap_pkthdr *head;
    const u_char *data;
    size_t room = 0;
    int got;
    while ((got = pcap_next_ex(p, &head, &data)) == 1) {
        size_t number = out->count + 1;
        if (head->caplen < head->len)
            return mr_fail(MR_BAD_FORMAT, "%s: frame %zu is truncated: %u of %u bytes were kept",
                           path, number, head->caplen, head->len);
        if (!head->caplen)
            return mr_fail(MR_BAD_FORMAT, "%s: frame %zu is empty", path, number);
        mr_status e = grow(out, &room, path);
        uint8_t *copy = e == MR_OK ? malloc(head->caplen) : NULL;
        if (!copy)
            return e != MR_OK ? e : mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", path);
        memcpy(copy, data, head->caplen);
        /* with nanoseconds asked for, tv_usec holds them */
        out->frames[out->count++] =
            (cli_frame){(uint64_t)head->ts.tv_sec * 1000000000u + (uint64_t)head->ts.tv_usec, copy,
                        head->caplen};
    }
    if (got == PCAP_ERROR)
        return mr_fail(MR_BAD_FORMAT, "%s: frame %zu: %s", path, out->count + 1, pcap_geterr(p));
    return MR_OK;
}

/* Merge sort, which keeps the order of equal times. */
static void sort(cli_frame *f, size_t n, cli_frame *space) {
    if (n < 2)
        return;
    size_t half = n / 2, a = 0, b = half, k = 0;
    sort(f, half, space);
    sort(f + half, n - half, space);
    if (f[half - 1].time <= f[half].time)
        return;
    while (k < n)
        space[k++] = b == n || (a < half && f[a].time <= f[b].time) ? f[a++] : f[b++];
    memcpy(f, space, n * sizeof *f);
}

static bool counts_nanoseconds(FILE *f) {
    static const uint8_t little[4] = {0x4d, 0x3c, 0xb2, 0xa1}, big[4] = {0xa1, 0xb2, 0x3c, 0x4d};
    uint8_t magic[4] = {0};
    bool got = fread(magic, 1, 4, f) == 4;
    rewind(f);
    return got && (!memcmp(magic, little, 4) || !memcmp(magic, big, 4));
}

mr_status cli_pcap_load(const char *path, cli_frames *out) {
    char why[PCAP_ERRBUF_SIZE] = "";
    FILE *f = fopen(path, "rb");
    if (!f)
        return mr_fail(MR_IO_ERROR, "%s: cannot open: %s", path, strerror(errno));
    memset(out, 0, sizeof *out);
    out->nano = counts_nanoseconds(f);
    pcap_t *p = pcap_fopen_offline_with_tstamp_precision(f, PCAP_TSTAMP_PRECISION_NANO, why);
    if (!p) {
        fclose(f);
        return mr_fail(MR_BAD_FORMAT, "%s: not a capture file: %s", path, why);
    }
    mr_status e = MR_OK;
    if (pcap_datalink(p) != DLT_EN10MB) {
        const char *name = pcap_datalink_val_to_name(pcap_datalink(p));
        e = mr_fail(MR_BAD_FORMAT, "%s: link type %d (%s), must be Ethernet", path,
                    pcap_datalink(p), name ? name : "unknown");
    }
    if (e == MR_OK)
        e = read_frames(path, p, out);
    pcap_close(p); /* and the file */
    cli_frame *space = e == MR_OK ? malloc((out->count + 1) * sizeof *space) : NULL;
    if (e == MR_OK && !space)
        e = mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", path);
    if (e == MR_OK)
        sort(out->frames, out->count, space);
    else
        cli_pcap_free(out);
    free(space);
    return e;
}

void cli_pcap_free(cli_frames *f) {
    for (size_t i = 0; i < f->count; i++)
        free(f->frames[i].data);
    free(f->frames);
    memset(f, 0, sizeof *f);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void little32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

mr_status cli_pcap_create(const char *path, bool nano, cli_pcap *w) {
    uint8_t head[24] = {0};
    w->nano = nano;
    mr_status e = mr_file_create(path, &w->file);
    if (e != MR_OK)
        return e;
    little32(head, nano ? 0xa1b23c4d : 0xa1b2c3d4);
    little32(head + 4, 2 | 4u << 16); /* version 2.4 */
    little32(head + 16, SNAP_LENGTH);
    little32(head + 20, DLT_EN10MB);
    e = mr_file_write(&w->file, head, sizeof head);
    if (e != MR_OK)
        mr_file_abandon(&w->file);
    return e;
}

mr_status cli_pcap_write(cli_pcap *w, uint64_t time, const uint8_t *data, size_t bytes) {
    uint8_t head[16];
    uint64_t part = time % 1000000000u;
    little32(head, (uint32_t)(time / 1000000000u));
    little32(head + 4, (uint32_t)(w->nano ? part : part / 1000));
    little32(head + 8, (uint32_t)bytes);
    little32(head + 12, (uint32_t)bytes);
    mr_status e = mr_file_write(&w->file, head, sizeof head);
    return e != MR_OK ? e : mr_file_write(&w->file, data, bytes);
}
