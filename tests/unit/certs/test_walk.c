/* SPDX-License-Identifier: Apache-2.0
 *
 * Explores every order in which two replicas, crashes and manual changes with kubectl can act on
 * one Secret and two webhook configurations.  In each state reached:
 *   - every replica that serves is trusted by every caBundle that steward wrote;
 *   - one replica alone reaches a settled state from here.
 * Certificates are numbers here, and time advances in ticks of one overlap.  The decision is the
 * real one.  The steps of a replica are those of certs/rotation.c, one request each. */
#include "certs/decide_priv.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define TICK ((int64_t)3600 * 1000000)
#define CA_LIFE 9 /* ticks; due at 6 */
#define LEAF_LIFE 6
#define CAS 8 /* numbers 1 to 7 */
#define REPLICAS 2
#define HOOKS 2 /* of STW_ROTATION_HOOKS; the others are not configured */

struct secret {
    uint8_t exists, ca, ca_key, next, next_key, old /* bits */, until, open, leaf, leaf_born;
};

struct hook {
    uint8_t exists, bundle; /* bits; 0: nothing of ours */
};

enum pc { DEAD, START, HOOK1, SECRET, SERVE, ACT, WRITE1, AGAIN0, AGAIN1, CREATE };

struct replica {
    uint8_t pc, served;
    struct hook hooks[HOOKS]; /* as read */
    uint8_t unknown[HOOKS];   /* the reading failed */
    uint8_t stale[HOOKS];     /* changed since it was read */
    struct secret secret;
    uint8_t secret_stale;
};

struct state {
    uint8_t now, events; /* events: manual changes and failures still to come */
    uint8_t born[CAS];
    struct secret secret;
    struct hook hooks[HOOKS];
    struct replica replicas[REPLICAS];
};

/* --- the set of states seen, which is also the queue */

static struct state *seen;
static uint32_t seen_count, seen_cap;
static uint32_t *slots, slot_count;

static uint32_t slot_of(const struct state *s)
{
    uint32_t at = (uint32_t)stw_hash_bytes(s, sizeof(*s)).lo & (slot_count - 1);
    while (slots[at] && memcmp(&seen[slots[at] - 1], s, sizeof(*s)) != 0)
        at = (at + 1) & (slot_count - 1);
    return at;
}

static void grow(void)
{
    seen_cap = seen_cap ? seen_cap * 2 : 1 << 12;
    slot_count = seen_cap * 2;
    seen = realloc(seen, seen_cap * sizeof(*seen));
    free(slots);
    slots = calloc(slot_count, sizeof(*slots));
    assert_non_null(seen);
    assert_non_null(slots);
    for (uint32_t i = 0; i < seen_count; i++)
        slots[slot_of(&seen[i])] = i + 1;
}

static void check(const struct state *s);

static void reach(const struct state *s)
{
    if (seen_count == seen_cap)
        grow();
    uint32_t at = slot_of(s);
    if (slots[at])
        return;
    seen[seen_count] = *s;
    slots[at] = ++seen_count;
    check(s);
}

/* --- certificates as numbers */

static uint8_t bit(uint8_t ca)
{
    return (uint8_t)(ca ? 1U << ca : 0U);
}

static bool expired(const struct state *s, uint8_t ca)
{
    return s->now >= s->born[ca] + CA_LIFE;
}

static uint8_t alive(const struct state *s, uint8_t bits)
{
    for (uint8_t i = 1; i < CAS; i++)
        if ((bits & bit(i)) && expired(s, i))
            bits &= (uint8_t)~bit(i);
    return bits;
}

static uint8_t secret_bits(const struct secret *x)
{
    return (uint8_t)(bit(x->ca) | bit(x->next) | x->old | bit(x->leaf));
}

