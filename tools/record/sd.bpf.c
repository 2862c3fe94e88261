// Dumps the scheduler domains of each CPU once (read through the pelt_cfs_tp tracepoint).
#include "core.bpf.h"
struct sched_domain {
    struct sched_domain *parent, *child;
    unsigned long min_interval, max_interval;
    unsigned int busy_factor, imbalance_pct, cache_nice_tries;
    int flags, level;
    unsigned int balance_interval, newidle_call, newidle_success, newidle_ratio;
    u64 max_newidle_lb_cost;
    char *name;
    unsigned int span_weight;
} CORE;
struct rq {
    int cpu;
    unsigned long cpu_capacity;
    struct sched_domain *sd;
    u64 max_idle_balance_cost, avg_idle;
} CORE;
struct cfs_rq {
    struct rq *rq;
} CORE;
struct rec {
    u32 cpu, depth;
    u64 cap;
    u64 min_i, max_i;
    u32 busy_factor, imb, nice_tries, flags, level, bi, nc, ns, nr, span;
    u64 maxcost, avg_idle, max_idle;
    char name[16];
};
struct {
    __uint(type, 27);
    __uint(max_entries, 1 << 16);
} rb SEC(".maps");
struct {
    __uint(type, 2);
    __uint(max_entries, 8);
    __type(key, u32);
    __type(value, u64);
} seen SEC(".maps");
SEC("raw_tp/pelt_cfs_tp") int cfs(u64 *ctx) {
    struct cfs_rq *q = (void *)ctx[0];
    struct rq *rq = BPF_CORE_READ(q, rq);
    u32 c = BPF_CORE_READ(rq, cpu);
    u64 *s = bpf_map_lookup_elem(&seen, &c);
    if (!s || *s)
        return 0;
    *s = 1;
    struct sched_domain *sd = BPF_CORE_READ(rq, sd);
    for (int i = 0; i < 3; i++) {
        if (!sd)
            break;
        struct rec *r = bpf_ringbuf_reserve(&rb, sizeof *r, 0);
        if (!r)
            return 0;
        r->cpu = c;
        r->depth = i;
        r->cap = BPF_CORE_READ(rq, cpu_capacity);
        r->min_i = BPF_CORE_READ(sd, min_interval);
        r->max_i = BPF_CORE_READ(sd, max_interval);
        r->busy_factor = BPF_CORE_READ(sd, busy_factor);
        r->imb = BPF_CORE_READ(sd, imbalance_pct);
        r->nice_tries = BPF_CORE_READ(sd, cache_nice_tries);
        r->flags = BPF_CORE_READ(sd, flags);
        r->level = BPF_CORE_READ(sd, level);
        r->bi = BPF_CORE_READ(sd, balance_interval);
        r->nc = BPF_CORE_READ(sd, newidle_call);
        r->ns = BPF_CORE_READ(sd, newidle_success);
        r->nr = BPF_CORE_READ(sd, newidle_ratio);
        r->span = BPF_CORE_READ(sd, span_weight);
        r->maxcost = BPF_CORE_READ(sd, max_newidle_lb_cost);
        r->avg_idle = BPF_CORE_READ(rq, avg_idle);
        r->max_idle = BPF_CORE_READ(rq, max_idle_balance_cost);
        char *n = BPF_CORE_READ(sd, name);
        bpf_probe_read_kernel_str(r->name, 16, n);
        bpf_ringbuf_submit(r, 0);
        sd = BPF_CORE_READ(sd, parent);
    }
    return 0;
}
