/* SPDX-License-Identifier: Apache-2.0
 *
 * The reflector against a scripted server that misbehaves. */
#include "base/log.h"
#include "base/metrics.h"
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "fake.h"
#include "kube/cache/reflector_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct fake fake;
    struct stw_metrics *metrics;
    struct stw_informer *inf;
    pthread_mutex_t lock;
    struct stw_buf said; /* of the change callback: "+a", "*a", "-a", "!a" and a blank each */
    atomic_uint failed;  /* projections, as bits */
};

/* Data of 900 to 909 cannot be projected the first time, as if out of memory. */
static bool fails_once(struct fixture *f, struct stw_json data)
{
    int64_t n = 0;
    if (stw_json_int(data, &n) != 0 || n < 900 || n > 909)
        return false;
    unsigned bit = 1U << (n - 900);
    return !(atomic_fetch_or(&f->failed, bit) & bit);
}

static void project(void *ctx, struct stw_json object, struct stw_buf *out)
{
    size_t len;
    struct stw_json data = stw_json_get(object, "data");
    const char *raw = stw_json_raw(data, &len);
    if (fails_once(ctx, data)) {
        out->failed = true;
        return;
    }
    stw_buf_adds(out, "{\"d\":");
    stw_buf_add(out, raw ? raw : "0", raw ? len : 1);
    stw_buf_addc(out, '}');
}

static void changed(void *ctx, const char *key, const char *old_text, const char *new_text)
{
    struct fixture *f = ctx;
    (void)pthread_mutex_lock(&f->lock);
    char what = !old_text ? '+' : !new_text ? '-' : '*';
    stw_buf_addf(&f->said, "%c%s ", !old_text && !new_text ? '!' : what, key);
    (void)pthread_mutex_unlock(&f->lock);
}

static bool said(struct fixture *f, const char *want)
{
    (void)pthread_mutex_lock(&f->lock);
    bool is = stw_streq(stw_buf_str(&f->said), want);
    (void)pthread_mutex_unlock(&f->lock);
    return is;
}

/* A script: lines of "REQUEST | ANSWER", each a step of fake_api.py.  Answers:
 *
 *     list 5 a@1=1 b@2=1 more=x      a page at 5: objects (name@version=data), its continue token
 *     watch +d@6=1 *a@7=2 -c@9=1 ^20 hang
 *                                    added, modified, deleted, a bookmark; !410: an ERROR; hang: it
 *                                    stays open; wait:x: until fake_go x; {...}: an item of a
 *                                    stream of fake_api.py
 *     {'status':500}                 any other step of fake_api.py
 *
 * Before an object, or an event of one: '?': it is not JSON; '#': it is too large.
 *
 * times=0 at the end of a list or watch: without limit; cut: the connection is cut. */
static bool next_word(const char **at, const char *line_end, char *out, size_t size)
{
    while (*at < line_end && **at == ' ')
        ++*at;
    size_t len = 0;
    while (*at + len < line_end && (*at)[len] != ' ')
        len++;
    assert_true(len < size);
    memcpy(out, *at, len);
    out[len] = '\0';
    *at += len;
    return len > 0;
}

static const char *value_of(const char *word, const char *name)
{
    size_t len = strlen(name);
    return strncmp(word, name, len) == 0 ? word + len : NULL;
}

/* "a@1=1", in the namespace n, or "m/a@1=1" */
static void add_object(struct stw_buf *out, const char *word)
{
    const char *at = strchr(word, '@'), *is = strchr(word, '='), *slash = strchr(word, '/');
    assert_true(at && is > at);
    const char *name = slash ? slash + 1 : word;
    stw_buf_addf(out,
                 "{'metadata':{'namespace':'%.*s','name':'%.*s','resourceVersion':'%.*s'},"
                 "'data':%s}",
                 slash ? (int)(slash - word) : 1, slash ? word : "n", (int)(at - name), name,
                 (int)(is - at - 1), at + 1, is + 1);
}

/* As an item of a stream: the object, or one of its metadata that cannot be read. */
static void add_streamed_object(struct stw_buf *out, const char *word)
{
    stw_autobuf struct stw_buf object = STW_BUF_INIT(1000);
    bool bad = strchr("?#%", word[0]);
    add_object(&object, word + bad);
    if (!bad) {
        stw_buf_addf(out, "{'json':%s}", stw_buf_str(&object));
        return;
    }
    object.len = (size_t)(strstr(object.data, "'data':") - object.data) + strlen("'data':");
    stw_buf_adds(out, "{'raw':'");
    for (size_t i = 0; i < object.len; i++)
        stw_buf_addf(out, "%s%c", object.data[i] == '\'' ? "\\" : "", object.data[i]);
    stw_buf_adds(out, word[0] == '?'   ? "}'}"
                      : word[0] == '%' ? "[1'},{'repeat':',1','bytes':400000},{'raw':']}'}"
                                       : "\\''},{'repeat':'x','bytes':9000000},{'raw':'\\'}'}");
}

static void add_unreadable_event(struct stw_buf *out, const char *word, const char *type)
{
    char object[512];
    stw_format(object, sizeof(object), "%c%s", word[0], word + 2);
    stw_buf_addf(out, "{'raw':'{\\'type\\':\\'%s\\',\\'object\\':'},", type);
    add_streamed_object(out, object);
    stw_buf_adds(out, ",{'raw':'}\\n'}");
}

static void add_event(struct stw_buf *out, const char *word)
{
    static const char *const types[128] = {['+'] = "ADDED", ['*'] = "MODIFIED", ['-'] = "DELETED"};
    const char *wait = stw_streq(word, "hang") ? "never" : value_of(word, "wait:");
    if (wait) {
        stw_buf_addf(out, "{'wait':'%s'}", wait);
    } else if (word[0] == '^') {
        stw_buf_addf(out,
                     "{'json':{'type':'BOOKMARK','object':{'metadata':{'resourceVersion':'%s'}}}}",
                     word + 1);
    } else if (word[0] == '!') {
        stw_buf_addf(out,
                     "{'json':{'type':'ERROR','object':{'kind':'Status','reason':'Expired',"
                     "'code':%s}}}",
                     word + 1);
    } else if (word[0] == '{') {
        stw_buf_adds(out, word);
    } else if (strchr("?#%", word[0])) {
        assert_non_null(types[word[1] & 127]);
        add_unreadable_event(out, word, types[word[1] & 127]);
    } else {
        assert_non_null(types[word[0] & 127]);
        stw_buf_addf(out, "{'json':{'type':'%s','object':", types[word[0] & 127]);
        add_object(out, word + 1);
        stw_buf_adds(out, "}}");
    }
}

