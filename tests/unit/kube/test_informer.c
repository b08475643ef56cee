/* SPDX-License-Identifier: Apache-2.0
 *
 * The reflector against a server that misbehaves as told. */
#include "base/util.h"
#include "fake.h"
#include "kube/informer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct fake fake;
    struct stw_client *client;
    struct stw_informer *inf;
    pthread_mutex_t lock;
    struct stw_buf said; /* of the change callback: "+a", "*a", "-a" and a blank each */
};

static void project(void *ctx, struct stw_json object, struct stw_buf *out)
{
    size_t len;
    const char *raw = stw_json_raw(stw_json_get(object, "data"), &len);
    (void)ctx;
    stw_buf_adds(out, "{\"d\":");
    stw_buf_add(out, raw ? raw : "0", raw ? len : 1);
    stw_buf_addc(out, '}');
}

static void changed(void *ctx, const char *key, const char *old_text, const char *new_text)
{
    struct fixture *f = ctx;
    (void)pthread_mutex_lock(&f->lock);
    stw_buf_addf(&f->said, "%c%s ", !old_text ? '+' : !new_text ? '-' : '*', key);
    (void)pthread_mutex_unlock(&f->lock);
}

static bool said(struct fixture *f, const char *want)
{
    (void)pthread_mutex_lock(&f->lock);
    bool is = stw_streq(stw_buf_str(&f->said), want);
    (void)pthread_mutex_unlock(&f->lock);
    return is;
}

static void begin(struct fixture *f, const char *steps, struct stw_informer_config config)
{
    static const char *const namespaces[] = {"n", NULL};
    struct stw_error err;
    *f = (struct fixture){.said = STW_BUF_INIT(1u << 20)};
    (void)pthread_mutex_init(&f->lock, NULL);
    fake_start(&f->fake);
    fake_steps(&f->fake, steps);
    f->client = fake_client(&f->fake, NULL, NULL);
    config.resource = &stw_res_configmap;
    if (!config.namespaces)
        config.namespaces = namespaces;
    config.project = project;
    config.changed = changed;
    config.ctx = f;
    config.backoff_ms = 20;
    assert_int_equal(
        stw_informer_create(f->client, &config, &stw_clock_system, NULL, &f->inf, &err), 0);
    assert_int_equal(stw_informer_start(f->inf, &err), 0);
}