/* Frees numbers that are not referenced any more and clears their birth.  Returns those in use. */
static uint8_t collect(struct state *s)
{
    uint8_t used = (uint8_t)(secret_bits(&s->secret) | s->hooks[0].bundle | s->hooks[1].bundle);
    for (unsigned i = 0; i < REPLICAS; i++) {
        const struct replica *r = &s->replicas[i];
        used |= (uint8_t)(bit(r->served) | secret_bits(&r->secret) | r->hooks[0].bundle |
                          r->hooks[1].bundle);
    }
    for (uint8_t i = 1; i < CAS; i++)
        if (!(used & bit(i)))
            s->born[i] = 0;
    return used;
}

static uint8_t new_ca(struct state *s)
{
    uint8_t used = collect(s);
    for (uint8_t i = 1; i < CAS; i++) {
        if (!(used & bit(i))) {
            s->born[i] = s->now;
            return i;
        }
    }
    fail_msg("more CAs at once than the walk has numbers for");
    return 0;
}

static struct stw_rotation_ca ca_facts(const struct state *s, uint8_t ca, uint8_t key)
{
    if (!ca || expired(s, ca))
        return (struct stw_rotation_ca){0};
    return (struct stw_rotation_ca){.cert = true,
                                    .key = key != 0,
                                    .not_before_us = s->born[ca] * TICK,
                                    .not_after_us = (s->born[ca] + CA_LIFE) * TICK};
}

/* Like stw_rota_examine. */
static uint8_t examine(const struct state *s, const struct replica *r, struct stw_rotation_facts *f)
{
    const struct secret *x = &r->secret;
    *f = (struct stw_rotation_facts){.ca = ca_facts(s, x->ca, x->ca_key),
                                     .next = ca_facts(s, x->next, x->next_key),
                                     .rescued = !ca_facts(s, x->ca, 0).cert && x->open,
                                     .old = alive(s, x->old) != 0,
                                     .old_until_us = x->until * TICK};
    uint8_t bundle = (uint8_t)(alive(s, x->old) | (f->ca.cert ? bit(x->ca) : 0) |
                               (stw_rotation_signs(&f->next) ? bit(x->next) : 0));
    if (x->leaf && s->now < x->leaf_born + LEAF_LIFE && !expired(s, x->leaf)) {
        int64_t end = STW_MIN(x->leaf_born + LEAF_LIFE, s->born[x->leaf] + CA_LIFE);
        f->leaf.pair = f->leaf.covers = true;
        f->leaf.by_ca = f->ca.cert && x->leaf == x->ca;
        f->leaf.not_before_us = x->leaf_born * TICK;
        f->leaf.not_after_us = end * TICK;
    }
    for (unsigned i = 0; i < HOOKS; i++) {
        f->hooks[i].state = r->unknown[i]        ? STW_HOOK_UNKNOWN
                            : r->hooks[i].exists ? STW_HOOK_FOUND
                                                 : STW_HOOK_NONE;
        f->hooks[i].exact = f->hooks[i].state == STW_HOOK_FOUND && r->hooks[i].bundle == bundle;
    }
    return bundle;
}

/* --- one step of a replica */

static void restart(struct replica *r)
{
    uint8_t served = r->served;
    *r = (struct replica){.pc = START, .served = served};
}

static void secret_changed(struct state *s, const struct replica *by)
{
    for (unsigned i = 0; i < REPLICAS; i++)
        if (&s->replicas[i] != by && s->replicas[i].pc > SECRET)
            s->replicas[i].secret_stale = 1;
}

/* Marks it stale for replicas that have read it; the others will read the new one. */
static void hook_changed(struct state *s, unsigned h, const struct replica *by)
{
    for (unsigned i = 0; i < REPLICAS; i++)
        if (&s->replicas[i] != by && s->replicas[i].pc > START + h)
            s->replicas[i].stale[h] = 1;
}

static void put_secret(struct state *s, struct replica *r, const struct secret *to)
{
    if (!r->secret_stale) {
        s->secret = *to;
        s->secret.exists = 1;
        secret_changed(s, r);
    }
    restart(r);
}