static void add_answer(struct stw_buf *out, const char *at, const char *line_end)
{
    char word[32768], rv[512] = "", more[512] = "", end[540] = "";
    const char *value;
    stw_autobuf struct stw_buf items = STW_BUF_INIT(1u << 20);
    (void)next_word(&at, line_end, word, sizeof(word));
    bool list = stw_streq(word, "list");
    bool streamed = list && (memchr(at, '?', (size_t)(line_end - at)) ||
                             memchr(at, '#', (size_t)(line_end - at)));
    assert_true(list || stw_streq(word, "watch"));
    if (list)
        (void)next_word(&at, line_end, rv, sizeof(rv));
    while (next_word(&at, line_end, word, sizeof(word))) {
        if ((value = value_of(word, "more="))) {
            stw_format(more, sizeof(more), "%.500s", value);
        } else if ((value = value_of(word, "times="))) {
            stw_format(end, sizeof(end), ",'times':%.500s", value);
        } else if (stw_streq(word, "cut")) {
            (void)snprintf(end, sizeof(end), ",'then':'cut'");
        } else {
            stw_buf_adds(&items, items.len == 0 ? "" : streamed ? ",{'raw':','}," : ",");
            (streamed ? add_streamed_object : list ? add_object : add_event)(&items, word);
        }
    }
    if (streamed)
        stw_buf_addf(out,
                     "'stream':[{'raw':'{\\'metadata\\':{\\'resourceVersion\\':\\'%s\\',"
                     "\\'continue\\':\\'%s\\'},\\'items\\':['},%s,{'raw':']}'}]%s}",
                     rv, more, stw_buf_str(&items), end);
    else if (list)
        stw_buf_addf(out, "'body':{'metadata':{'resourceVersion':'%s','continue':'%s'},'items':[",
                     rv, more);
    else
        stw_buf_adds(out, "'stream':[");
    if (streamed)
        return;
    stw_buf_adds(out, stw_buf_str(&items));
    stw_buf_addf(out, "]%s%s}", list ? "}" : "", end);
}

static void play(struct fake *server, const char *script)
{
    stw_autobuf struct stw_buf steps = STW_BUF_INIT(1u << 20);
    for (const char *line = script, *end; *line; line = end + (*end == '\n')) {
        end = strchrnul(line, '\n');
        const char *bar = strstr(line, " | ");
        assert_true(bar && bar < end);
        stw_buf_adds(&steps, steps.len > 0 ? ",{'match':'" : "[{'match':'");
        stw_buf_add(&steps, line, (size_t)(bar - line));
        stw_buf_adds(&steps, "',");
        if (bar[3] == '{')
            stw_buf_add(&steps, bar + 4, (size_t)(end - bar - 4));
        else
            add_answer(&steps, bar + 3, end);
    }
    stw_buf_addc(&steps, ']');
    fake_steps(server, stw_buf_str(&steps));
}

static void begin(struct fixture *f, const char *script, struct stw_informer_config config)
{
    static const char *const namespaces[] = {"n", NULL};
    struct stw_error err;
    *f = (struct fixture){.said = STW_BUF_INIT(1u << 20), .metrics = stw_metrics_create("steward")};
    (void)pthread_mutex_init(&f->lock, NULL);
    fake_start(&f->fake);
    play(&f->fake, script);
    config.resource = &stw_res_configmap;
    if (!config.namespaces)
        config.namespaces = namespaces;
    config.project = project;
    config.changed = changed;
    config.ctx = f;
    config.backoff_ms = 20;
    assert_int_equal(
        stw_informer_create(f->fake.client, &config, &stw_clock_system, f->metrics, &f->inf, &err),
        0);
    assert_int_equal(stw_informer_start(f->inf, &err), 0);
}

/* steward_watch_last_event_timestamp_seconds */
static double last_event_s(struct fixture *f)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1u << 16);
    stw_metrics_render(f->metrics, &text);
    const char *line = strstr(stw_buf_str(&text), "\nsteward_watch_last_event_timestamp_seconds{");
    assert_non_null(line);
    return strtod(strchr(line, '}') + 1, NULL);
}

static void end(struct fixture *f)
{
    stw_informer_destroy(f->inf);
    stw_metrics_destroy(f->metrics);
    fake_stop(&f->fake);
    stw_buf_done(&f->said);
    (void)pthread_mutex_destroy(&f->lock);
}

static void assert_has(struct fixture *f, const char *key, const char *text)
{
    struct stw_buf out = STW_BUF_INIT(1u << 20);
    assert_int_equal(stw_informer_get(f->inf, key, &out, NULL), text ? 0 : -1);
    if (text)
        assert_string_equal(stw_buf_str(&out), text);
    stw_buf_done(&out);
}

static void test_list_is_followed_by_a_watch(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "GET /api/v1/namespaces/n/configmaps.labelSelector=a%3Db&limit=2$ | list 5 a@1=1 b@2=1 "
          "more=to/ken\n"
          "limit=2&continue=to%2Fken$ | list 5 c@3=1\n"
          "watch=1&allowWatchBookmarks=true&timeoutSeconds=[3-5][0-9][0-9]&resourceVersion=5$ | "
          "watch +d@6=1 *a@7=2 *b@8=1 -c@9=1 ^20\n"
          "resourceVersion=20$ | watch hang\n",
          (struct stw_informer_config){.label_selector = "a=b", .page_size = 2});
    wait_until(fake_count(&f.fake, "resourceVersion=20") == 1);
    assert_true(said(&f, "+n/a +n/b +n/c +n/d *n/a -n/c "));
    assert_true(stw_informer_synced(f.inf));
    assert_int_equal(stw_informer_count(f.inf), 3);
    assert_has(&f, "n/a", "{\"d\":2}");
    assert_has(&f, "n/c", NULL);
    assert_int_equal(fake_count(&f.fake, "GET"), 4);
    end(&f);
}

