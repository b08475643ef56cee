/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "registry/registry_priv.h"

#define LIST_MAX_BYTES (16u << 10)
#define HTTP "http://"
#define HTTPS "https://"

static bool has_name(const struct stw_registries *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcasecmp(r->all[i].name, name) == 0)
            return true;
    return false;
}

/* Whether an image can have this domain. */
static bool is_name(const char *name)
{
    char text[STW_IMAGE_DOMAIN_LEN + 8];
    struct stw_image image;
    return stw_format_whole(text, sizeof(text), "%s/x", name) == 0 &&
           stw_image_parse(text, &image) == 0 && stw_streq(image.domain, name);
}

static int add_entry(struct stw_registries *r, char *text, struct stw_error *err)
{
    char *equals = strchr(text, '=');
    const char *host = equals ? equals + 1 : text, *scheme = HTTPS;
    if (strncmp(host, HTTP, strlen(HTTP)) == 0)
        scheme = HTTP;
    if (strncmp(host, scheme, strlen(scheme)) == 0)
        host += strlen(scheme);
    if (equals)
        *equals = '\0';
    const char *name = equals ? text : host;
    bool unnamed = equals && stw_streq(name, "default");
    if (!stw_image_is_domain(host) || !(unnamed || is_name(name)))
        return stw_fail(err, STW_ERR_INVALID,
                        "\"%.100s%s%.100s\" is not [NAME=][http://]HOST[:PORT]", text,
                        equals ? "=" : "", equals ? equals + 1 : "");
    if (has_name(r, unnamed ? "" : name))
        return stw_fail(err, STW_ERR_INVALID, "\"%.100s\" is there twice", name);
    if (r->count == REGISTRY_MAX)
        return stw_fail(err, STW_ERR_INVALID, "more than %d registries", REGISTRY_MAX);
    struct stw_registry *one = &r->all[r->count++];
    stw_format(one->name, sizeof(one->name), "%s", unnamed ? "" : name);
    stw_format(one->origin, sizeof(one->origin), "%s%s", scheme, host);
    return 0;
}

static int add_entries(struct stw_registries *r, const char *list, struct stw_error *err)
{
    stw_autofree char *copy = strdup(list);
    if (!copy)
        return stw_fail_memory(err);
    if (strlen(list) > LIST_MAX_BYTES)
        return stw_fail(err, STW_ERR_INVALID, "the list is too long");
    for (char *entry, *rest = copy; (entry = strsep(&rest, ","));)
        if (add_entry(r, entry, err) != 0)
            return -1;
    return 0;
}

/* Images without a domain have one for the runtime.  Both names lead to the same registry. */
static void mark_default(struct stw_registries *r)
{
    const char *origin = NULL;
    for (size_t i = 0; i < r->count; i++)
        if (!*r->all[i].name)
            origin = r->all[i].origin;
    for (size_t i = 0; origin && i < r->count; i++)
        r->all[i].by_default = strcasecmp(r->all[i].origin, origin) == 0;
}

int stw_registries_create(const char *list, struct stw_registries **ret, struct stw_error *err)
{
    struct stw_registries *r = calloc(1, sizeof(*r));
    if (!r)
        return stw_fail_memory(err);
    for (size_t i = 0; i < REGISTRY_MAX; i++) {
        (void)pthread_mutex_init(&r->all[i].lock, NULL);
        (void)stw_cond_init(&r->all[i].free);
    }
    if (list && *list && add_entries(r, list, err) != 0) {
        stw_registries_destroy(r);
        return -1;
    }
    mark_default(r);
    *ret = r;
    return 0;
}

void stw_registries_destroy(struct stw_registries *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < REGISTRY_MAX; i++) {
        curl_easy_cleanup(r->all[i].easy);
        (void)pthread_cond_destroy(&r->all[i].free);
        (void)pthread_mutex_destroy(&r->all[i].lock);
    }
    free(r);
}

bool stw_registries_find(struct stw_registries *r, const char *text, struct stw_image_tag *ret)
{
    struct stw_image image;
    if (!r || r->count == 0 || stw_image_parse(text, &image) != 0 || image.pinned)
        return false;
    for (size_t i = 0; i < r->count; i++) {
        struct stw_registry *one = &r->all[i];
        if (strcasecmp(one->name, image.domain) != 0)
            continue;
        bool library = one->by_default && !strchr(image.path, '/');
        *ret = (struct stw_image_tag){.registry = one};
        stw_format(ret->tag, sizeof(ret->tag), "%s", image.tag);
        return stw_format_whole(ret->path, sizeof(ret->path), "%s%s", library ? "library/" : "",
                                image.path) == 0;
    }
    return false;
}