static void end(struct fixture *f)
{
    stw_informer_destroy(f->inf);
    stw_client_destroy(f->client);
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

/* An object, a list page, an event: JSON with ' for ". */
#define OBJECT(name, rv, data)                                                                     \
    "{'metadata':{'namespace':'n','name':'" name "','resourceVersion':'" rv "'},'data':" data "}"
#define LIST(rv, more, items)                                                                      \
    "'body':{'kind':'List','metadata':{'resourceVersion':'" rv "','continue':'" more               \
    "'},'items':[" items "]}"
#define EVENT(type, object) "{'json':{'type':'" type "','object':" object "}}"
#define BOOKMARK(rv) EVENT("BOOKMARK", "{'metadata':{'resourceVersion':'" rv "'}}")
#define HANG "{'wait':'never'}"

static void list_then_watch(void **state)
{
    struct fixture f;
    (void)state;
    begin(
        &f,
        "[{'match':'GET /api/v1/namespaces/n/configmaps.labelSelector=a%3Db&limit=2$'," LIST(
            "5", "to/ken",
            OBJECT("a", "1", "1") "," OBJECT(
                "b", "2",
                "1")) "},"
                      "{'match':'limit=2&continue=to%2Fken$'," LIST(
                          "5", "",
                          OBJECT("c", "3",
                                 "1")) "},"
                                       "{'match':'watch=1&allowWatchBookmarks=true&timeoutSeconds=["
                                       "3-5][0-9][0-9]&resourceVersion=5$',"
                                       "'stream':[" EVENT("ADDED", OBJECT("d", "6", "1")) "," EVENT(
                                           "MODIFIED",
                                           OBJECT("a", "7",
                                                  "2")) "," EVENT("MODIFIED",
                                                                  OBJECT("b", "8",
                                                                         "1")) "," /* the same text:
                                                                                      not told */
        EVENT("DELETED", OBJECT("c", "9", "1")) "," BOOKMARK(
            "20") "]},"
                  "{'match':'resourceVersion=20$','stream':[" HANG "]}]",
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

/* 410 as an answer, and as an event: what vanished meanwhile is told. */
static void gone(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "[{'match':'limit='," LIST(
              "5", "",
              OBJECT("a", "1", "1") "," OBJECT(
                  "b", "2",
                  "1")) "},"
                        "{'match':'watch=1','stream':[" EVENT(
                            "ERROR",
                            "{'kind':'Status','code':410,'reason':'Expired','message':'too "
                            "old'}") "]},"
                                     "{'match':'limit='," LIST(
                                         "30", "",
                                         OBJECT("b", "2", "1") "," OBJECT(
                                             "c", "20",
                                             "1")) "},"
                                                   "{'match':'watch=1.*=30','status':410,'body':"
                                                   "{'kind':'Status','reason':'Expired'}},"
                                                   "{'match':'limit='," LIST(
                                                       "40", "",
                                                       OBJECT("c", "35",
                                                              "2")) "},"
                                                                    "{'match':'watch=1.*=40','"
                                                                    "stream':[" HANG "]}]",
          (struct stw_informer_config){0});
    wait_until(fake_count(&f.fake, "resourceVersion=40") == 1);
    assert_true(said(&f, "+n/a +n/b +n/c -n/a *n/c -n/b "));
    end(&f);
}

/* The continue token expires: the list begins again, and nothing counts as deleted before its end.
 */
static void gone_while_paging(void **state)
{
    struct fixture f;
    (void)state;
    begin(
        &f,
        "[{'match':'limit=1$'," LIST(
            "5", "x",
            OBJECT("a", "1",
                   "1")) "},"
                         "{'match':'continue=x$','status':410,'body':{'kind':'Status','reason':'"
                         "Expired'}},"
                         "{'match':'limit=1$'," LIST(
                             "9", "y",
                             OBJECT("b", "7",
                                    "1")) "},"
                                          "{'match':'continue=y$'," LIST(
                                              "9", "",
                                              OBJECT("c", "8",
                                                     "1")) "},"
                                                           "{'match':'watch=1.*=9','stream':[" HANG
                                                           "]}]",
        (struct stw_informer_config){.page_size = 1});
    wait_until(fake_count(&f.fake, "watch=1") == 1);
    assert_true(said(&f, "+n/a +n/b +n/c -n/a "));
    end(&f);
}

/* Cut in the middle of a string: the half event counts for nothing, the next watch resumes. */
static void cut_in_a_string(void **state)
{
    struct fixture f;
    (void)state;
    begin(
        &f,
        "[{'match':'limit='," LIST(
            "5", "",
            "") "},"
                "{'match':'watch=1.*=5','stream':[" EVENT(
                    "ADDED",
                    OBJECT(
                        "a", "6",
                        "1")) ","
                              "{'raw':'{\\'type\\':\\'ADDED\\',\\'object\\':{\\'metadata\\':{\\'"
                              "name\\':\\'b'}],'then':'cut'},"
                              "{'match':'watch=1.*=6','stream':["
                              "{'raw':'{\\'type\\':\\'MODIFIED\\',\\'object\\':{\\'data\\':\\'x'},"
                              "{'raw':'y\\',\\'metadata\\':{\\'namespace\\':\\'n\\',\\'name\\':\\'"
                              "a\\',\\'resourceVersion\\':\\'8\\'}}}\\n'}," HANG "]}]",
        (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a *n/a "));
    assert_has(&f, "n/a", "{\"d\":\"xy\"}");
    end(&f);
}

static void garbage_in_a_watch(void **state)
{
    struct fixture f;
    (void)state;
    begin(
        &f,
        "[{'match':'limit='," LIST(
            "5", "",
            "") "},"
                "{'match':'watch=1.*=5','stream':[" EVENT(
                    "ADDED",
                    OBJECT(
                        "a", "6",
                        "1")) ","
                              "{'raw':'what is this\\n'}]},"
                              "{'match':'limit='," LIST(
                                  "7", "",
                                  OBJECT(
                                      "a", "6",
                                      "1")) "},"
                                            "{'match':'watch=1.*=7','stream':[" EVENT(
                                                "STRANGE",
                                                "{"
                                                "}") "," EVENT("ADDED",
                                                               "{'metadata':{}}") "," EVENT("ADDED",
                                                                                            "7") "," EVENT("ADDED",
                                                                                                           OBJECT(
                                                                                                               "b",
                                                                                                               "8",
                                                                                                               "1")) "," HANG
                                                                                                                     "]}]",
        (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a +n/b "));
    end(&f);
}

static void a_silent_watch(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "[{'match':'limit='," LIST(
              "5", "",
              "") "},"
                  "{'match':'watch=1.*=5','stream':[" BOOKMARK(
                      "6") "," HANG "]},"
                           "{'match':'watch=1.*=6','stream':[" EVENT(
                               "ADDED",
                               OBJECT("a", "7", "1")) "," HANG "]},"
                                                      "{'match':'watch=1','times':0,'stream':[" HANG
                                                      "]}]",
          (struct stw_informer_config){.silence_ms = 200});
    wait_until(said(&f, "+n/a "));
    end(&f);
}

static void faults_pass(void **state)
{
    struct fixture f;
    char problem[200];
    (void)state;
    begin(
        &f,
        "[{'match':'limit=','status':500,'body':{'kind':'Status','message':'no store','code':500}},"
        "{'match':'limit=','status':429,'headers':{'Retry-After':'1'}},"
        "{'match':'limit='," LIST(
            "5", "",
            OBJECT("a", "1", "1")) "},"
                                   "{'match':'watch=1','status':500},"
                                   "{'match':'watch=1.*=5','stream':[" BOOKMARK("6") "," HANG "]}]",
        (struct stw_informer_config){0});
    wait_until((stw_informer_problem(f.inf, problem, sizeof(problem)),
                stw_streq(problem, "configmaps: no store")));
    assert_false(stw_informer_synced(f.inf));
    wait_until((stw_informer_problem(f.inf, problem, sizeof(problem)), problem[0] == '\0'));
    assert_true(stw_informer_synced(f.inf));
    assert_int_equal(fake_count(&f.fake, "limit="), 3);
    end(&f);
}

/* A page over the cap is asked for again, half as long. */
static void a_page_too_large(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "[{'match':'limit=4$','status':413},"
          "{'match':'limit=2$'," LIST(
              "5", "", OBJECT("a", "1", "1")) "},"
                                              "{'match':'watch=1','stream':[" HANG "]}]",
          (struct stw_informer_config){.page_size = 4});
    wait_until(said(&f, "+n/a "));
    end(&f);
}

/* The store was put back from a backup: bookmarks count lower than what we have. */
static void a_store_that_went_back(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f,
          "[{'match':'limit='," LIST(
              "50", "",
              OBJECT("a", "40",
                     "1")) "},"
                           "{'match':'watch=1.*=50','stream':[" BOOKMARK(
                               "30") "," HANG "]},"
                                     "{'match':'limit='," LIST(
                                         "31", "",
                                         OBJECT("b", "20",
                                                "1")) "},"
                                                      "{'match':'watch=1.*=31','stream':[" HANG
                                                      "]}]",
          (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a +n/b -n/a "));
    end(&f);
}

static void own_writes(void **state)
{
    struct fixture f;
    struct stw_buf answer = STW_BUF_INIT(1000);
    (void)state;
    begin(&f,
          "[{'match':'limit='," LIST(
              "5", "",
              OBJECT("a", "5",
                     "1")) "},"
                           "{'match':'watch=1','stream':[{'wait':'write'}," EVENT(
                               "MODIFIED",
                               OBJECT("a", "6",
                                      "6")) "," EVENT("MODIFIED",
                                                      OBJECT("a", "8",
                                                             "8")) "," EVENT("ADDED",
                                                                             OBJECT("z", "9",
                                                                                    "1")) "," HANG
                                                                                          "]}]",
          (struct stw_informer_config){0});
    wait_until(said(&f, "+n/a "));
    stw_buf_adds(&answer,
                 "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\",\"resourceVersion\":\"8\"},"
                 "\"data\":8}");
    stw_informer_saw(f.inf, &answer);
    assert_has(&f, "n/a", "{\"d\":8}");
    fake_go(&f.fake, "write");
    wait_until(said(&f, "+n/a +n/z "));
    assert_has(&f, "n/a", "{\"d\":8}");
    stw_informer_saw_delete(f.inf, "n/a");
    assert_has(&f, "n/a", NULL);
    /* what is no object, and what lies outside, changes nothing */
    stw_buf_clear(&answer);
    stw_buf_adds(&answer, "{\"metadata\":");
    stw_informer_saw(f.inf, &answer);
    stw_buf_clear(&answer);
    stw_buf_adds(
        &answer,
        "{\"metadata\":{\"namespace\":\"other\",\"name\":\"a\",\"resourceVersion\":\"9\"}}");
    stw_informer_saw(f.inf, &answer);
    assert_int_equal(stw_informer_count(f.inf), 1);
    stw_buf_done(&answer);
    end(&f);
}

static void several_namespaces(void **state)
{
    static const char *const namespaces[] = {"n", "m", NULL};
    struct fixture f;
    (void)state;
    begin(&f,
          "[{'match':'/n/configmaps.limit=','stream':[{'wait':'n'}],'then':'cut'},"
          "{'match':'/m/configmaps.limit='," LIST(
              "5", "",
              "{'metadata':{'namespace':'m','name':'a','"
              "resourceVersion':'1'}}") "},"
                                        "{'match':'/n/"
                                        "configmaps.limit='"
                                        "," LIST("5", "", OBJECT("a", "1", "1")) "},"
                                                                                 "{'match':'"
                                                                                 "watch=1','"
                                                                                 "times':0,'"
                                                                                 "stream':"
                                                                                 "[" HANG "]}]",
          (struct stw_informer_config){.namespaces = namespaces});
    wait_until(said(&f, "+m/a "));
    assert_false(stw_informer_synced(f.inf));
    fake_go(&f.fake, "n");
    wait_until(said(&f, "+m/a +n/a "));
    wait_until(stw_informer_synced(f.inf));
    end(&f);
}

/* Ended at every stage, and after the client was cancelled. */
static void ended_any_time(void **state)
{
    static const char *const steps[] = {
        "[{'match':'limit=','then':'stall'}]",
        "[{'match':'limit=','status':500,'times':0}]",
        "[{'match':'limit='," LIST("5", "", "") "},{'match':'watch=1','stream':[" HANG "]}]",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(steps); i++) {
        struct fixture f;
        begin(&f, steps[i], (struct stw_informer_config){0});
        wait_until(fake_count(&f.fake, i == 2 ? "watch=1" : "limit=") > 0);
        if (i == 1)
            stw_client_cancel(f.client);
        end(&f);
    }
}

/* Writers on other threads while the watch brings events: for TSan. */
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
        stw_informer_saw(f->inf, &o);
        (void)stw_informer_get(f->inf, "n/k1", &out, NULL);
        stw_buf_clear(&out);
        stw_informer_keys(f->inf, NULL, &out);
        if (i % 11 == 0)
            stw_informer_saw_delete(f->inf, "n/k3");
        stw_buf_done(&o);
        stw_buf_done(&out);
    }
    return NULL;
}

static void many_threads(void **state)
{
    struct fixture f;
    pthread_t t[3];
    struct stw_buf steps = STW_BUF_INIT(1u << 20);
    (void)state;
    stw_buf_adds(&steps, "[{'match':'limit='," LIST(
                             "5", "", OBJECT("k1", "1", "1")) "},"
                                                              "{'match':'watch=1','stream':[");
    for (int i = 0; i < 500; i++)
        stw_buf_addf(&steps,
                     "{'json':{'type':'%s','object':{'metadata':{'namespace':'n','name':'k%d',"
                     "'resourceVersion':'%d'},'data':%d}}},",
                     i % 13 == 0 ? "DELETED" : "MODIFIED", i % 7, 900 + i, i);
    stw_buf_adds(&steps, EVENT("ADDED", OBJECT("last", "5000", "1")) "," HANG "]}]");
    begin(&f, stw_buf_str(&steps), (struct stw_informer_config){0});
    for (size_t i = 0; i < STW_COUNT(t); i++)
        assert_int_equal(pthread_create(&t[i], NULL, write_along, &f), 0);
    for (size_t i = 0; i < STW_COUNT(t); i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    struct stw_buf out = STW_BUF_INIT(1u << 20);
    wait_until(stw_informer_get(f.inf, "n/last", &out, NULL) == 0);
    stw_buf_done(&out);
    stw_buf_done(&steps);
    end(&f);
}

/* What the server has is listed and watched; asked again when a watch is over, and listed anew only
 * when the answer is another one. */
static void versions(void **state)
{
    static const struct stw_resource v2 = {"autoscaling", "v2", "HorizontalPodAutoscaler",
                                           "horizontalpodautoscalers", true},
                                     v1 = {"autoscaling", "v1", "HorizontalPodAutoscaler",
                                           "horizontalpodautoscalers", true};
    static const struct stw_resource *const both[] = {&v2, &v1, NULL};
    struct fixture f;
    (void)state;
    begin(
        &f,
        "[{'match':'GET /apis/autoscaling$','status':503},"
        "{'match':'GET /apis/autoscaling$','body':{'versions':[{'version':'v0'}]}},"
        "{'match':'GET /apis/autoscaling$','times':2,'body':{'versions':[{'version':'v1'}]}},"
        "{'match':'/autoscaling/v1/namespaces/n/horizontalpodautoscalers.limit'," LIST(
            "5", "",
            OBJECT("a",
                   "1", "1")) "},{'match':'/autoscaling/v1/"
                              ".*resourceVersion=5$','stream':[" BOOKMARK("6") "]},{'match':'/"
                                                                               "autoscaling/v1/"
                                                                               ".*resourceVersion="
                                                                               "6$','stream':[{'"
                                                                               "wait':'up'}"
                                                                               "," BOOKMARK("7") "]"
                                                                                                 "}"
                                                                                                 ","
                                                                                                 "{"
                                                                                                 "'"
                                                                                                 "m"
                                                                                                 "a"
                                                                                                 "t"
                                                                                                 "c"
                                                                                                 "h"
                                                                                                 "'"
                                                                                                 ":"
                                                                                                 "'"
                                                                                                 "G"
                                                                                                 "E"
                                                                                                 "T"
                                                                                                 " "
                                                                                                 "/"
                                                                                                 "a"
                                                                                                 "p"
                                                                                                 "i"
                                                                                                 "s"
                                                                                                 "/"
                                                                                                 "a"
                                                                                                 "u"
                                                                                                 "t"
                                                                                                 "o"
                                                                                                 "s"
                                                                                                 "c"
                                                                                                 "a"
                                                                                                 "l"
                                                                                                 "i"
                                                                                                 "n"
                                                                                                 "g"
                                                                                                 "$"
                                                                                                 "'"
                                                                                                 ","
                                                                                                 "'"
                                                                                                 "b"
                                                                                                 "o"
                                                                                                 "d"
                                                                                                 "y"
                                                                                                 "'"
                                                                                                 ":"
                                                                                                 "{"
                                                                                                 "'"
                                                                                                 "v"
                                                                                                 "e"
                                                                                                 "r"
                                                                                                 "s"
                                                                                                 "i"
                                                                                                 "o"
                                                                                                 "n"
                                                                                                 "s"
                                                                                                 "'"
                                                                                                 ":"
                                                                                                 "["
                                                                                                 "{"
                                                                                                 "'"
                                                                                                 "v"
                                                                                                 "e"
                                                                                                 "r"
                                                                                                 "s"
                                                                                                 "i"
                                                                                                 "o"
                                                                                                 "n"
                                                                                                 "'"
                                                                                                 ":"
                                                                                                 "'"
                                                                                                 "v"
                                                                                                 "1"
                                                                                                 "'"
                                                                                                 "}"
                                                                                                 ","
                                                                                                 "{"
                                                                                                 "'"
                                                                                                 "v"
                                                                                                 "e"
                                                                                                 "r"
                                                                                                 "s"
                                                                                                 "i"
                                                                                                 "o"
                                                                                                 "n"
                                                                                                 "'"
                                                                                                 ":"
                                                                                                 "'"
                                                                                                 "v"
                                                                                                 "2"
                                                                                                 "'"
                                                                                                 "}"
                                                                                                 "]"
                                                                                                 "}"
                                                                                                 "}"
                                                                                                 ","
                                                                                                 "{"
                                                                                                 "'"
                                                                                                 "m"
                                                                                                 "a"
                                                                                                 "t"
                                                                                                 "c"
                                                                                                 "h"
                                                                                                 "'"
                                                                                                 ":"
                                                                                                 "'"
                                                                                                 "/"
                                                                                                 "a"
                                                                                                 "u"
                                                                                                 "t"
                                                                                                 "o"
                                                                                                 "s"
                                                                                                 "c"
                                                                                                 "a"
                                                                                                 "l"
                                                                                                 "i"
                                                                                                 "n"
                                                                                                 "g"
                                                                                                 "/"
                                                                                                 "v"
                                                                                                 "2"
                                                                                                 "/"
                                                                                                 "n"
                                                                                                 "a"
                                                                                                 "m"
                                                                                                 "e"
                                                                                                 "s"
                                                                                                 "p"
                                                                                                 "a"
                                                                                                 "c"
                                                                                                 "e"
                                                                                                 "s"
                                                                                                 "/"
                                                                                                 "n"
                                                                                                 "/"
                                                                                                 "h"
                                                                                                 "o"
                                                                                                 "r"
                                                                                                 "i"
                                                                                                 "z"
                                                                                                 "o"
                                                                                                 "n"
                                                                                                 "t"
                                                                                                 "a"
                                                                                                 "l"
                                                                                                 "p"
                                                                                                 "o"
                                                                                                 "d"
                                                                                                 "a"
                                                                                                 "u"
                                                                                                 "t"
                                                                                                 "o"
                                                                                                 "s"
                                                                                                 "c"
                                                                                                 "a"
                                                                                                 "l"
                                                                                                 "e"
                                                                                                 "r"
                                                                                                 "s"
                                                                                                 "."
                                                                                                 "l"
                                                                                                 "i"
                                                                                                 "m"
                                                                                                 "i"
                                                                                                 "t"
                                                                                                 "'"
                                                                                                 "," LIST(
                                                                                                     "9",
                                                                                                     "",
                                                                                                     OBJECT(
                                                                                                         "b",
                                                                                                         "8",
                                                                                                         "1")) "},{'match':'/autoscaling/v2/.*resourceVersion=9$','stream':[" HANG
                                                                                                               "]}]",
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

/* Who may not ask which versions there are uses the best. */
static void versions_in_the_dark(void **state)
{
    static const struct stw_resource v2 = {"policy", "v2", "Thing", "things", true};
    static const struct stw_resource *const one[] = {&v2, NULL};
    struct fixture f;
    (void)state;
    begin(&f,
          "[{'match':'GET /apis/policy$','status':403,'body':{'kind':'Status','reason':"
          "'Forbidden'}},"
          "{'match':'/policy/v2/namespaces/n/things.limit'," LIST(
              "5", "", OBJECT("a", "1", "1")) "},{'match':'watch=1','stream':[" HANG "]}]",
          (struct stw_informer_config){.alternatives = one});
    wait_until(fake_count(&f.fake, "watch=1") == 1);
    assert_true(said(&f, "+n/a "));
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_then_watch),
        cmocka_unit_test(gone),
        cmocka_unit_test(gone_while_paging),
        cmocka_unit_test(cut_in_a_string),
        cmocka_unit_test(garbage_in_a_watch),
        cmocka_unit_test(a_silent_watch),
        cmocka_unit_test(faults_pass),
        cmocka_unit_test(a_page_too_large),
        cmocka_unit_test(a_store_that_went_back),
        cmocka_unit_test(own_writes),
        cmocka_unit_test(several_namespaces),
        cmocka_unit_test(ended_any_time),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(versions),
        cmocka_unit_test(versions_in_the_dark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
