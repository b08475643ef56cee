/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/reach.h"

#include "base/util.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <strings.h>

#define ENTRIES_MAX 256
#define ENTRY_MAX 300

/* An address as 16 bytes; IPv4 in its mapped form, so that both compare by one kind of prefix. */
struct ip {
    uint8_t b[16];
};

struct reach_entry {
    bool any, never, is_host;
    struct ip ip;
    unsigned bits;
    char host[256]; /* ".example.com" matches as a suffix */
};

struct stw_reach {
    char *text;
    size_t count;
    struct reach_entry all[];
};

/* --- addresses */

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static struct ip from_v4(const uint8_t v4[4])
{
    struct ip ip;
    memcpy(ip.b, mapped, sizeof(mapped));
    memcpy(ip.b + 12, v4, 4);
    return ip;
}

static int from_sockaddr(const struct sockaddr *a, struct ip *ret)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (a->sa_family == AF_INET) {
        memcpy(&v4, a, sizeof(v4));
        *ret = from_v4((const uint8_t *)&v4.sin_addr);
        return 0;
    }
    if (a->sa_family != AF_INET6)
        return -1;
    memcpy(&v6, a, sizeof(v6));
    memcpy(ret->b, &v6.sin6_addr, 16);
    return 0;
}

static bool has_ip_prefix(const struct ip *ip, const struct ip *with, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;
    if (memcmp(ip->b, with->b, bytes) != 0)
        return false;
    return rest == 0 || (uint8_t)((ip->b[bytes] ^ with->b[bytes]) >> (8 - rest)) == 0;
}

static bool is_v4(const struct ip *ip)
{
    return memcmp(ip->b, mapped, sizeof(mapped)) == 0;
}

struct address_range {
    uint8_t b[16];
    unsigned bits;
    enum stw_address_class class;
};

/* Ranges of IANA's special-purpose address registries in which backups are not stored. */
static const struct address_range v4_ranges[] = {
    {{0}, 8, STW_ADDRESS_UNSPECIFIED}, /* "this network": Linux treats 0.0.0.0 as loopback */
    {{127}, 8, STW_ADDRESS_LOOPBACK},
    {{169, 254}, 16, STW_ADDRESS_LINK_LOCAL},
    {{100, 100, 100, 200}, 32, STW_ADDRESS_METADATA}, /* Alibaba Cloud */
    {{192, 0, 0, 192}, 32, STW_ADDRESS_METADATA},     /* Oracle Cloud */
    {{168, 63, 129, 16}, 32, STW_ADDRESS_METADATA},   /* Azure */
    {{192, 0, 0}, 24, STW_ADDRESS_RESERVED},
    {{192, 88, 99}, 24, STW_ADDRESS_RESERVED}, /* 6to4 relays */
    {{224}, 4, STW_ADDRESS_MULTICAST},
    {{240}, 4, STW_ADDRESS_RESERVED},
};

static const struct address_range v6_ranges[] = {
    {{0}, 128, STW_ADDRESS_UNSPECIFIED},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, STW_ADDRESS_LOOPBACK},
    {{0xfe, 0x80}, 10, STW_ADDRESS_LINK_LOCAL},
    {{0xfe, 0xc0}, 10, STW_ADDRESS_LINK_LOCAL}, /* site-local, deprecated */
    {{0xff}, 8, STW_ADDRESS_MULTICAST},
    {{0xfd, 0, 0x0e, 0xc2}, 32, STW_ADDRESS_METADATA},                /* EC2: fd00:ec2::/32 */
    {{0xfd, 0x20, 0, 0xce}, 32, STW_ADDRESS_METADATA},                /* Google: fd20:ce::/32 */
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, STW_ADDRESS_RESERVED},          /* NAT64 of local use */
    {{1}, 8, STW_ADDRESS_RESERVED},                                   /* with 100::/64, discard */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, STW_ADDRESS_RESERVED},             /* documentation */
    {{0x5f}, 16, STW_ADDRESS_RESERVED},                               /* segment routing */
    {{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, STW_ADDRESS_RESERVED}, /* translated, RFC 2765 */
};

