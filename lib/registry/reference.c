/* SPDX-License-Identifier: Apache-2.0
 *
 * The grammar is that of stw_is_image; here a reference is split. */
#include "registry/reference.h"

#include "schema/names.h"

#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define HEX "0123456789abcdef"

bool stw_image_is_domain(const char *text)
{
    char image[STW_IMAGE_DOMAIN_LEN + 8];
    const char *bracket = strchr(text, ']');
    const char *colon = strchr(bracket ? bracket : text, ':');
    int64_t port;
    if (strpbrk(text, "/@") || stw_format_whole(image, STW_IMAGE_DOMAIN_LEN, "%s", text) != 0 ||
        stw_format_whole(image, sizeof(image), "%s/x", text) != 0 || !stw_is_image(image))
        return false;
    return !colon || stw_parse_int(colon + 1, 1, 65535, &port) == 0;
}

bool stw_image_is_digest(const char *text, size_t len)
{
    return len == STW_DIGEST_LEN - 1 && strncmp(text, "sha256:", 7) == 0 &&
           strspn(text + 7, HEX) >= len - 7;
}

static bool names_domain(const char *text, size_t len)
{
    return memchr(text, '.', len) || memchr(text, ':', len) || strcspn(text, UPPER) < len ||
           (len == 9 && strncmp(text, "localhost", len) == 0);
}

int stw_image_parse(const char *text, struct stw_image *ret)
{
    size_t len = strcspn(text, "/");
    *ret = (struct stw_image){.pinned = strchr(text, '@') != NULL};
    if (!stw_is_image(text))
        return -1;
    if (text[len] && names_domain(text, len)) {
        if (stw_format_whole(ret->domain, sizeof(ret->domain), "%.*s", (int)len, text) != 0)
            return -1;
        text += len + 1;
    }
    len = strcspn(text, ":@");
    stw_image_tag(text, ret->tag, sizeof(ret->tag));
    if (!*ret->tag)
        stw_format(ret->tag, sizeof(ret->tag), "latest");
    return stw_format_whole(ret->path, sizeof(ret->path), "%.*s", (int)len, text);
}
