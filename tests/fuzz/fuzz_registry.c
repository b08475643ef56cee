/* SPDX-License-Identifier: Apache-2.0
 *
 * What a registry wants and answers, and names of images.  Whatever they are, the URL of a token leads
 * to a host in the list, a token cannot end its header, and a tag is part of one URL. */
#include "registry/registry_priv.h"

#include <assert.h>

#define ORIGIN "https://auth.example.com"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_printable(const char *text)
{
    while (*text > 0x20 && *text < 0x7f)
        text++;
    return !*text;
}

static void check_challenge(const struct stw_registries *r, const char *text)
{
    struct registry_challenge c;
    char url[REGISTRY_URL_LEN];
    if (registry_challenge_parse(text, &c) != 0 || registry_token_url(r, &c, "team/app", url) != 0)
        return;
    assert(is_printable(url) && !strchr(url, '#'));
    assert(strncasecmp(url, ORIGIN, strlen(ORIGIN)) == 0);
    assert(strchr("/?", url[strlen(ORIGIN)]));
}

static void check_token(const char *text, size_t len)
{
    static char token[REGISTRY_TOKEN_LEN];
    if (registry_token_parse(text, len, token) == 0)
        assert(*token && is_printable(token));
}

static void check_image(struct stw_registries *r, const char *text)
{
    struct stw_image_tag tag;
    if (!stw_registries_find(r, text, &tag))
        return;
    assert(*tag.path && is_printable(tag.path) && !strstr(tag.path, "..") &&
           !strpbrk(tag.path, ":@?#%"));
    assert(*tag.tag && is_printable(tag.tag) && !strpbrk(tag.tag, "/:@?#%"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct stw_registries *r;
    struct stw_registries *other = NULL;
    stw_autofree char *text = malloc(size + 1);
    if (!text ||
        (!r && stw_registries_create("auth.example.com,default=auth.example.com", &r, NULL) != 0))
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_challenge(r, text);
    check_token(text, size);
    check_image(r, text);
    if (stw_registries_create(text, &other, NULL) == 0)
        stw_registries_destroy(other);
    return 0;
}