/* 4 MiB hold six objects of 600 KiB, and as many small ones as a page may have. */
static void test_list_pages_shrink_for_large_objects(void **state)
{
    struct fixture f;
    stw_autobuf struct stw_buf script = STW_BUF_INIT(1u << 20);
    (void)state;
    stw_buf_adds(&script, "limit=100$ | {'body':{'metadata':{'resourceVersion':'5','continue':'a'},"
                          "'items':[{'metadata':{'namespace':'n','name':'large','resourceVersion':"
                          "'1'},'data':{'d':'");
    for (int i = 0; i < 600 << 10; i++)
        stw_buf_addc(&script, 'x');
    stw_buf_adds(&script, "'}}]}}\n"
                          "limit=6&continue=a$ | list 5 a@1=1 more=b\n"
                          "limit=500&continue=b$ | list 5 b@1=1\n"
                          "watch=1 | watch hang\n");
    begin(&f, stw_buf_str(&script), (struct stw_informer_config){0});
    wait_until(fake_count(&f.fake, "watch=1") == 1);
    assert_int_equal(stw_informer_count(f.inf), 3);
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 0);
    assert_true(stw_share_facts(STW_SHARE_ANSWERS).peak >= 600 << 10);
    end(&f);
    assert_int_equal(stw_share_facts(STW_SHARE_CACHES).used, 0);
}

/* Runs keep all of the share: a resource that is not read any more would concern all namespaces. */
static void test_large_object_is_read_while_memory_is_used(void **state)
{
    struct fixture f;
    stw_autobuf struct stw_buf script = STW_BUF_INIT(1u << 20);
    size_t limit = stw_share_limit(STW_SHARE_ANSWERS);
    (void)state;
    stw_memory_budget_set_share(STW_SHARE_ANSWERS, (size_t)4 << 20);
    stw_share_add(STW_SHARE_ANSWERS, (size_t)4 << 20);
    stw_buf_adds(&script, "limit=100$ | {'body':{'metadata':{'resourceVersion':'5'},"
                          "'items':[{'metadata':{'namespace':'n','name':'large','resourceVersion':"
                          "'1'},'data':{'d':'");
    for (int i = 0; i < 600 << 10; i++)
        stw_buf_addc(&script, 'x');
    stw_buf_adds(&script, "'}}]}}\n"
                          "watch=1 | watch hang\n");
    begin(&f, stw_buf_str(&script), (struct stw_informer_config){0});
    wait_until(fake_count(&f.fake, "watch=1") == 1);
    assert_int_equal(stw_informer_count(f.inf), 1);
    end(&f);
    stw_share_give_back(STW_SHARE_ANSWERS, (size_t)4 << 20);
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 0);
    stw_memory_budget_set_share(STW_SHARE_ANSWERS, limit);
}

#define LARGE(ns, middle)                                                                          \
    "/namespaces/" ns "/configmaps.limit=100$ | {'stream':[{'raw':'{\\'metadata\\':{"              \
    "\\'resourceVersion\\':\\'5\\'},\\'items\\':[{\\'metadata\\':{\\'namespace\\':\\'" ns          \
    "\\',\\'name\\':\\'large\\',\\'resourceVersion\\':\\'1\\'},\\'data\\':{\\'d\\':\\''}," middle  \
    "{'raw':'\\'}}]}'}]}\n"

/* Each is read once: a server that has to wait is not asked again. */
static void read_two_large_objects(const char *script, const char *first, const char *second,
                                   bool waits)
{
    static const char *const namespaces[] = {"n", "m", NULL};
    struct fixture f;
    size_t limit = stw_share_limit(STW_SHARE_ANSWERS);
    uint64_t waited = stw_share_facts(STW_SHARE_ANSWERS).waited;
    stw_memory_budget_set_share(STW_SHARE_ANSWERS, (size_t)4 << 20);
    begin(&f, script, (struct stw_informer_config){.namespaces = namespaces});
    wait_until(stw_share_facts(STW_SHARE_ANSWERS).used >= (size_t)3 << 20);
    fake_go(&f.fake, first);
    if (waits)
        wait_until(stw_share_facts(STW_SHARE_ANSWERS).waited > waited);
    fake_go(&f.fake, second);
    wait_until(fake_count(&f.fake, "watch=1") == 2);
    assert_int_equal(stw_informer_count(f.inf), 2);
    assert_int_equal(fake_count(&f.fake, "limit=100"), 2);
    end(&f);
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 0);
    stw_memory_budget_set_share(STW_SHARE_ANSWERS, limit);
}

#define WATCHES "watch=1 | watch hang\nwatch=1 | watch hang\n"

/* Of one that keeps changing, nearly always a part is there. */
static void test_large_objects_are_read_one_at_a_time(void **state)
{
    (void)state;
    read_two_large_objects(LARGE("n", "{'repeat':'x','bytes':3000000},{'wait':'n'},")
                               LARGE("m", "{'wait':'m'},{'repeat':'x','bytes':600000},") WATCHES,
                           "m", "n", true);
}

static void test_two_large_objects_do_not_wait_for_each_other(void **state)
{
    (void)state;
    read_two_large_objects(
        LARGE("n", "{'repeat':'x','bytes':1700000},{'wait':'n'},{'repeat':'x','bytes':1500000},")
            LARGE("m",
                  "{'repeat':'x','bytes':1700000},{'wait':'m'},{'repeat':'x','bytes':1500000},")
                WATCHES,
        "n", "m", false);
}

/* The deletion of an object that is not cached is reported only with tells_gone. */
static void test_deletion_of_uncached_object_is_reported_on_request(void **state)
{
    static const char *const script = "limit= | list 5 a@1=1\n"
                                      "watch=1 | watch -x@6=1 -a@7=1 -a@8=1 +d@9=1 hang\n";
    (void)state;
    for (int tells = 0; tells < 2; tells++) {
        struct fixture f;
        begin(&f, script, (struct stw_informer_config){.reports_gone = tells});
        wait_until(said(&f, tells ? "+n/a !n/x -n/a !n/a +n/d " : "+n/a -n/a +n/d "));
        end(&f);
    }
}

/* 410 as a response, and as an event: objects that vanished meanwhile are reported. */
static void test_expired_version_lists_again(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit= | list 5 a@1=1 b@2=1\n"
          "watch=1 | watch !410\n"
          "limit= | list 30 b@2=1 c@20=1\n"
          "watch=1.*=30 | {'status':410,'body':{'kind':'Status','reason':'Expired'}}\n"
          "limit= | list 40 c@35=2\n"
          "watch=1.*=40 | watch hang\n",
          (struct stw_informer_config){0});
    wait_until(fake_count(&f.fake, "resourceVersion=40") == 1);
    assert_true(said(&f, "+n/a +n/b +n/c -n/a *n/c -n/b "));
    end(&f);
}