static bool in_range(const struct ip *ip, const struct address_range *r)
{
    struct ip with;
    if (is_v4(ip))
        return (with = from_v4(r->b), has_ip_prefix(ip, &with, r->bits + 96));
    memcpy(with.b, r->b, sizeof(with.b));
    return has_ip_prefix(ip, &with, r->bits);
}

/* IPv6 forms that embed an IPv4 address. */
static const struct {
    uint8_t b[16];
    unsigned bits, at;
    bool inverted;
} holders[] = {
    {{0}, 96, 12, false},                   /* compatible, deprecated */
    {{0, 0x64, 0xff, 0x9b}, 96, 12, false}, /* NAT64 */
    {{0x20, 0x02}, 16, 2, false},           /* 6to4 */
    {{0x20, 0x01, 0, 0}, 32, 12, true},     /* Teredo: the client's */
};

static bool held_v4(const struct ip *ip, struct ip *ret)
{
    static const uint8_t isatap[3] = {0, 0x5e, 0xfe};
    if (is_v4(ip))
        return false;
    for (size_t i = 0; i < STW_COUNT(holders); i++) {
        struct ip with;
        uint8_t v4[4];
        memcpy(with.b, holders[i].b, sizeof(with.b));
        if (!has_ip_prefix(ip, &with, holders[i].bits))
            continue;
        for (size_t k = 0; k < 4; k++)
            v4[k] = (uint8_t)(ip->b[holders[i].at + k] ^ (holders[i].inverted ? 0xff : 0));
        *ret = from_v4(v4);
        return true;
    }
    if ((ip->b[8] & ~2) != 0 || memcmp(ip->b + 9, isatap, sizeof(isatap)) != 0)
        return false;
    *ret = from_v4(ip->b + 12);
    return true;
}

static enum stw_address_class classify_ip(const struct ip *ip)
{
    const struct address_range *all = is_v4(ip) ? v4_ranges : v6_ranges;
    size_t count = is_v4(ip) ? STW_COUNT(v4_ranges) : STW_COUNT(v6_ranges);
    struct ip v4;
    for (size_t i = 0; i < count; i++)
        if (in_range(ip, &all[i]))
            return all[i].class;
    return held_v4(ip, &v4) ? classify_ip(&v4) : STW_ADDRESS_ORDINARY;
}

enum stw_address_class stw_address_classify(const struct sockaddr *a)
{
    struct ip ip;
    return from_sockaddr(a, &ip) == 0 ? classify_ip(&ip) : STW_ADDRESS_RESERVED;
}

const char *stw_address_class_name(enum stw_address_class c)
{
    static const char *const names[] = {
        [STW_ADDRESS_ORDINARY] = "ordinary",   [STW_ADDRESS_UNSPECIFIED] = "unspecified",
        [STW_ADDRESS_LOOPBACK] = "loopback",   [STW_ADDRESS_LINK_LOCAL] = "link-local",
        [STW_ADDRESS_MULTICAST] = "multicast", [STW_ADDRESS_METADATA] = "cloud metadata",
        [STW_ADDRESS_RESERVED] = "reserved",
    };
    static_assert(STW_COUNT(names) == STW_ADDRESS_CLASSES, "one name for each class");
    assert(c < STW_ADDRESS_CLASSES);
    return names[c];
}

/* --- the list */

static int parse_ip(char *text, struct reach_entry *e)
{
    uint8_t v4[4];
    int64_t bits = 0;
    char *slash = strchr(text, '/');
    if (slash)
        *slash = '\0';
    bool four = inet_pton(AF_INET, text, v4) == 1;
    if (four)
        e->ip = from_v4(v4);
    else if (inet_pton(AF_INET6, text, e->ip.b) != 1)
        return -1;
    e->bits = 128;
    if (!slash)
        return 0;
    if (stw_parse_int(slash + 1, 0, four ? 32 : 128, &bits) != 0)
        return -1;
    e->bits = (unsigned)bits + (four ? 96 : 0);
    return 0;
}

