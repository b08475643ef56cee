/* SPDX-License-Identifier: Apache-2.0
 *
 * What the pods of a workload run: the digest behind each tag, where the administrator has listed the
 * registry.  Only images that each new pod pulls (imagePullPolicy: Always): of others a restart brings
 * no newer one. */
#include "kinds/eru/images.h"

#include "base/clock.h"
#include "kinds/common/product.h"
#include "kinds/eru/run_priv.h"
#include "registry/registry.h"

#define ASK_MS 10000 /* for all images of a workload */
#define HASHED_MAX_BYTES (64u << 10)

struct images {
    struct stw_registries *registries;
    struct stw_image_tag all[ERU_IMAGES_MAX]; /* sorted, each once */
    size_t count;
    bool more;
};

static int compare_tags(const struct stw_image_tag *a, const struct stw_image_tag *b)
{
    int order = strcmp(a->path, b->path);
    if (order == 0)
        order = strcmp(a->tag, b->tag);
    return order != 0 ? order : (a->registry > b->registry) - (a->registry < b->registry);
}

static void add_tag(struct images *n, const struct stw_image_tag *tag)
{
    size_t place = 0;
    while (place < n->count && compare_tags(&n->all[place], tag) < 0)
        place++;
    if (place < n->count && compare_tags(&n->all[place], tag) == 0)
        return;
    n->more |= n->count == ERU_IMAGES_MAX;
    if (n->count == ERU_IMAGES_MAX)
        return;
    memmove(&n->all[place + 1], &n->all[place], (n->count - place) * sizeof(n->all[0]));
    n->all[place] = *tag;
    n->count++;
}

static void add_containers(struct images *n, struct stw_json containers)
{
    struct stw_json key, container;
    struct stw_image_tag tag;
    char image[1024];
    stw_json_foreach (containers, key, container)
        if (stw_json_is(stw_json_get(container, "imagePullPolicy"), "Always") &&
            stw_json_strcpy(stw_json_get(container, "image"), image, sizeof(image)) == 0 &&
            stw_registries_find(n->registries, image, &tag))
            add_tag(n, &tag);
}

/* An error only if nothing can be said. */
static int read_digests(struct eru *e, const struct images *n, struct eru_inputs *ret,
                        struct stw_error *err)
{
    stw_autobuf struct stw_buf hashed = STW_BUF_INIT(HASHED_MAX_BYTES);
    uint64_t deadline = stw_now_ms(&stw_clock_system) + ASK_MS;
    char digest[STW_DIGEST_LEN];
    for (size_t i = 0; i < n->count; i++) {
        const struct stw_image_tag *tag = &n->all[i];
        struct stw_error why = {0};
        if (stw_registries_digest(stw_product_registries(e->run->env), tag, e->inputs_instant,
                                  deadline, digest, &why) != 0) {
            if (why.code == STW_ERR_CANCELLED) {
                *err = why;
                return -1;
            }
            stw_format(ret->unknown, sizeof(ret->unknown), "%.80s:%.40s: %.160s", tag->path,
                       tag->tag, why.text);
            return 0;
        }
        stw_buf_addf(&hashed, "%s:%s %s\n", tag->path, tag->tag, digest);
    }
    if (hashed.failed)
        return stw_fail_memory(err);
    stw_hash_format(stw_hash_bytes(stw_buf_str(&hashed), hashed.len), ret->image_hash);
    return 0;
}

int eru_images_read(struct eru *e, struct stw_json pod, struct eru_inputs *ret,
                    struct stw_error *err)
{
    struct images n = {.registries = stw_product_registries(e->run->env)};
    if (!n.registries)
        return 0;
    add_containers(&n, stw_json_get(pod, "containers"));
    add_containers(&n, stw_json_get(pod, "initContainers"));
    ret->images = n.count;
    if (n.count == 0)
        return 0;
    if (!n.more)
        return read_digests(e, &n, ret, err);
    stw_format(ret->unknown, sizeof(ret->unknown), "it has more than %d tags", ERU_IMAGES_MAX);
    return 0;
}