/* An object for which there is no memory is not a deleted one: it is read again. */
static void test_object_without_memory_is_read_again(void **state)
{
    struct fixture f;
    struct stw_informer_facts facts;
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(1000);
    (void)state;
    begin(&f,
          "limit= | list 5 a@1=1 b@2=1\n"
          "watch=1 | watch !410\n"
          "limit= | list 30 a@20=900 b@2=1\n"
          "limit= | list 40 a@20=900 b@2=1\n"
          "resourceVersion=40$ | watch *b@41=2 *a@42=901 -b@43=3 hang\n"
          "resourceVersion=41$ | watch *a@42=901 -b@43=902 hang\n",
          (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a +n/b *n/a *n/b *n/a -n/b "));
    assert_has(&f, "n/a", "{\"d\":901}");
    stw_informer_facts(f.inf, &facts);
    assert_int_equal(facts.failures, 3); /* the 410, and two projections */
    stw_buf_adds(&answer, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\","
                          "\"resourceVersion\":\"50\"},\"data\":903}");
    stw_informer_saw(f.inf, &answer, NULL);
    assert_has(&f, "n/a", "{\"d\":901}");
    stw_informer_saw(f.inf, &answer, NULL);
    assert_has(&f, "n/a", "{\"d\":903}");
    end(&f);
}

/* The continue token expires: the list starts again, and no object counts as deleted before it
 * ends. */
static void test_expired_continue_token_lists_again(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit=1$ | list 5 a@1=1 more=x\n"
          "continue=x$ | {'status':410,'body':{'kind':'Status','reason':'Expired'}}\n"
          "limit=1$ | list 9 b@7=1 more=y\n"
          "continue=y$ | list 9 c@8=1\n"
          "watch=1.*=9 | watch hang\n",
          (struct stw_informer_config){.page_size = 1});
    wait_until(fake_count(&f.fake, "watch=1") == 1);
    assert_true(said(&f, "+n/a +n/b +n/c -n/a "));
    end(&f);
}

/* A server whose list goes on and on without objects is asked again later, as after other failures. */
static void test_endless_list_is_retried_later(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit=1$ | list 5 more=x\n"
          "continue=x$ | {'times':150,'body':{'metadata':{'resourceVersion':'5','continue':'x'},"
          "'items':[]}}\n"
          "limit=1$ | list 9 a@7=1\n"
          "watch=1.*=9 | watch hang\n",
          (struct stw_informer_config){.page_size = 1});
    wait_until(fake_count(&f.fake, "watch=1") == 1);
    assert_int_equal(fake_count(&f.fake, "continue=x"), 100);
    assert_true(said(&f, "+n/a "));
    end(&f);
}

/* As is one whose pages go round in a circle: without a word it would be blind for ever. */
static void test_circular_list_is_retried_later(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit=1$ | list 5 a@4=1 more=x\n"
          "continue=x$ | {'times':50,'body':{'metadata':{'resourceVersion':'5','continue':'x'},"
          "'items':[{'metadata':{'name':'a','namespace':'n','resourceVersion':'4'}}]}}\n"
          "limit=1$ | list 9 b@7=1\n"
          "watch=1.*=9 | watch hang\n",
          (struct stw_informer_config){.page_size = 1});
    wait_until(fake_count(&f.fake, "watch=1") == 1);
    assert_int_equal(fake_count(&f.fake, "continue=x"), 1);
    end(&f);
}

