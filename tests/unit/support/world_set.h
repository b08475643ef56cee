/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of 64-bit hashes, for tests that walk through all states of a model.  Free `all` at the end.
 * Include cmocka.h before. */
#ifndef STW_TESTS_SUPPORT_WORLD_SET_H
#define STW_TESTS_SUPPORT_WORLD_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct set {
    uint64_t *all;
    size_t count, size; /* a power of two */
};

static inline void set_init(struct set *s)
{
    *s = (struct set){.size = 1024};
    s->all = calloc(s->size, sizeof(*s->all));
    assert_non_null(s->all);
}

static inline bool set_put(uint64_t *all, size_t size, uint64_t h)
{
    size_t at = h & (size - 1);
    for (; all[at]; at = (at + 1) & (size - 1))
        if (all[at] == h)
            return false;
    all[at] = h;
    return true;
}

static inline bool set_has(const struct set *s, uint64_t h)
{
    for (size_t at = h & (s->size - 1); s->all[at]; at = (at + 1) & (s->size - 1))
        if (s->all[at] == h)
            return true;
    return false;
}

/* False: already present. */
static inline bool set_add(struct set *s, uint64_t h)
{
    if (s->count * 2 >= s->size) {
        size_t size = s->size * 2;
        uint64_t *all = calloc(size, sizeof(*all));
        assert_non_null(all);
        for (size_t i = 0; i < s->size; i++)
            if (s->all[i])
                (void)set_put(all, size, s->all[i]);
        free(s->all);
        s->all = all;
        s->size = size;
    }
    bool added = set_put(s->all, s->size, h);
    s->count += added;
    return added;
}

#endif