static bool write_hook(struct state *s, struct replica *r, unsigned h, uint8_t bundle)
{
    if (r->stale[h]) {
        restart(r);
        return false;
    }
    s->hooks[h].bundle = bundle;
    hook_changed(s, h, r);
    return true;
}

static void issue(const struct state *s, struct secret *x)
{
    x->leaf = x->ca;
    x->leaf_born = s->now;
}

static void stage(struct state *s, struct replica *r, bool lost)
{
    struct secret x = r->secret;
    uint8_t found = lost ? (uint8_t)(r->hooks[0].bundle | r->hooks[1].bundle) : 0;
    x.open = x.open || lost;
    x.until = lost ? 0 : x.until;
    x.old = alive(s, (uint8_t)(x.old | found));
    x.next = new_ca(s);
    x.next_key = 1;
    put_secret(s, r, &x);
}

static void promote(struct state *s, struct replica *r)
{
    struct secret x = r->secret;
    x.old = alive(s, (uint8_t)(x.old | bit(x.ca)));
    x.until = x.old ? (uint8_t)(s->now + 1) : 0;
    x.ca = x.next;
    x.ca_key = x.next_key;
    x.next = x.next_key = x.open = 0;
    issue(s, &x);
    put_secret(s, r, &x);
}

static void write_hooks(struct state *s, struct replica *r, const struct stw_rotation_facts *f,
                        uint8_t bundle)
{
    bool second = f->hooks[1].state == STW_HOOK_FOUND && !f->hooks[1].exact;
    if (f->hooks[0].state == STW_HOOK_FOUND && !f->hooks[0].exact) {
        if (write_hook(s, r, 0, bundle) && second)
            r->pc = WRITE1;
        else if (r->pc == ACT)
            restart(r);
        return;
    }
    (void)write_hook(s, r, 1, bundle);
    restart(r);
}

static const struct stw_rotation_times times = {.settle_us = 0, .overlap_us = TICK};

/* Returns false when there was nothing to do. */
static bool act(struct state *s, struct replica *r)
{
    struct stw_rotation_facts f;
    struct secret x = r->secret;
    uint8_t bundle = examine(s, r, &f);
    switch (stw_rotation_decide(&f, s->now * TICK, &times)) {
    case STW_ROTATION_STAGE:
        if (!f.ca.cert)
            r->pc = AGAIN0;
        else
            stage(s, r, false);
        return true;
    case STW_ROTATION_ISSUE:
        issue(s, &x);
        put_secret(s, r, &x);
        return true;
    case STW_ROTATION_WRITE:
        write_hooks(s, r, &f, bundle);
        return true;
    case STW_ROTATION_PROMOTE:
        promote(s, r);
        return true;
    case STW_ROTATION_STAMP:
        x.until = (uint8_t)(s->now + 1);
        x.open = 0;
        put_secret(s, r, &x);
        return true;
    case STW_ROTATION_RETIRE:
        x.old = x.until = x.open = 0;
        put_secret(s, r, &x);
        return true;
    case STW_ROTATION_NONE:
    case STW_ROTATION_ACTIONS:
        break;
    }
    restart(r);
    return false;
}

static void read_hook(const struct state *s, struct replica *r, unsigned h)
{
    r->hooks[h] = s->hooks[h];
    r->stale[h] = 0;
    r->unknown[h] = 0;
}

static bool step(struct state *s, struct replica *r)
{
    struct stw_rotation_facts f;
    uint8_t bundle;
    switch ((enum pc)r->pc) {
    case DEAD:
        break;
    case START:
        read_hook(s, r, 0);
        r->pc = HOOK1;
        break;
    case HOOK1:
        read_hook(s, r, 1);
        r->pc = SECRET;
        break;
    case SECRET:
        r->secret = s->secret;
        r->secret_stale = 0;
        r->pc = SERVE;
        break;
    case SERVE:
        bundle = examine(s, r, &f);
        if (f.leaf.pair && (bundle & bit(r->secret.leaf)))
            r->served = r->secret.leaf;
        r->pc = ACT;
        break;
    case ACT:
        return act(s, r);
    case WRITE1:
        (void)write_hook(s, r, 1, examine(s, r, &f));
        restart(r);
        break;
    case AGAIN0:
        read_hook(s, r, 0);
        r->pc = AGAIN1;
        break;
    case AGAIN1:
        read_hook(s, r, 1);
        r->pc = CREATE;
        break;
    case CREATE:
        stage(s, r, true);
        break;
    }
    return true;
}

