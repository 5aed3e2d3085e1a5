#include "host/core/uri.h"

#include <ctype.h>
#include <string.h>

#include "host/core/error.h"

static int hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place. False at a bad escape or an escaped NUL. */
static bool unescape(char *s) {
    char *out = s;
    for (; *s; s++) {
        if (*s != '%') {
            *out++ = *s;
            continue;
        }
        int hi = hex(s[1]), lo = hi < 0 ? -1 : hex(s[2]);
        if (lo < 0 || hi * 16 + lo == 0)
            return false;
        *out++ = (char)(hi * 16 + lo);
        s += 2;
    }
    *out = 0;
    return true;
}

static mr_status parse_option(const char *text, mr_uri *uri, char *item) {
    char *value = strchr(item, '=');
    if (!value || value == item || !value[1])
        return mr_fail(MR_INVALID_ARGUMENT, "uri '%s': option '%s' is not of the form key=value",
                       text, item);
    *value++ = 0;
    if (!unescape(value))
        return mr_fail(MR_INVALID_ARGUMENT, "uri '%s': option '%s' has a bad %%XX escape", text,
                       item);
    for (size_t i = 0; i < uri->num_options; i++)
        if (!strcmp(uri->options[i].key, item))
            return mr_fail(MR_INVALID_ARGUMENT, "uri '%s': option '%s' is given twice", text, item);
    if (uri->num_options == MR_URI_MAX_OPTIONS)
        return mr_fail(MR_INVALID_ARGUMENT, "uri '%s': more than %d options", text,
                       MR_URI_MAX_OPTIONS);
    uri->options[uri->num_options].key = item;
    uri->options[uri->num_options++].value = value;
    return MR_OK;
}

mr_status mr_uri_parse(const char *text, mr_uri *uri) {
    uri->num_options = 0;
    if (!text)
        return mr_fail(MR_INVALID_ARGUMENT, "uri: is NULL");
    size_t length = strlen(text);
    if (length >= sizeof uri->text)
        return mr_fail(MR_INVALID_ARGUMENT, "uri: longer than %d bytes", MR_URI_MAX - 1);
    memcpy(uri->text, text, length + 1);
    char *colon = strchr(uri->text, ':');
    if (!colon || colon == uri->text)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "uri '%s': not of the form scheme:target, such as cpu: or sim:rgu", text);
    *colon = 0;
    uri->scheme = uri->text;
    uri->target = colon + 1;
    char *rest = strchr(colon + 1, '?');
    if (!rest)
        return MR_OK;
    *rest++ = 0;
    while (rest) {
        char *next = strchr(rest, '&');
        if (next)
            *next++ = 0;
        mr_status status = parse_option(text, uri, rest);
        if (status != MR_OK)
            return status;
        rest = next;
    }
    return MR_OK;
}
