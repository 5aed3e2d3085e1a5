/* A device URI, taken apart:  scheme:target?key=value&key=value  with %XX escapes in values. */
#ifndef HOST_CORE_URI_H
#define HOST_CORE_URI_H

#include "drivers/driver.h"

enum { MR_URI_MAX_OPTIONS = 16, MR_URI_MAX = 1024 };

typedef struct mr_uri {
    const char *scheme, *target; /* inside text */
    mr_drv_option options[MR_URI_MAX_OPTIONS];
    size_t num_options;
    char text[MR_URI_MAX];
} mr_uri;

/* MR_INVALID_ARGUMENT with the message set when the text is no such URI or repeats an option. */
mr_status mr_uri_parse(const char *text, mr_uri *uri);

#endif
