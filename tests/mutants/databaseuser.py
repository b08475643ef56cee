# SPDX-License-Identifier: Apache-2.0
"""Guards of DatabaseUsers: the plan (kinds/databaseuser/plan.c), which its model test checks, and marks."""

from . import Mutant

FILE = "kinds/databaseuser/plan.c"
TESTS = ["kinds/databaseuser/plan_model", "kinds/databaseuser/twin", "kinds/databaseuser/status"]

# (guard, text, its replacement)
_ROWS = [
    ("D1: the login works before it is published",
     "dbu_can_log_in(v, &p->t) && is_as_good(v, &p->t) && act(p, DBU_PUBLISH)",
     "act(p, DBU_PUBLISH)"),
    ("D1: a password that waits is not published", "DBU_PASSWORD_KNOWN && !waits &&",
     "DBU_PASSWORD_KNOWN &&"),
    ("D1: the old login is locked after the Secret was written",
     "!dbu_is_published(p->v, &p->t) ||\n        !is_confirmed(p->v, &p->t))",
     "!dbu_can_log_in(p->v, &p->t))"),
    ("D1: the old login stays for the overlap", "(p->t.begins || !v->overlap || !v->over || ",
     "("),
    ("D1: the old login stays as long as something has not read the Secret",
     "!v->over || v->readers_wait))", "!v->over))"),
    ("D1: the login of an unwritten status", "v->login != DBU_LOGIN_NONE && v->login != t->current;",
     "false;"),
    ("D1: the login before, when the status is lost",
     "        t->previous = other_twin(t->current);\n        t->begins = true;\n", ""),
    ("D1: one login after the other", "(is_busy(v, t) && !ends_at_once(v, t) && !is_lost_secret",
     "(false && !is_lost_secret"),
    ("D1: another owner's Secret", "(t->blocked || (is_busy", "((is_busy"),
    ("D1: a Secret that cannot be read, without a status",
     "           v->connection == DBU_CONNECTION_UNKNOWN && act(p, DBU_END_RUN);", "           false;"),
    ("D1: the old password stays valid", "s->keep_old = keeps && dbu_is_new(v, &p->t);",
     "s->keep_old = false;"),
    ("D1: a new password waits for the end of the old one in the status",
     "s->set_later = s->keep_old && v->overlap;", "s->set_later = false;"),
    ("D1: the old password ends after the overlap", "!keeps || (v->overlap && v->over && ",
     "!keeps || (v->overlap && "),
    ("D1: the old password stays as long as something has not read the Secret",
     "v->over && !v->readers_wait && (!v->publishes", "v->over && (!v->publishes"),
    ("D1: the Secret shows another password than the status", " || shows_other);", ");"),
    ("D1: the end of the older password", "return set || !v->overlap ? DBU_END_BEGINS : DBU_END_STAYS;",
     "return DBU_END_STAYS;"),
    ("D2: the password comes before databases",
     "return !p->v->created && create_databases(p);", "return create_databases(p);"),
    ("D2: rights that are refused do not stop a rotation",
     "return o == DBU_RIGHTS_REFUSED && (was", "return false && (was"),
    ("D2: a lost Secret does not stop a rotation",
     "return v->over && !t->confirmed && (v->connection", "return false && (v->connection"),
    ("D5: the other logins are locked",
     "    for (enum dbu_login l = DBU_LOGIN_BASE; l < DBU_LOGINS; l++)\n        if (lock(p, l))\n"
     "            return true;\n    return false;\n}\n\n/* --- rights",
     "    return false;\n}\n\n/* --- rights"),
    ("D5: logins are noted before they are made",
     "v->created && !v->has_logins && act(p, DBU_NOTE_LOGINS)", "false"),
    ("D5: logins of a killed run", "if (v->created || dbu_has_logins(v) || v->logins",
     "if (true || v->logins"),
    ("D6: the finalizer is there before the account", "return !p->v->finalizer && act(p, DBU_ADD_FINALIZER);",
     "return false;"),
    ("D6: every login ends", "{DBU_LOGIN_A, DBU_LOGIN_B, DBU_LOGIN_BASE}",
     "{DBU_LOGIN_BASE, DBU_LOGIN_A}"),
]

# Of marks: sql/mark.c.
_MARKS = [
    ("D4: a mark of another cluster", "stw_streq(m->uid, id->uid) && (here || !noted)",
     "stw_streq(m->uid, id->uid)"),
    ("D4: an object of the same name in another cluster",
     "return here ? STW_MARK_FORMER : STW_MARK_ELSEWHERE;", "return STW_MARK_FORMER;"),
    ("D4: no identity", "return id->cluster && *id->cluster &&", "return"),
]

MUTANTS = [Mutant(what.partition(": ")[0], what.partition(": ")[2], [(file, old, new)], tests)
           for file, tests, rows in ((FILE, TESTS, _ROWS), ("lib/sql/mark.c", ["lib/sql/mark"], _MARKS))
           for what, old, new in rows]
