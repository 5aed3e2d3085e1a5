/* SPDX-License-Identifier: Apache-2.0 */
/* Captured Ethernet frames: read whole through libpcap, written in one step. */
#ifndef HOST_CLI_PCAP_H
#define HOST_CLI_PCAP_H

#include "host/io/file.h"

typedef struct {
    uint64_t time; /* nanoseconds */
    uint8_t *data;
    size_t bytes;
} cli_frame;

typedef struct {
    cli_frame *frames; /* in the order of time; as in the file where times are equal */
    size_t count;
    bool nano; /* the file counts nanoseconds */
} cli_frames;

/*
 * Reads a capture, either endianness, micro- or nanoseconds. MR_BAD_FORMAT, naming the file, when
 * it is none, ends in the middle of something, has another link type than Ethernet, or holds a
 * frame that is empty or was cut while it was captured.
 */
mr_status cli_pcap_load(const char *path, cli_frames *out);
void cli_pcap_free(cli_frames *f);

/* A capture being written, little-endian; see mr_file for what becomes of it. */
typedef struct {
    mr_file file;
    bool nano;
} cli_pcap;

mr_status cli_pcap_create(const char *path, bool nano, cli_pcap *w);
mr_status cli_pcap_write(cli_pcap *w, uint64_t time, const uint8_t *data, size_t bytes);

#endif
