#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <unistd.h>
typedef unsigned long long u64;
typedef unsigned u32;
struct rec {
    u32 cpu, depth;
    u64 cap;
    u64 min_i, max_i;
    u32 busy_factor, imb, nice_tries, flags, level, bi, nc, ns, nr, span;
    u64 maxcost, avg_idle, max_idle;
    char name[16];
};
static int cb(void *c, void *d, size_t s) {
    struct rec *r = d;
    printf("{\"cpu\":%u,\"depth\":%u,\"name\":\"%s\",\"cpu_capacity\":%llu,\"min_interval_ms\":%"
           "llu,\"max_interval_ms\":%llu,\"busy_factor\":%u,\"imbalance_pct\":%u,\"cache_nice_"
           "tries\":%u,\"flags\":%u,\"level\":%u,\"balance_interval_ms\":%u,\"newidle_call\":%u,"
           "\"newidle_success\":%u,\"newidle_ratio\":%u,\"span_weight\":%u,\"max_newidle_lb_cost_"
           "ns\":%llu,\"rq_avg_idle_ns\":%llu,\"rq_max_idle_balance_cost_ns\":%llu}\n",
           r->cpu, r->depth, r->name, r->cap, r->min_i, r->max_i, r->busy_factor, r->imb,
           r->nice_tries, r->flags, r->level, r->bi, r->nc, r->ns, r->nr, r->span, r->maxcost,
           r->avg_idle, r->max_idle);
    return 0;
}
int main(int c, char **v) {
    struct bpf_object *o = bpf_object__open(v[1]);
    if (!o || bpf_object__load(o)) {
        perror("load");
        return 1;
    }
    struct bpf_program *p;
    bpf_object__for_each_program(p, o) if (!bpf_program__attach(p)) return 1;
    sleep(1);
    struct ring_buffer *r = ring_buffer__new(bpf_object__find_map_fd_by_name(o, "rb"), cb, 0, 0);
    ring_buffer__consume(r);
    return 0;
}