/* --- other events */

static void spend(struct state s)
{
    s.events--;
    (void)collect(&s);
    reach(&s);
}

static void edit_secret(const struct state *s, const struct secret *to)
{
    struct state t = *s;
    t.secret = *to;
    secret_changed(&t, NULL);
    spend(t);
}

static void edit_hook(const struct state *s, unsigned h, struct hook to)
{
    struct state t = *s;
    t.hooks[h] = to;
    hook_changed(&t, h, NULL);
    spend(t);
}

static void fail_reading(const struct state *s, unsigned i, unsigned h)
{
    struct state t = *s;
    t.replicas[i].hooks[h] = (struct hook){0};
    t.replicas[i].unknown[h] = 1;
    t.replicas[i].pc++;
    spend(t);
}

static void by_hand(const struct state *s)
{
    struct secret x;
    if (s->secret.exists) {
        edit_secret(s, &(struct secret){0});
        x = s->secret, x.ca_key = 0, edit_secret(s, &x);
        x = s->secret, x.ca = 0, edit_secret(s, &x);
        x = s->secret, x.next_key = 0, edit_secret(s, &x);
        x = s->secret, x.leaf = x.leaf_born = 0, edit_secret(s, &x);
        x = s->secret, x.until = x.open = 0, edit_secret(s, &x);
    }
    for (unsigned h = 0; h < HOOKS; h++) {
        edit_hook(s, h, (struct hook){.exists = s->hooks[h].exists});
        edit_hook(s, h, (struct hook){.exists = !s->hooks[h].exists});
    }
    for (unsigned i = 0; i < REPLICAS; i++) {
        if (s->replicas[i].pc == START || s->replicas[i].pc == HOOK1)
            fail_reading(s, i, s->replicas[i].pc - START);
    }
}

/* A tick is a whole overlap, in which every live replica has found or issued a leaf. */
static void tick(const struct state *s, uint8_t end)
{
    struct state t = *s;
    if (s->now >= end)
        return;
    for (unsigned i = 0; i < REPLICAS; i++) {
        const struct replica *r = &s->replicas[i];
        if (r->pc != DEAD && (r->pc != START || !s->secret.leaf || r->served != s->secret.leaf))
            return;
    }
    t.now++;
    reach(&t);
}

static void crash_or_boot(const struct state *s, unsigned i)
{
    struct state t = *s;
    t.replicas[i] = (struct replica){.pc = s->replicas[i].pc == DEAD ? START : DEAD};
    (void)collect(&t);
    reach(&t);
}

/* --- invariants */

static void describe(const struct state *s, const char *what)
{
    print_error("%s: now %u, secret ca %u/%u next %u/%u old %02x until %u leaf %u, hooks %u:%02x "
                "%u:%02x, served %u %u, at %u %u\n",
                what, s->now, s->secret.ca, s->secret.ca_key, s->secret.next, s->secret.next_key,
                s->secret.old, s->secret.until, s->secret.leaf, s->hooks[0].exists,
                s->hooks[0].bundle, s->hooks[1].exists, s->hooks[1].bundle, s->replicas[0].served,
                s->replicas[1].served, s->replicas[0].pc, s->replicas[1].pc);
}

