#!/bin/sh
# What a recording does not say about this machine's threads, for `fairground replay --attributes`:
# groups (cgroups of the cpu controller, and autogroups), affinity, policy; and ticks a second, where
# the kernel tells how it was built. Run it while the recording begins; threads that are created
# later have the group, CPUs and policy of their creator.
#
#     sh attributes.sh > groups.toml
set -eu

cd /proc
all=$(cat /sys/devices/system/cpu/online)
if [ -d /sys/fs/cgroup/cpu ]; then top=/sys/fs/cgroup/cpu; else top=/sys/fs/cgroup; fi

# One line a thread: TID <tab> group <tab> CPUs <tab> policy. Threads come and go meanwhile. One
# more for each autogroup with a nice value: nice <tab> group <tab> value. And one that says how
# many threads there are: all <tab> number. grep fails if one of them goes meanwhile.
threads() {
    {
        grep -sH -E '^([0-9]+:([a-z,]*,)?cpu(,[a-z,]*)?:|0::)' [0-9]*/task/[0-9]*/cgroup || :
        grep -sH autogroup [0-9]*/autogroup || :
        grep -sH '^Cpus_allowed_list:' [0-9]*/task/[0-9]*/status || :
        grep -sH . [0-9]*/task/[0-9]*/stat || :
    } | awk -v all="$all" '
        {
            split($0, at, ":"); n = split(at[1], path, "/")
            rest = substr($0, length(at[1]) + 2)
        }
        path[n] == "cgroup" {
            v1 = rest !~ /^0::/
            sub(/^[0-9]*:[^:]*:/, "", rest)
            if (v1 || !((path[3]) in group)) group[path[3]] = rest
        }
        path[n] == "autogroup" { split(rest, w, " "); auto[path[1]] = w[1]; nice[w[1]] = w[3] }
        path[n] == "status" { sub(/^[^:]*:[ \t]*/, "", rest); cpus[path[3]] = rest }
        path[n] == "stat" {
            sub(/^.*\) /, "", rest); split(rest, f, " ")
            policy[path[3]] = f[39]; process[path[3]] = path[1]
        }
        END {
            for (t in process) {
                g = group[t]; if (g == "") g = "/"
                if (g == "/" && (process[t] in auto)) {
                    g = auto[process[t]]
                    if (nice[g] + 0 != 0) told[g] = nice[g]
                }
                c = cpus[t]; if (c == all) c = ""
                p = policy[t] == 3 ? "batch" : policy[t] == 5 ? "idle" : ""
                if (g != "/" || c != "" || p != "") print t "\t" g "\t" c "\t" p
            }
            for (g in told) print "nice\t" g "\t" told[g] "\t"
            for (t in process) n_all++
            print "all\t\t" n_all + 0
        }'
}

# A group and those above it, each once, parents first.
groups() {
    cut -f 2 "$1" | awk '{
        n = split($0, part, "/"); path = ""
        for (i = 2; i <= n; i++) if (part[i] != "") { path = path "/" part[i]; print path }
    }' | sort -u | awk -F / '{ print NF "\t" $0 }' | sort -n -k 1,1 -s | cut -f 2
}

# Ticks a second, by the configuration of the running kernel.
hz() {
    {
        gzip -dc /proc/config.gz || cat "/boot/config-$(uname -r)" || :
    } 2>/dev/null | sed -n 's/^CONFIG_HZ=\([0-9]*\)$/\1/p'
}

# `0-2,7` as `0, 1, 2, 7`, in awk.
spread='function spread(text,    n, part, i, ends, k, out) {
        n = split(text, part, ",")
        for (i = 1; i <= n; i++) {
            if (split(part[i], ends, "-") < 2) ends[2] = ends[1]
            for (k = ends[1]; k <= ends[2]; k++) out = out (out == "" ? "" : ", ") k
        }
        return out
    }'

list=$(mktemp)
trap 'rm -f "$list"' EXIT
threads > "$list"
number=$(awk '$1 == "all" { print $2 }' "$list")
if [ "$number" = 0 ]; then
    echo "attributes.sh: no thread can be read in /proc" >&2
    exit 1
fi
echo "# Of $number threads, who is not named may use any CPU and is in no group below the root."
hz=$(hz)
if [ -n "$hz" ]; then echo "hz = $hz"; fi
echo
groups "$list" | while IFS= read -r path; do
    # systemd escapes characters of names by backslashes, which TOML takes for its own, as it does
    # quotes. awk would take backslashes of -v for its own, too.
    printf '[[cgroup]]\npath = "%s"\n' "$(printf '%s' "$path" | sed 's/[\\"]/\\&/g')"
    path="$path" awk -F '\t' '$1 == "nice" && $2 == ENVIRON["path"] { print "nice = " $3 }' "$list"
    dir=$top$path
    [ -r "$dir/cpu.shares" ] && printf '"cpu.shares" = %s\n' "$(cat "$dir/cpu.shares")"
    # The weight of an idle group reads 0.
    [ -r "$dir/cpu.weight" ] && [ "$(cat "$dir/cpu.weight")" -gt 0 ] && printf '"cpu.weight" = %s\n' "$(cat "$dir/cpu.weight")"
    [ -r "$dir/cpu.max" ] && printf '"cpu.max" = "%s"\n' "$(cat "$dir/cpu.max")"
    if [ -r "$dir/cpu.cfs_quota_us" ] && [ "$(cat "$dir/cpu.cfs_quota_us")" -gt 0 ]; then
        quota=$(cat "$dir/cpu.cfs_quota_us")
        printf '"cpu.max" = "%s %s"\n' "$quota" "$(cat "$dir/cpu.cfs_period_us")"
    fi
    for file in cpu.max.burst cpu.cfs_burst_us; do
        [ -r "$dir/$file" ] && [ "$(cat "$dir/$file")" -gt 0 ] &&
            printf '"cpu.max.burst" = %s\n' "$(cat "$dir/$file")"
    done
    [ -r "$dir/cpu.idle" ] && [ "$(cat "$dir/cpu.idle")" = 1 ] && echo '"cpu.idle" = true'
    # Of those that were set, the ones that are there. In v1 this is in another hierarchy, and the
    # threads' own CPUs have to do.
    if [ -r "$dir/cpuset.cpus.effective" ] && [ -n "$(cat "$dir/cpuset.cpus")" ]; then
        awk "$spread"' { print "\"cpuset.cpus\" = [" spread($0) "]" }' "$dir/cpuset.cpus.effective"
    fi
    echo
done
grep -v -E '^(nice|all)' "$list" | sort -k 2 | awk -F '\t' "$spread"'
    function flush() {
        if (tids == "") return
        print "[[thread]]\ntids = [" tids "]"
        gsub(/[\\"]/, "\\\\&", g)
        if (g != "/") print "cgroup = \"" g "\""
        if (c != "") print "cpus = [" c "]"
        if (p != "") print "policy = \"" p "\""
        print ""
        tids = ""
    }
    $2 != g || spread($3) != c || $4 != p { flush(); g = $2; c = spread($3); p = $4 }
    { tids = tids (tids == "" ? "" : ", ") $1 }
    END { flush() }'
