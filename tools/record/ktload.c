// ktload: runs a set of threads, each executing a small step program, for a fixed time.
// Input: a spec file (written by record.py from case.json); output: JSON on stdout.
// All times in microseconds unless stated. See README.md ("Step programs").
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum {
    HOG,
    RUN,
    SLEEP,
    PERIOD,
    READ,
    WRITE,
    WAIT,
    POST,
    YIELD,
    NICE,
    MOVE,
    AFF,
    LOOP,
    END,
    EXIT,
    SPAWN,
    BARRIER,
    UNTIL
};
struct op {
    int k;
    long a, b;
    char s[200];
};
#define MAXOPS 64
struct task {
    char name[16];
    int nice;
    char cg[200];
    unsigned long aff;
    int pol;
    long slice_ns;
    long start_us;
    int proc;
    struct op ops[MAXOPS];
    int nops;
    int tid;
    long iters;
    unsigned long ran_cyc;
    pthread_t th;
};
struct event {
    long at_us;
    char path[220];
    char val[64];
    int done;
};
#define MAXT 256
static struct task *T;
static int nT;
static struct event E[64];
static int nE;
static int pipes[64][2];
static _Atomic int sems[64], waiters[64];
static _Atomic int ready, *stop;
static uint64_t T0;
static double mhz;
static long dur_us;
static pthread_barrier_t bar[16];
static int barn[16];
static char statfiles[64][220];
static int nstat;
static long spawn_ended;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static void sleep_until(uint64_t ns) {
    struct timespec t = {ns / 1000000000ull, ns % 1000000000ull};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == EINTR)
        ;
}
static void sleep_rel(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, 0);
}
// Consume `us` of CPU time: count only cycles between TSC reads that are close together, so
// that time spent preempted (or in an interrupt) does not count.
static unsigned long burn(double us) {
    uint64_t need = us * mhz, got = 0, p = __rdtsc();
    while (got < need) {
        uint64_t n = __rdtsc(), d = n - p;
        p = n;
        if (d < 3000)
            got += d;
        if (*stop)
            break;
    }
    return got;
}
struct sa {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t prio;
    uint64_t runtime, deadline, period;
    uint32_t umin, umax;
};
static void setattr(int pol, int nice, long slice) {
    struct sa a = {.size = sizeof a, .policy = pol, .nice = nice, .runtime = slice};
    if (syscall(SYS_sched_setattr, 0, &a, 0))
        perror("sched_setattr");
}
static void put(const char *path, const char *v) {
    int f = open(path, O_WRONLY);
    if (f < 0 || write(f, v, strlen(v)) < 0) {
        fprintf(stderr, "write %s %s: %s\n", path, v, strerror(errno));
    }
    if (f >= 0)
        close(f);
}
static void setaff(unsigned long m) {
    cpu_set_t s;
    CPU_ZERO(&s);
    if (!m)
        m = ~0ul;
    for (int i = 0; i < 64; i++)
        if (m >> i & 1)
            CPU_SET(i, &s);
    sched_setaffinity(0, sizeof s, &s);
}
static void sem_wait_(int s) {
    for (;;) {
        int v = sems[s];
        while (v > 0)
            if (atomic_compare_exchange_weak(&sems[s], &v, v - 1))
                return;
        waiters[s]++;
        syscall(SYS_futex, &sems[s], FUTEX_WAIT, 0, 0, 0, 0);
        waiters[s]--;
        if (*stop)
            return;
    }
}
static void sem_post_(int s) {
    sems[s]++;
    if (waiters[s])
        syscall(SYS_futex, &sems[s], FUTEX_WAKE, 1, 0, 0, 0);
}
static void *spawned(void *p) {
    struct op *o = p;
    prctl(PR_SET_NAME, "kid");
    if (o->b)
        burn(o->b);
    if (o->a)
        sleep_rel(o->a);
    __atomic_add_fetch(&spawn_ended, 1, __ATOMIC_RELAXED);
    return 0;
}
static int exec_ops(struct task *t, int i, int e) {
    uint64_t base = T0 + t->start_us * 1000ull;
    char c;
    static __thread uint64_t next;
    if (!next)
        next = base;
    while (i < e && !*stop) {
        struct op *o = &t->ops[i];
        switch (o->k) {
        case HOG: {
            uint64_t p = __rdtsc();
            while (!*stop) {
                uint64_t n = __rdtsc(), d = n - p;
                p = n;
                if (d < 3000)
                    t->ran_cyc += d;
            }
            break;
        }
        case RUN:
            t->ran_cyc += burn(o->a / 1000.0);
            break; // argument in ns
        case SLEEP:
            sleep_rel(o->a);
            break;
        case PERIOD: {
            uint64_t n = now();
            next += o->a * 1000ull;
            if (next < n)
                next = n;
            else
                sleep_until(next);
            break;
        }
        case UNTIL:
            sleep_until(base + o->a * 1000ull);
            break;
        case READ:
            if (read(pipes[o->a][0], &c, 1) != 1)
                return -1;
            break;
        case WRITE:
            if (write(pipes[o->a][1], "x", 1) != 1)
                return -1;
            break;
        case WAIT:
            sem_wait_(o->a);
            break;
        case POST:
            sem_post_(o->a);
            break;
        case YIELD:
            sched_yield();
            break;
        case NICE:
            setpriority(PRIO_PROCESS, 0, o->a);
            break;
        case MOVE:
            put(o->s, "0");
            break;
        case AFF:
            setaff(o->a);
            break;
        case BARRIER:
            pthread_barrier_wait(&bar[o->a]);
            break;
        case SPAWN: {
            pthread_t th;
            pthread_attr_t at;
            pthread_attr_init(&at);
            pthread_attr_setdetachstate(&at, PTHREAD_CREATE_DETACHED);
            pthread_attr_setstacksize(&at, 65536);
            pthread_create(&th, &at, spawned, o);
            pthread_attr_destroy(&at);
            break;
        }
        case LOOP: {
            int d = 1, j = i + 1;
            while (d) {
                if (t->ops[j].k == LOOP)
                    d++;
                if (t->ops[j].k == END)
                    d--;
                j++;
            }
            for (long n = 0; (o->a < 0 || n < o->a) && !*stop; n++) {
                if (exec_ops(t, i + 1, j - 1))
                    return -1;
                t->iters++;
            }
            i = j - 1;
            break;
        }
        case EXIT:
            return -1;
        }
        i++;
    }
    return 0;
}
static void *worker(void *p) {
    struct task *t = p;
    prctl(PR_SET_NAME, t->name);
    prctl(PR_SET_TIMERSLACK, 1ul);
    t->tid = syscall(SYS_gettid);
    if (t->cg[0] != '-')
        put(t->cg, "0");
    setaff(t->aff);
    setattr(t->pol, t->nice, t->slice_ns);
    atomic_fetch_add(&ready, 1);
    while (!__atomic_load_n(&T0, __ATOMIC_ACQUIRE))
        sleep_rel(1000);
    sleep_until(T0 + t->start_us * 1000ull);
    exec_ops(t, 0, t->nops);
    return 0;
}
static void dump(const char *f) {
    char b[8192];
    int d = open(f, O_RDONLY);
    int n = d < 0 ? 0 : read(d, b, 8191);
    if (d >= 0)
        close(d);
    if (n < 0)
        n = 0;
    b[n] = 0;
    putchar('"');
    for (char *c = b; *c; c++)
        if (*c == '\n')
            printf("\\n");
        else if (*c == '\t')
            printf(" ");
        else if (*c == '"')
            printf("'");
        else
            putchar(*c);
    putchar('"');
}
static void stats(const char *tag) {
    printf(",\n\"%s\":{\"t_ns\":%lu,\"files\":{", tag, now());
    for (int i = 0; i < nstat; i++) {
        printf("%s\"%s\":", i ? "," : "", statfiles[i]);
        dump(statfiles[i]);
    }
    printf("},\"stat\":");
    dump("/proc/stat");
    printf("}");
}
int main(int c, char **v) {
    FILE *f = fopen(v[1], "r");
    char line[8192];
    long settle = 400000;
    T = calloc(MAXT, sizeof *T);
    stop = calloc(1, 64);
    int smp_cpu = -1, push = -1;
    long smp_us = 0;
    while (fgets(line, sizeof line, f)) {
        char *w = strtok(line, " \n");
        if (!w)
            continue;
        if (!strcmp(w, "duration"))
            dur_us = atol(strtok(0, " \n"));
        else if (!strcmp(w, "settle"))
            settle = atol(strtok(0, " \n"));
        else if (!strcmp(w, "push"))
            push = atoi(strtok(0, " \n"));
        else if (!strcmp(w, "sample")) {
            smp_cpu = atoi(strtok(0, " \n"));
            smp_us = atol(strtok(0, " \n"));
        } else if (!strcmp(w, "barrier")) {
            int b = atoi(strtok(0, " \n"));
            barn[b] = atoi(strtok(0, " \n"));
            pthread_barrier_init(&bar[b], 0, barn[b]);
        } else if (!strcmp(w, "statfile"))
            strcpy(statfiles[nstat++], strtok(0, " \n"));
        else if (!strcmp(w, "event")) {
            struct event *e = &E[nE++];
            e->at_us = atol(strtok(0, " \n"));
            strcpy(e->path, strtok(0, " \n"));
            strcpy(e->val, strtok(0, " \n"));
        } else if (!strcmp(w, "task")) {
            struct task *t = &T[nT++];
            strncpy(t->name, strtok(0, " \n"), 15);
            t->nice = atoi(strtok(0, " \n"));
            strcpy(t->cg, strtok(0, " \n"));
            t->aff = strtoul(strtok(0, " \n"), 0, 0);
            t->pol = atoi(strtok(0, " \n"));
            t->slice_ns = atol(strtok(0, " \n"));
            t->start_us = atol(strtok(0, " \n"));
            while ((w = strtok(0, " \n"))) {
                struct op *o = &t->ops[t->nops++];
                char *a = strchr(w, ':');
                if (a) {
                    *a++ = 0;
                    o->a = strtol(a, 0, 0);
                    strncpy(o->s, a, 199);
                    char *q = strchr(a, ',');
                    if (q)
                        o->b = strtol(q + 1, 0, 0);
                }
                static const char *n[] = {"hog",  "run",  "sleep", "period", "read",    "write",
                                          "wait", "post", "yield", "nice",   "move",    "aff",
                                          "loop", "end",  "exit",  "spawn",  "barrier", "until"};
                int k;
                for (k = 0; k < 18; k++)
                    if (!strcmp(w, n[k]))
                        break;
                if (k == 18) {
                    fprintf(stderr, "bad op %s\n", w);
                    return 2;
                }
                o->k = k;
            }
        }
    }
    fclose(f);
    for (int i = 0; i < 64; i++)
        if (pipe(pipes[i]))
            return 1;
    uint64_t a = now(), ca = __rdtsc();
    sleep_rel(50000);
    uint64_t b = now(), cb = __rdtsc();
    mhz = (double)(cb - ca) * 1000 / (b - a); // TSC ticks per us
    prctl(PR_SET_TIMERSLACK, 1ul);
    prctl(PR_SET_NAME, "ktmain");
    for (int i = 0; i < nT; i++) {
        pthread_attr_t at;
        pthread_attr_init(&at);
        pthread_attr_setstacksize(&at, 131072);
        pthread_create(&T[i].th, &at, worker, &T[i]);
        while (ready < i + 1)
            sleep_rel(500);
    }
    uint64_t t0 = now() + settle * 1000ull;
    t0 = (t0 / 4000000 + 1) * 4000000;
    __atomic_store_n(&T0, t0, __ATOMIC_RELEASE);
    if (push >=
        0) { // keep one CPU busy for a while so that the balancer moves strangers away from it
        sleep_until(t0 - 60000000);
        setaff(1ul << push);
        while (now() < t0 - 6000000)
            ;
        setaff(0);
    }
    sleep_until(t0 - 3000000);
    printf("{\"T0_ns\":%lu,\"duration_us\":%ld,\"tsc_mhz\":%.3f,\"tasks\":[", t0, dur_us, mhz);
    for (int i = 0; i < nT; i++)
        printf("%s{\"name\":\"%s\",\"tid\":%d}", i ? "," : "", T[i].name, T[i].tid);
    printf("]");
    stats("before");
    if (smp_us) { // sampler: copies /proc/self/task/TID/sched of every task at each smp_us
        static char *buf;
        size_t cap = 64 << 20, len = 0;
        buf = malloc(cap);
        memset(buf, 0, cap);
        setaff(1ul << smp_cpu);
        int fds[MAXT];
        char p[64];
        for (int i = 0; i < nT; i++) {
            sprintf(p, "/proc/self/task/%d/sched", T[i].tid);
            fds[i] = open(p, O_RDONLY);
        }
        int dbg = open("/sys/kernel/debug/sched/debug", O_RDONLY);
        uint64_t nx = t0 + 500000;
        int ei = 0;
        long n = 0;
        int dbg_every = getenv("DBG_EVERY") ? atoi(getenv("DBG_EVERY")) : 0;
        for (; nx < t0 + dur_us * 1000ull && len + (1 << 20) < cap; nx += smp_us * 1000, n++) {
            sleep_until(nx);
            while (ei < nE && t0 + E[ei].at_us * 1000ull <= nx) {
                put(E[ei].path, E[ei].val);
                ei++;
            }
            if (!dbg_every || getenv("SMP_TASKS"))
                for (int i = 0; i < nT; i++) {
                    len += sprintf(buf + len, "@@ %s %lu\n", T[i].name, now() - t0);
                    int r = pread(fds[i], buf + len, 16384, 0);
                    if (r > 0)
                        len += r;
                }
            if (dbg_every && n % dbg_every == 0) {
                len += sprintf(buf + len, "@@ DEBUG %lu\n", now() - t0);
                lseek(dbg, 0, 0);
                int r;
                while ((r = read(dbg, buf + len, 65536)) > 0) {
                    len += r;
                    if (len + (1 << 20) > cap)
                        break;
                }
            }
        }
        sleep_until(t0 + dur_us * 1000ull);
        *stop = 1;
        stats("after");
        FILE *o = fopen(getenv("SAMPLES") ?: "samples.txt", "w");
        fwrite(buf, 1, len, o);
        fclose(o);
    } else {
        for (int i = 0; i < nE; i++) {
            sleep_until(t0 + E[i].at_us * 1000ull);
            put(E[i].path, E[i].val);
        }
        sleep_until(t0 + dur_us * 1000ull);
        *stop = 1;
        stats("after");
    }
    printf(",\n\"end\":[");
    for (int i = 0; i < nT; i++) {
        char p[64];
        sprintf(p, "/proc/self/task/%d/sched", T[i].tid);
        printf("%s{\"name\":\"%s\",\"iters\":%ld,\"user_us\":%.1f,\"sched\":", i ? "," : "",
               T[i].name, T[i].iters, T[i].ran_cyc / mhz);
        dump(p);
        printf("}");
    }
    printf("],\"spawn_ended\":%ld}\n", spawn_ended);
    fflush(stdout);
    _exit(0);
}