/* Cut in the middle of a string: the partial event is ignored, and the next watch resumes. */
static void test_truncated_event_is_ignored(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit= | list 5\n"
          "watch=1.*=5 | watch +a@6=1 "
          "{'raw':'{\\'type\\':\\'ADDED\\',\\'object\\':{\\'metadata\\':{\\'name\\':\\'b'} cut\n"
          "watch=1.*=6 | watch {'raw':'{\\'type\\':\\'MODIFIED\\',\\'object\\':{\\'data\\':\\'x'} "
          "{'raw':'y\\',\\'metadata\\':{\\'namespace\\':\\'n\\',\\'name\\':\\'a\\',\\'"
          "resourceVersion\\':\\'8\\'}}}\\n'} hang\n",
          (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a *n/a "));
    assert_has(&f, "n/a", "{\"d\":\"xy\"}");
    end(&f);
}

static void test_garbage_in_a_watch_lists_again(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit= | list 5\n"
          "watch=1.*=5 | watch +a@6=1 {'raw':'what\\n'}\n"
          "limit= | list 7 a@6=1\n"
          "watch=1.*=7 | watch {'json':{'type':'STRANGE','object':{}}} "
          "{'json':{'type':'ADDED','object':{'metadata':{}}}} {'json':{'type':'ADDED','object':7}} "
          "+b@8=1 hang\n",
          (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a +n/b "));
    end(&f);
}

/* Whether the object of this key cannot be read, for this reason. */
static bool is_unreadable(struct fixture *f, const char *key, const char *want)
{
    char why[200] = "";
    return stw_informer_unreadable(f->inf, key, why, sizeof(why)) && strstr(why, want);
}

static uint32_t count_unreadable(const struct fixture *f)
{
    struct stw_informer_facts facts;
    stw_informer_facts(f->inf, &facts);
    return facts.unreadable;
}

static void note_place(void *ctx, const char *key, const char *place, const char *why)
{
    (void)why;
    stw_buf_addf(ctx, "%s%s;", key ? key : "", place);
}

/* In a list: it is named, the others are read, and the watch begins. */
static void test_unreadable_objects_in_a_list_are_named(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit= | list 5 a@1=1 ?b@2=1 #c@3=1 %f@3=1 d@4=1\n"
          "watch=1.*=5$ | watch +e@6=1 hang\n",
          (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a +n/d +n/e "));
    assert_true(stw_informer_synced(f.inf));
    assert_true(is_unreadable(&f, "n/b", "invalid JSON at line 1"));
    assert_true(is_unreadable(&f, "n/c", "it has more than 8 MiB of JSON"));
    assert_true(is_unreadable(&f, "n/f", "too many values"));
    assert_false(stw_informer_unreadable(f.inf, "n/a", NULL, 0));
    assert_int_equal(count_unreadable(&f), 3);
    end(&f);
}

/* In a watch: it goes on, and resumes after them.  The last version that could be read stays, and is
 * announced again, so that who uses it sees the mark; they are gone when they are deleted. */
static void test_watch_continues_after_unreadable_events(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit= | list 5 a@1=1 b@2=1 c@3=1\n"
          "watch=1.*=5$ | watch ?*a@6=1 #*b@7=1 ?+d@8=1 #+e@9=1 %+f@9=1 +x@10=1 wait:deleted "
          "?-a@11=1 "
          "#-e@12=1 *d@13=1 #*c@14=1 %-f@14=1\n"
          "watch=1.*=14$ | watch +y@15=1 hang\n",
          (struct stw_informer_config){.reports_gone = true});
    wait_until(said(&f, "+n/a +n/b +n/c *n/a *n/b +n/x "));
    assert_true(is_unreadable(&f, "n/a", "invalid JSON at line 1"));
    assert_true(is_unreadable(&f, "n/b", "it has more than 8 MiB of JSON"));
    assert_true(is_unreadable(&f, "n/d", "invalid JSON at line 1"));
    assert_true(is_unreadable(&f, "n/e", "it has more than 8 MiB of JSON"));
    assert_true(is_unreadable(&f, "n/f", "too many values"));
    assert_has(&f, "n/a", "{\"d\":1}");
    assert_has(&f, "n/d", NULL);
    fake_go(&f.fake, "deleted");
    wait_until(said(&f, "+n/a +n/b +n/c *n/a *n/b +n/x -n/a !n/e +n/d *n/c !n/f +n/y "));
    assert_int_equal(count_unreadable(&f), 2);
    assert_true(is_unreadable(&f, "n/b", "more than") && is_unreadable(&f, "n/c", "more than"));
    end(&f);
}

/* A list that has an object in a version that cannot be read: it has not vanished.  What is no longer
 * in the list is forgotten. */
static void test_unreadable_objects_are_not_deleted(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit= | list 5 a@1=1 b@2=1 ?c@3=1\n"
          "watch=1 | watch !410\n"
          "limit= | list 30 ?a@20=1\n"
          "watch=1.*=30$ | watch !410\n"
          "limit= | list 40 a@35=2\n"
          "watch=1.*=40$ | watch hang\n",
          (struct stw_informer_config){0});
    wait_until(fake_count(&f.fake, "resourceVersion=40") == 1);
    assert_true(said(&f, "+n/a +n/b *n/a -n/b *n/a "));
    assert_int_equal(count_unreadable(&f), 0);
    end(&f);
}

/* No name can be found: it may be any object that is not in the list, so that none counts as
 * deleted. */
static void test_nameless_unreadable_object_deletes_nothing(void **state)
{
    struct fixture f;
    stw_autobuf struct stw_buf places = STW_BUF_INIT(1000);
    (void)state;
    begin(&f,
          "limit= | list 5 a@1=1 b@2=1\n"
          "watch=1 | watch !410\n"
          "limit= | {'stream':[{'raw':'{\\'metadata\\':{\\'resourceVersion\\':\\'9\\'},"
          "\\'items\\':[{:}]}'}]}\n"
          "watch=1.*=9$ | watch {'raw':'{\\'type\\':\\'ADDED\\',\\'object\\':}\\n'} -b@12=1 hang\n",
          (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a +n/b -n/b "));
    assert_has(&f, "n/a", "{\"d\":1}");
    assert_int_equal(stw_informer_each_unreadable(f.inf, note_place, &places), 0);
    assert_non_null(strstr(stw_buf_str(&places), "object 1 of a page of the list;"));
    assert_non_null(strstr(stw_buf_str(&places), "the event after resourceVersion 9;"));
    end(&f);
}

/* What Go writes and other readers refuse is read. */
static void test_unusual_go_json_is_read(void **state)
{
    struct fixture f;
    stw_autobuf struct stw_buf deep = STW_BUF_INIT(1u << 20), script = STW_BUF_INIT(1u << 20);
    (void)state;
    for (int i = 0; i < 9990; i++)
        stw_buf_addc(&deep, '[');
    for (int i = 0; i < 9990; i++)
        stw_buf_addc(&deep, ']');
    stw_buf_addf(
        &script,
        "limit= | list 5 a@1='\\u0000' b@2=100000000000000000000\n"
        "watch=1.*=5$ | watch *a@6='x\\u0000' +c@7=1e+30 "
        "{'raw':'{\\'type\\':\\'ADDED\\',\\'object\\':{\\'metadata\\':{\\'name\\':\\'d\\',"
        "\\'namespace\\':\\'n\\',\\'resourceVersion\\':\\'8\\'},\\'data\\':'} {'raw':'%s'} "
        "{'raw':'}}\\n'} hang\n",
        stw_buf_str(&deep));
    begin(&f, stw_buf_str(&script), (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a +n/b *n/a +n/c +n/d "));
    assert_has(&f, "n/a", "{\"d\":\"x\\u0000\"}");
    assert_has(&f, "n/b", "{\"d\":100000000000000000000}");
    assert_int_equal(count_unreadable(&f), 0);
    end(&f);
}

static void test_silent_watch_is_restarted(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit= | list 5\n"
          "watch=1.*=5 | watch ^6 hang\n"
          "watch=1.*=6 | watch +a@7=1 hang\n"
          "watch=1 | watch hang times=0\n",
          (struct stw_informer_config){.silence_ms = 200});
    wait_until(said(&f, "+n/a "));
    end(&f);
}

/* A list stalls before its last bytes: it is requested again, on another connection, with half the
 * objects in a page.  Hundreds of megabytes may not arrive in time. */
static void test_stalled_list_is_retried_with_smaller_pages(void **state)
{
    static const char *const sent[] = {
        "{", "{\\\"items\\\":[{\\\"metadata\\\":",
        "{\\\"metadata\\\":{\\\"resourceVersion\\\":\\\"5\\\"},\\\"items\\\":[]}"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(sent); i++) {
        char script[512];
        struct fixture f;
        (void)snprintf(script, sizeof(script),
                       "limit=100$ | {'stream':[{'raw':'%s'},{'wait':'never'}]}\n"
                       "limit=50$ | list 6 a@1=1\n"
                       "watch=1.*=6 | watch !410\n"
                       "limit=100$ | list 7 b@1=1\n"
                       "watch=1.*=7 | watch hang\n",
                       sent[i]);
        begin(&f, script, (struct stw_informer_config){.list_silence_ms = 200});
        wait_until(said(&f, "+n/a +n/b -n/a "));
        assert_int_equal(fake_count(&f.fake, "limit="), 3);
        end(&f);
    }
}

/* Headers, chunks and the last chunk arrive in pieces of a few bytes, one after the other. */
static void test_responses_in_small_pieces_are_read(void **state)
{
    static const unsigned sizes[] = {1, 2, 3, 7, 64};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(sizes); i++) {
        char script[1024];
        struct fixture f;
        (void)snprintf(script, sizeof(script),
                       "limit= | {'pace':[%u,1],'stream':[{'json':{'metadata':{'resourceVersion':"
                       "'5'},'items':[{'metadata':{'namespace':'n','name':'a','resourceVersion':"
                       "'1'},'data':1}]}}]}\n"
                       "watch=1 | {'pace':[%u,1],'stream':[{'json':{'type':'ADDED','object':{"
                       "'metadata':{'namespace':'n','name':'b','resourceVersion':'7'},'data':2}}},"
                       "{'wait':'never'}]}\n",
                       sizes[i], sizes[i]);
        begin(&f, script, (struct stw_informer_config){0});
        wait_until(said(&f, "+n/a +n/b "));
        assert_int_equal(fake_count(&f.fake, "limit="), 1);
        end(&f);
    }
}

static void test_transient_faults_are_retried(void **state)
{
    struct fixture f;
    char problem[200];
    (void)state;
    begin(&f,
          "limit= | {'status':500,'body':{'kind':'Status','message':'no store','code':500}}\n"
          "limit= | {'status':429,'headers':{'Retry-After':'1'}}\n"
          "limit= | list 5 a@1=1\n"
          "watch=1 | {'status':500}\n"
          "watch=1.*=5 | watch ^6 hang\n",
          (struct stw_informer_config){0});
    wait_until((stw_informer_problem(f.inf, problem, sizeof(problem)),
                stw_streq(problem, "configmaps: no store")));
    assert_false(stw_informer_synced(f.inf));
    wait_until((stw_informer_problem(f.inf, problem, sizeof(problem)), problem[0] == '\0'));
    assert_true(stw_informer_synced(f.inf));
    assert_int_equal(fake_count(&f.fake, "limit="), 3);
    end(&f);
}

/* 429 "storage is (re)initializing" right after a CRD was created must not cause a warning. */
static void test_initializing_storage_is_no_warning(void **state)
{
    struct fixture f;
    FILE *log = tmpfile();
    (void)state;
    assert_non_null(log);
    stw_log_setup(STW_LOG_TEXT, STW_LOG_WARN, fileno(log));
    begin(&f,
          "limit= | {'status':429}\n"
          "limit= | {'status':429}\n"
          "limit= | list 5 a@1=1\n"
          "watch=1 | watch hang\n",
          (struct stw_informer_config){0});
    wait_until(stw_informer_synced(f.inf));
    end(&f);
    stw_log_setup(STW_LOG_TEXT, STW_LOG_WARN, 2);
    assert_int_equal(lseek(fileno(log), 0, SEEK_END), 0);
    (void)fclose(log);
}

/* A page over the size limit is requested again, with half as many objects. */
static void test_oversized_page_is_halved(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit=4$ | {'status':413}\n"
          "limit=2$ | list 5 a@1=1\n"
          "watch=1 | watch hang\n",
          (struct stw_informer_config){.page_size = 4});
    wait_until(said(&f, "+n/a "));
    end(&f);
}

/* The store was restored from a backup: bookmarks have lower versions than the cache. */
static void test_restored_store_lists_again(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit= | list 50 a@40=1\n"
          "watch=1.*=50 | watch ^30 hang\n"
          "limit= | list 31 b@20=1\n"
          "watch=1.*=31 | watch hang\n",
          (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a +n/b -n/a "));
    end(&f);
}

static void test_own_writes_are_merged_with_events(void **state)
{
    struct fixture f;
    struct stw_buf answer = STW_BUF_INIT(1000);
    (void)state;
    begin(&f,
          "limit= | list 5 a@5=1\n"
          "watch=1 | watch wait:write *a@6=6 *a@8=8 +z@9=1 hang\n",
          (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a "));
    stw_buf_adds(&answer,
                 "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\",\"resourceVersion\":\"8\"},"
                 "\"data\":8}");
    stw_informer_saw(f.inf, &answer, NULL);
    assert_has(&f, "n/a", "{\"d\":8}");
    fake_go(&f.fake, "write");
    wait_until(said(&f, "+n/a +n/z "));
    assert_has(&f, "n/a", "{\"d\":8}");
    stw_informer_saw_delete(f.inf, "n/a", "8");
    assert_has(&f, "n/a", NULL);
    /* invalid JSON, and objects outside the namespaces, change nothing */
    stw_buf_clear(&answer);
    stw_buf_adds(&answer, "{\"metadata\":");
    stw_informer_saw(f.inf, &answer, NULL);
    stw_buf_clear(&answer);
    stw_buf_adds(
        &answer,
        "{\"metadata\":{\"namespace\":\"other\",\"name\":\"a\",\"resourceVersion\":\"9\"}}");
    stw_informer_saw(f.inf, &answer, NULL);
    assert_int_equal(stw_informer_count(f.inf), 1);
    stw_buf_done(&answer);
    end(&f);
}

static void test_own_write_during_a_list_is_kept(void **state)
{
    struct fixture f;
    struct stw_buf answer = STW_BUF_INIT(1000);
    (void)state;
    begin(&f,
          "limit=1$ | list 5 a@1=1\n"
          "watch=1.*=5 | watch !410\n"
          "limit=1$ | list 20 a@1=1 more=x\n"
          "continue=x$ | {'stream':[{'wait':'write'},"
          "{'json':{'metadata':{'resourceVersion':'20'},'items':[]}}]}\n"
          "watch=1.*=20 | watch +new@30=3 hang\n",
          (struct stw_informer_config){.page_size = 1});
    wait_until(fake_count(&f.fake, "continue=x") == 1);
    stw_buf_adds(&answer,
                 "{\"metadata\":{\"namespace\":\"n\",\"name\":\"new\",\"resourceVersion\":\"30\"},"
                 "\"data\":3}");
    stw_informer_saw(f.inf, &answer, NULL);
    fake_go(&f.fake, "write");
    wait_until(fake_count(&f.fake, "resourceVersion=20") == 1);
    assert_true(said(&f, "+n/a "));
    assert_has(&f, "n/new", "{\"d\":3}");
    stw_buf_done(&answer);
    end(&f);
}

static void test_several_namespaces_are_watched(void **state)
{
    static const char *const namespaces[] = {"n", "m", NULL};
    struct fixture f;
    (void)state;
    begin(&f,
          "/n/configmaps.limit= | {'stream':[{'wait':'n'}],'then':'cut'}\n"
          "/m/configmaps.limit= | list 5 m/a@1=1\n"
          "/n/configmaps.limit= | list 5 a@1=1\n"
          "watch=1 | watch hang times=0\n",
          (struct stw_informer_config){.namespaces = namespaces});
    wait_until(said(&f, "+m/a "));
    assert_false(stw_informer_synced(f.inf));
    assert_true(last_event_s(&f) == 0); /* of the one that has never answered */
    fake_go(&f.fake, "n");
    wait_until(said(&f, "+m/a +n/a "));
    wait_until(stw_informer_synced(f.inf));
    wait_until(last_event_s(&f) > 0);
    end(&f);
}

/* Destroyed at every stage, and after the client was cancelled. */
static void test_informer_ends_at_any_stage(void **state)
{
    static const char *const scripts[] = {
        "limit= | {'then':'stall'}\n",
        "limit= | {'status':500,'times':0}\n",
        "limit= | list 5\nwatch=1 | watch hang\n",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(scripts); i++) {
        struct fixture f;
        begin(&f, scripts[i], (struct stw_informer_config){0});
        wait_until(fake_count(&f.fake, i == 2 ? "watch=1" : "limit=") > 0);
        if (i == 1)
            stw_client_cancel(f.fake.client);
        end(&f);
    }
}

/* Writers on other threads while the watch delivers events: for TSan. */
static void *write_along(void *arg)
{
    struct fixture *f = arg;
    for (int i = 0; i < 300; i++) {
        struct stw_buf o = STW_BUF_INIT(1000), out = STW_BUF_INIT(1u << 20);
        stw_buf_addf(
            &o,
            "{\"metadata\":{\"namespace\":\"n\",\"name\":\"k%d\",\"resourceVersion\":\"%d\"},"
            "\"data\":%d}",
            i % 7, 1000 + i, i);
        stw_informer_saw(f->inf, &o, NULL);
        (void)stw_informer_get(f->inf, "n/k1", &out, NULL);
        stw_buf_clear(&out);
        stw_informer_keys(f->inf, NULL, &out);
        if (i % 11 == 0)
            stw_informer_saw_delete(f->inf, "n/k3", "1300");
        stw_buf_done(&o);
        stw_buf_done(&out);
    }
    return NULL;
}

static void test_informer_serves_many_threads(void **state)
{
    struct fixture f;
    pthread_t t[3];
    struct stw_buf script = STW_BUF_INIT(1u << 20);
    (void)state;
    stw_buf_adds(&script, "limit= | list 5 k1@1=1\nwatch=1 | watch");
    for (int i = 0; i < 500; i++)
        stw_buf_addf(&script, " %ck%d@%d=%d", i % 13 == 0 ? '-' : '*', i % 7, 900 + i, i);
    stw_buf_adds(&script, " +last@5000=1 hang\n");
    begin(&f, stw_buf_str(&script), (struct stw_informer_config){0});
    for (size_t i = 0; i < STW_COUNT(t); i++)
        assert_int_equal(pthread_create(&t[i], NULL, write_along, &f), 0);
    for (size_t i = 0; i < STW_COUNT(t); i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    struct stw_buf out = STW_BUF_INIT(1u << 20);
    wait_until(stw_informer_get(f.inf, "n/last", &out, NULL) == 0);
    stw_buf_done(&out);
    stw_buf_done(&script);
    end(&f);
}

/* The version that the server has is listed and watched.  Discovery is repeated when a watch ends;
 * there is a new list only if the version changed. */
static void test_server_version_of_a_resource_is_used(void **state)
{
    static const struct stw_resource v2 = {"autoscaling", "v2", "HorizontalPodAutoscaler",
                                           "horizontalpodautoscalers", true},
                                     v1 = {"autoscaling", "v1", "HorizontalPodAutoscaler",
                                           "horizontalpodautoscalers", true};
    static const struct stw_resource *const both[] = {&v2, &v1, NULL};
    struct fixture f;
    (void)state;
    begin(&f,
          "GET /apis/autoscaling$ | {'status':503}\n"
          "GET /apis/autoscaling$ | {'body':{'versions':[{'version':'v0'}]}}\n"
          "GET /apis/autoscaling$ | {'times':2,'body':{'versions':[{'version':'v1'}]}}\n"
          "/autoscaling/v1/namespaces/n/horizontalpodautoscalers.limit | list 5 a@1=1\n"
          "/autoscaling/v1/.*resourceVersion=5$ | watch ^6\n"
          "/autoscaling/v1/.*resourceVersion=6$ | watch wait:up ^7\n"
          "GET /apis/autoscaling$ | {'body':{'versions':[{'version':'v1'},{'version':'v2'}]}}\n"
          "/autoscaling/v2/namespaces/n/horizontalpodautoscalers.limit | list 9 b@8=1\n"
          "/autoscaling/v2/.*resourceVersion=9$ | watch hang\n",
          (struct stw_informer_config){.alternatives = both});
    assert_ptr_equal(stw_informer_resource(f.inf), &v2);
    wait_until(fake_count(&f.fake, "resourceVersion=6") == 1);
    assert_ptr_equal(stw_informer_resource(f.inf), &v1);
    assert_true(said(&f, "+n/a "));
    fake_go(&f.fake, "up");
    wait_until(fake_count(&f.fake, "resourceVersion=9") == 1);
    assert_ptr_equal(stw_informer_resource(f.inf), &v2);
    assert_true(said(&f, "+n/a +n/b -n/a "));
    assert_int_equal(fake_count(&f.fake, "limit="), 2);
    end(&f);
}

/* Without permission for discovery, the best version is used. */
static void test_best_version_is_used_without_discovery(void **state)
{
    static const struct stw_resource v2 = {"policy", "v2", "Thing", "things", true};
    static const struct stw_resource *const one[] = {&v2, NULL};
    struct fixture f;
    (void)state;
    begin(&f,
          "GET /apis/policy$ | {'status':403,'body':{'kind':'Status','reason':'Forbidden'}}\n"
          "/policy/v2/namespaces/n/things.limit | list 5 a@1=1\n"
          "watch=1 | watch hang\n",
          (struct stw_informer_config){.alternatives = one});
    wait_until(fake_count(&f.fake, "watch=1") == 1);
    assert_true(said(&f, "+n/a "));
    end(&f);
}

static void available(void *ctx)
{
    struct fixture *f = ctx;
    (void)pthread_mutex_lock(&f->lock);
    stw_buf_addf(&f->said, "!%d ", (int)stw_informer_availability(f->inf));
    (void)pthread_mutex_unlock(&f->lock);
}

/* The resource is not there, may then not be listed, is there, and goes again: each is reported
 * once, and the cache is synced all the time. */
static void test_optional_resource_appears_and_disappears(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "limit= | {'times':2,'status':404}\n"
          "limit= | {'times':2,'status':403,'body':{'kind':'Status','reason':'Forbidden'}}\n"
          "limit= | list 5 a@1=1\n"
          "watch=1 | watch +b@6=1 wait:gone\n"
          "watch=1 | {'status':404}\n"
          "limit= | {'times':99,'status':404}\n",
          (struct stw_informer_config){.optional = true, .absent_ms = 20, .available = available});
    wait_until(fake_count(&f.fake, "watch=1") == 1);
    assert_true(stw_informer_synced(f.inf));
    assert_int_equal(stw_informer_availability(f.inf), STW_AVAILABLE);
    fake_go(&f.fake, "gone");
    wait_until(stw_informer_availability(f.inf) == STW_NOT_SERVED);
    wait_until(said(&f, "!1 !2 +n/a !0 +n/b -n/a -n/b !1 ") ||
               said(&f, "!1 !2 +n/a !0 +n/b -n/b -n/a !1 "));
    assert_true(stw_informer_synced(f.inf));
    assert_int_equal(stw_informer_count(f.inf), 0);
    end(&f);
}

/* The server's answer that it is not there is news of it: an alert for silent watches does not fire
 * where it is not installed. */
static void test_absent_optional_resource_is_not_silent(void **state)
{
    struct stw_informer_facts facts = {0};
    struct fixture f;
    (void)state;
    begin(&f, "limit= | {'times':99,'status':404}\n",
          (struct stw_informer_config){.optional = true, .absent_ms = 20});
    wait_until(stw_informer_synced(f.inf));
    double first = last_event_s(&f);
    assert_true(first > 0);
    wait_until(last_event_s(&f) > first);
    stw_informer_facts(f.inf, &facts);
    assert_true(facts.last_event_us > 0);
    end(&f);
}

/* Otherwise the same answers keep it from being synced. */
static void test_missing_required_resource_is_not_synced(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "limit= | {'times':99,'status':404}\n", (struct stw_informer_config){0});
    wait_until(fake_count(&f.fake, "limit=") >= 2);
    assert_false(stw_informer_synced(f.inf));
    assert_true(last_event_s(&f) == 0);
    end(&f);
}

/* An API server that comes back is watched again within seconds, also if its first answers are 429; one
 * that answers with errors, or not in time, gets longer pauses. */
static void test_unreachable_server_is_retried_soon(void **state)
{
    static const struct stw_error refused = {.code = STW_ERR_UNAVAILABLE},
                                  busy = {.code = STW_ERR_THROTTLED, .http = 429},
                                  broken = {.code = STW_ERR_UNAVAILABLE, .http = 503},
                                  late = {.code = STW_ERR_TIMEOUT};
    struct stw_informer inf = {.config = {.backoff_ms = 800}};
    struct stw_reflector r = {.inf = &inf};
    (void)state;
    for (int i = 0; i < 20; i++)
        assert_in_range(stw_reflector_wait_ms(&r, &refused), i < 3 ? 800 : 5000, 7500);
    assert_in_range(stw_reflector_wait_ms(&r, &busy), 800, 1200);
    assert_in_range(stw_reflector_wait_ms(&r, &late), 1600, 2400);
    for (int i = 0; i < 20; i++)
        (void)stw_reflector_wait_ms(&r, &broken);
    assert_in_range(stw_reflector_wait_ms(&r, &late), 30000, 45000);
    assert_in_range(stw_reflector_wait_ms(&r, &refused), 800, 1200);
}

/* A server that ends each watch after an event, or with an error after one, is not asked as fast as it
 * answers. */
static void test_watches_ending_at_once_are_delayed(void **state)
{
    struct stw_informer inf = {.clock = &stw_clock_system, .config = {.backoff_ms = 800}};
    struct stw_reflector r = {.inf = &inf};
    (void)state;
    for (int i = 0; i < 30; i++) {
        r.began_ms = stw_now_ms(inf.clock);
        uint64_t pause = stw_reflector_pause_ms(&r);
        assert_in_range(pause, i < 10 ? 0 : 800, i < 10 ? 0 : 5000);
    }
    r.began_ms = stw_now_ms(inf.clock);
    assert_int_equal(stw_reflector_pause_ms(&r), 5000);
    r.began_ms -= 5000;
    assert_int_equal(stw_reflector_pause_ms(&r), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watches_ending_at_once_are_delayed),
        cmocka_unit_test(test_list_is_followed_by_a_watch),
        cmocka_unit_test(test_list_pages_shrink_for_large_objects),
        cmocka_unit_test(test_large_object_is_read_while_memory_is_used),
        cmocka_unit_test(test_large_objects_are_read_one_at_a_time),
        cmocka_unit_test(test_two_large_objects_do_not_wait_for_each_other),
        cmocka_unit_test(test_expired_version_lists_again),
        cmocka_unit_test(test_object_without_memory_is_read_again),
        cmocka_unit_test(test_expired_continue_token_lists_again),
        cmocka_unit_test(test_endless_list_is_retried_later),
        cmocka_unit_test(test_circular_list_is_retried_later),
        cmocka_unit_test(test_truncated_event_is_ignored),
        cmocka_unit_test(test_garbage_in_a_watch_lists_again),
        cmocka_unit_test(test_unreadable_objects_in_a_list_are_named),
        cmocka_unit_test(test_watch_continues_after_unreadable_events),
        cmocka_unit_test(test_unreadable_objects_are_not_deleted),
        cmocka_unit_test(test_nameless_unreadable_object_deletes_nothing),
        cmocka_unit_test(test_unusual_go_json_is_read),
        cmocka_unit_test(test_silent_watch_is_restarted),
        cmocka_unit_test(test_transient_faults_are_retried),
        cmocka_unit_test(test_initializing_storage_is_no_warning),
        cmocka_unit_test(test_oversized_page_is_halved),
        cmocka_unit_test(test_restored_store_lists_again),
        cmocka_unit_test(test_own_writes_are_merged_with_events),
        cmocka_unit_test(test_own_write_during_a_list_is_kept),
        cmocka_unit_test(test_several_namespaces_are_watched),
        cmocka_unit_test(test_informer_ends_at_any_stage),
        cmocka_unit_test(test_informer_serves_many_threads),
        cmocka_unit_test(test_server_version_of_a_resource_is_used),
        cmocka_unit_test(test_best_version_is_used_without_discovery),
        cmocka_unit_test(test_stalled_list_is_retried_with_smaller_pages),
        cmocka_unit_test(test_responses_in_small_pieces_are_read),
        cmocka_unit_test(test_deletion_of_uncached_object_is_reported_on_request),
        cmocka_unit_test(test_optional_resource_appears_and_disappears),
        cmocka_unit_test(test_absent_optional_resource_is_not_silent),
        cmocka_unit_test(test_unreachable_server_is_retried_soon),
        cmocka_unit_test(test_missing_required_resource_is_not_synced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