static bool trusted(const struct state *s)
{
    for (unsigned i = 0; i < REPLICAS; i++) {
        uint8_t served = s->replicas[i].served;
        for (unsigned h = 0; h < HOOKS; h++) {
            if (served && !expired(s, served) && s->hooks[h].exists && s->hooks[h].bundle &&
                !(s->hooks[h].bundle & bit(served)))
                return false;
        }
    }
    return true;
}

/* Whether replica 0, restarted and alone, reaches a settled state and serves. */
static bool recovers(const struct state *s)
{
    struct state t = *s;
    struct replica *r = &t.replicas[0];
    t.replicas[0] = (struct replica){.pc = START};
    t.replicas[1] = (struct replica){0};
    for (unsigned i = 0; i < 200; i++) {
        if (step(&t, r))
            continue;
        uint8_t want = (uint8_t)(bit(t.secret.ca) | alive(&t, t.secret.old));
        for (unsigned h = 0; h < HOOKS; h++)
            if (t.hooks[h].exists && t.hooks[h].bundle != want)
                return false;
        return t.secret.leaf && r->served == t.secret.leaf && t.secret.leaf == t.secret.ca &&
               !t.secret.next && trusted(&t);
    }
    return false;
}

static void check(const struct state *s)
{
    if (!trusted(s)) {
        describe(s, "somebody is not trusted");
        fail();
    }
    if (!recovers(s)) {
        describe(s, "does not recover");
        fail();
    }
}

static void walk(const struct state *from, uint8_t end)
{
    seen_count = seen_cap = 0;
    reach(from);
    for (uint32_t at = 0; at < seen_count; at++) {
        const struct state s = seen[at];
        for (unsigned i = 0; i < REPLICAS; i++) {
            struct state t = s;
            if (s.replicas[i].pc != DEAD) {
                (void)step(&t, &t.replicas[i]);
                (void)collect(&t);
                reach(&t);
            }
            crash_or_boot(&s, i);
        }
        tick(&s, end);
        if (s.events > 0)
            by_hand(&s);
    }
    print_message("%u states\n", seen_count);
    assert_true(seen_count > 1000);
    free(seen);
    free(slots);
    seen = NULL;
    slots = NULL;
}

static void test_model_of_first_start_is_safe(void **state)
{
    (void)state;
    struct state s = {0};
    s.hooks[0].exists = s.hooks[1].exists = 1;
    walk(&s, 1);
}

static void test_model_of_first_start_with_manual_changes_is_safe(void **state)
{
    (void)state;
    struct state s = {.events = 1};
    s.hooks[0].exists = s.hooks[1].exists = 1;
    s.replicas[0].pc = s.replicas[1].pc = START;
    walk(&s, 0);
}

/* CA 1 has a third of its life left and all is settled. */
static struct state settled(void)
{
    struct state s = {.now = CA_LIFE * 2 / 3};
    s.secret = (struct secret){
        .exists = 1, .ca = 1, .ca_key = 1, .leaf = 1, .leaf_born = (uint8_t)(s.now - 1)};
    for (unsigned h = 0; h < HOOKS; h++)
        s.hooks[h] = (struct hook){.exists = 1, .bundle = bit(1)};
    for (unsigned i = 0; i < REPLICAS; i++)
        s.replicas[i] = (struct replica){.pc = START, .served = 1};
    return s;
}

/* Runs to the end of the overlap and beyond.  If the replicas are dead for long enough, CA 1
 * expires. */
static void test_model_of_ca_rotation_is_safe(void **state)
{
    (void)state;
    struct state s = settled();
    walk(&s, (uint8_t)(s.now + 4));
}

static void test_model_of_ca_rotation_with_manual_changes_is_safe(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* single-threaded: TSan only makes it slow */
#endif
    struct state s = settled();
    s.events = 1;
    walk(&s, (uint8_t)(s.now + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_of_first_start_is_safe),
        cmocka_unit_test(test_model_of_first_start_with_manual_changes_is_safe),
        cmocka_unit_test(test_model_of_ca_rotation_is_safe),
        cmocka_unit_test(test_model_of_ca_rotation_with_manual_changes_is_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