static int parse_host(const char *text, struct reach_entry *e)
{
    const char *from = strncmp(text, "*.", 2) == 0 ? text + 1 : text;
    size_t len = strlen(from);
    if (len == 0 || len >= sizeof(e->host) ||
        from[strspn(from, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")])
        return -1;
    e->is_host = true;
    memcpy(e->host, from, len + 1);
    return 0;
}

static int parse_entry(char *text, struct reach_entry *e)
{
    *e = (struct reach_entry){0};
    if (stw_streq(text, "*")) {
        e->any = true;
        return 0;
    }
    if (*text == '!') {
        e->never = true;
        return parse_ip(text + 1, e);
    }
    if (strpbrk(text, ":/") || text[strspn(text, "0123456789.")] == '\0')
        return parse_ip(text, e);
    return parse_host(text, e);
}

int stw_reach_parse(const char *text, struct stw_reach **ret, struct stw_error *err)
{
    struct stw_reach *r = calloc(1, sizeof(*r) + ENTRIES_MAX * sizeof(r->all[0]));
    char one[ENTRY_MAX], shown[ENTRY_MAX];
    if (!r || !(r->text = strdup(text))) {
        free(r);
        return stw_fail_memory(err);
    }
    while (*text) {
        size_t len = strcspn(text, ",");
        bool fits = len > 0 && len < sizeof(one) && r->count < ENTRIES_MAX;
        memcpy(one, text, fits ? len : 0);
        one[fits ? len : 0] = '\0';
        memcpy(shown, one, sizeof(shown));
        if (!fits || parse_entry(one, &r->all[r->count]) != 0) {
            stw_reach_destroy(r);
            return stw_fail(err, STW_ERR_INVALID,
                            "\"%s\" is not \"*\", a host, an address or a CIDR such as 10.0.0.0/8 "
                            "(and there may be %d entries)",
                            shown, ENTRIES_MAX);
        }
        r->count++;
        text += len + (text[len] == ',');
    }
    *ret = r;
    return 0;
}

void stw_reach_destroy(struct stw_reach *r)
{
    if (r)
        free(r->text);
    free(r);
}

const char *stw_reach_text(const struct stw_reach *r)
{
    return r ? r->text : NULL;
}

/* --- queries */

static bool is_listed_host(const struct reach_entry *e, const char *host, size_t len)
{
    size_t own = strlen(e->host);
    if (e->host[0] == '.')
        return len > own && strncasecmp(host + len - own, e->host, own) == 0;
    return len == own && strncasecmp(host, e->host, own) == 0;
}

bool stw_reach_host(const struct stw_reach *r, const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t len = strcspn(host, "/:?#@");
    if (len > 0 && host[len - 1] == '.')
        len--;
    for (size_t i = 0; r && i < r->count; i++)
        if (r->all[i].is_host && is_listed_host(&r->all[i], host, len))
            return true;
    return !r;
}

bool stw_reach_any(const struct stw_reach *r)
{
    for (size_t i = 0; r && i < r->count; i++)
        if (r->all[i].any)
            return true;
    return !r;
}

struct found {
    bool any, listed, exact, never;
};

static void match_entries(const struct stw_reach *r, const struct ip *ip, struct found *f)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct reach_entry *e = &r->all[i];
        f->any |= e->any;
        if (e->any || e->is_host || !has_ip_prefix(ip, &e->ip, e->bits))
            continue;
        f->never |= e->never;
        f->listed |= !e->never;
        f->exact |= !e->never && e->bits == 128;
    }
}

bool stw_reach_address(const struct stw_reach *r, const struct sockaddr *a)
{
    struct ip ip, v4;
    struct found f = {0}, inner = {0};
    if (!r)
        return true;
    if (from_sockaddr(a, &ip) != 0)
        return false;
    match_entries(r, &ip, &f);
    if (held_v4(&ip, &v4))
        match_entries(r, &v4, &inner); /* an excluded IPv4 address stays excluded when embedded */
    if ((f.never || inner.never) && !f.exact)
        return false;
    return f.listed || (f.any && classify_ip(&ip) == STW_ADDRESS_ORDINARY);
}
