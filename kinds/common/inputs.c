/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/common/inputs.h"

#include "base/util.h"
#include "schema/names.h"

#include <stdio.h>

#define CONFIGMAP "configmap"
#define SECRET "secret"

static size_t find_place(const struct stw_inputs *n, const char *name, bool *there)
{
    size_t low = 0, high = n->count;
    *there = false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(n->all[middle].name, name);
        if (order == 0) {
            *there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Skips what cannot be the name of an object: it could also break an index. */
static void add_name(struct stw_inputs *n, const char *kind, struct stw_json name, bool required)
{
    char text[254], whole[300];
    bool there;
    if (stw_json_strcpy(name, text, sizeof(text)) != 0 || !stw_is_dns1123_subdomain(text))
        return;
    stw_format(whole, sizeof(whole), "%s:%s", kind, text);
    size_t place = find_place(n, whole, &there);
    if (there) {
        n->all[place].required |= required;
        return;
    }
    n->more |= n->count == STW_INPUTS_MAX;
    if (n->count == STW_INPUTS_MAX)
        return;
    char *copy = strdup(whole);
    if (!copy) {
        n->failed = true;
        return;
    }
    memmove(&n->all[place + 1], &n->all[place], (n->count - place) * sizeof(n->all[0]));
    n->all[place] = (struct stw_input){copy, required};
    n->count++;
}

/* `from` names the object in its member `member`, and may say that it is optional. */
static void add_reference(struct stw_inputs *n, const char *kind, struct stw_json from,
                          const char *member)
{
    bool optional = stw_json_bool(stw_json_get(from, "optional"), false);
    add_name(n, kind, stw_json_get(from, member), !optional);
}

void stw_inputs_add_secret(struct stw_inputs *n, struct stw_json name)
{
    add_name(n, SECRET, name, true);
}

void stw_inputs_add_env(struct stw_inputs *n, struct stw_json env)
{
    struct stw_json key, entry;
    stw_json_foreach (env, key, entry) {
        struct stw_json from = stw_json_get(entry, "valueFrom");
        add_reference(n, CONFIGMAP, stw_json_get(from, "configMapKeyRef"), "name");
        add_reference(n, SECRET, stw_json_get(from, "secretKeyRef"), "name");
    }
}

static void add_containers(struct stw_inputs *n, struct stw_json containers)
{
    struct stw_json key, container, inner, source;
    stw_json_foreach (containers, key, container) {
        stw_inputs_add_env(n, stw_json_get(container, "env"));
        stw_json_foreach (stw_json_get(container, "envFrom"), inner, source) {
            add_reference(n, CONFIGMAP, stw_json_get(source, "configMapRef"), "name");
            add_reference(n, SECRET, stw_json_get(source, "secretRef"), "name");
        }
    }
}

static void add_volumes(struct stw_inputs *n, struct stw_json volumes)
{
    struct stw_json key, volume, inner, source;
    stw_json_foreach (volumes, key, volume) {
        add_reference(n, CONFIGMAP, stw_json_get(volume, "configMap"), "name");
        add_reference(n, SECRET, stw_json_get(volume, "secret"), "secretName");
        stw_json_foreach (stw_json_path(volume, "projected.sources"), inner, source) {
            add_reference(n, CONFIGMAP, stw_json_get(source, "configMap"), "name");
            add_reference(n, SECRET, stw_json_get(source, "secret"), "name");
        }
    }
}

void stw_inputs_add_pod(struct stw_inputs *n, struct stw_json pod)
{
    add_containers(n, stw_json_get(pod, "containers"));
    add_containers(n, stw_json_get(pod, "initContainers"));
    add_volumes(n, stw_json_get(pod, "volumes"));
}

void stw_inputs_done(struct stw_inputs *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->all[i].name);
    *n = (struct stw_inputs){0};
}

const char *stw_input_name(const struct stw_input *input)
{
    return strchr(input->name, ':') + 1;
}
