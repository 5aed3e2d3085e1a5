/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* after <sys/ioctl.h>, whose types they need */
#include <linux/if.h>
#include <linux/if_tun.h>

#include "host/core/error.h"

static const char device[] = "/dev/net/tun";

mr_status tap_open(const char *name, int *fd) {
    struct ifreq r;
    memset(&r, 0, sizeof r);
    if (!*name || strlen(name) >= sizeof r.ifr_name || strpbrk(name, "/ %"))
        return mr_fail(MR_INVALID_ARGUMENT,
                       "nic tap: --interface %s: must be an interface name of 1 to %zu characters",
                       name, sizeof r.ifr_name - 1);
    int f = open(device, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (f < 0)
        return mr_fail(MR_UNAVAILABLE, "nic tap: %s: %s; the kernel's TAP driver is needed%s",
                       device, strerror(errno),
                       errno == EACCES || errno == EPERM ? ", and the right to use it" : "");
    r.ifr_flags = IFF_TAP | IFF_NO_PI;
    memcpy(r.ifr_name, name, strlen(name));
    if (ioctl(f, TUNSETIFF, &r) != 0) {
        int e = errno;
        close(f);
        return mr_fail(MR_UNAVAILABLE, "nic tap: cannot attach to the interface %s: %s%s", name,
                       strerror(e), e == EPERM ? "; CAP_NET_ADMIN is needed" : "");
    }
    *fd = f;
    return MR_OK;
}

bool tap_arp(const uint8_t *frame, size_t bytes, const uint8_t mac[6], uint32_t ip,
             uint8_t reply[60]) {
    static const uint8_t ask[10] = {0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 1};
    const uint8_t want[4] = {(uint8_t)(ip >> 24), (uint8_t)(ip >> 16), (uint8_t)(ip >> 8),
                             (uint8_t)ip};
    if (bytes < 42 || memcmp(frame + 12, ask, sizeof ask) != 0 || memcmp(frame + 38, want, 4) != 0)
        return false;
    memset(reply, 0, 60);
    memcpy(reply, frame + 22, 6); /* to the asker, by the hardware address that it gave */
    memcpy(reply + 6, mac, 6);
    memcpy(reply + 12, ask, sizeof ask);
    reply[21] = 2; /* a reply */
    memcpy(reply + 22, mac, 6);
    memcpy(reply + 28, want, 4);
    memcpy(reply + 32, frame + 22, 10);
    return true;
}
