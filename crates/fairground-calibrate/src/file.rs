//! The text of a machine file (machines/README.md).

use std::fmt::Write as _;

use crate::figure::Figure;
use crate::plan::Calibration;
use crate::shape::{Numbering, Shape};
use crate::sysfs::Cache;

/// Key of `[sources]` for what was measured here.
const HERE: &str = "calibrate";

/// The file: `id` is the machine's short name, `base` that of the machine that stood in.
pub fn text(c: &Calibration, id: &str, base: &str) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_machine(&mut out, c, id);
    let _ = write_topology(&mut out, &c.shape);
    for level in 1..=3 {
        let _ = write_cache(&mut out, c, level);
    }
    for table in ["memory", "transfer", "atomics", "alu", "kernel_ops"] {
        let _ = writeln!(out, "\n[{table}]");
        for figure in c.figures.iter() {
            if let Some(key) = figure
                .path
                .strip_prefix(table)
                .and_then(|k| k.strip_prefix('.'))
            {
                let _ = writeln!(out, "{key} = {}", inline(figure));
            }
        }
    }
    for state in &c.system.idle {
        let (exit, residency) = (state.exit_us, state.residency_us);
        let _ = writeln!(out, "\n[[idle]]\nname = {}", quoted(&state.name));
        let _ = writeln!(out, "exit_latency_us = {exit}");
        let _ = writeln!(out, "target_residency_us = {residency}\nsrc = \"{HERE}\"");
    }
    let _ = write_end(&mut out, c, base);
    out
}

fn write_machine(out: &mut String, c: &Calibration, id: &str) -> std::fmt::Result {
    writeln!(out, "# Written by `fairground calibrate`")?;
    for (path, why) in &c.not_measured {
        writeln!(out, "# not measured: {path}: {}", one_line(why))?;
    }
    for warning in &c.warnings {
        writeln!(out, "# warning: {}", one_line(warning))?;
    }
    if c.is_disturbed() {
        writeln!(out, "# other programs were running: load {:.1}", c.load)?;
    }
    writeln!(out, "schema = 1\n\n[machine]\nid = {}", quoted(id))?;
    let kind = if c.system.guest { ", a guest" } else { "" };
    let name = format!("{}, {} CPUs{kind}", c.system.model, c.shape.cpus());
    writeln!(out, "name = {}", quoted(&name))?;
    writeln!(out, "uarch = {}", quoted(&c.system.model))?;
    writeln!(out, "arch = {}", quoted(std::env::consts::ARCH))?;
    if let Some(ghz) = c.figures.get("machine.model_ghz") {
        writeln!(out, "model_ghz = {}", inline(ghz))?;
    }
    Ok(())
}

fn write_topology(out: &mut String, s: &Shape) -> std::fmt::Result {
    writeln!(out, "\n[topology]\nsockets = {}", s.sockets)?;
    writeln!(out, "dies_per_socket = {}", s.dies_per_socket)?;
    writeln!(out, "cores_per_die = {}", s.cores_per_die)?;
    writeln!(out, "threads_per_core = {}", s.threads_per_core)?;
    writeln!(out, "cpus = {}", s.cpus())?;
    writeln!(out, "llc_domains_per_socket = {}", s.llcs_per_socket)?;
    writeln!(out, "numa_nodes_per_socket = {}", s.nodes_per_socket)?;
    writeln!(out, "cluster_cpus = {}", s.cluster_cpus)?;
    if !s.notes.is_empty() {
        writeln!(out, "note = {}", quoted(&s.notes.join("; ")))?;
    }
    writeln!(out, "slit = [")?;
    for row in &s.slit {
        writeln!(out, "  {row:?},")?;
    }
    let numbering = match s.numbering {
        Numbering::Linear => "linear".into(),
        Numbering::SiblingsApart => format!("linux: siblings are cpu and cpu+{}", s.cores()),
    };
    writeln!(out, "]\ncpu_numbering = {}", quoted(&numbering))?;
    if !s.capacities.is_empty() {
        writeln!(out, "cpu_capacity = {:?}", s.capacities)?;
    }
    Ok(())
}

/// A level, or the last one above it where the machine has fewer.
fn write_cache(out: &mut String, c: &Calibration, level: u32) -> std::fmt::Result {
    let nearest = |c: &&Cache| c.level <= level;
    let known = c.system.caches.iter().rev().find(nearest);
    let (size, ways, line) = known.map_or((32, 8, 64), |k| (k.size_kib, k.ways, k.line));
    let last = level == 3;
    let shared_by = match (last, c.shape.llcs_per_socket) {
        (false, _) => "core",
        (true, 1) => "socket",
        (true, _) => "die",
    };
    writeln!(out, "\n[[cache]]\nlevel = {level}\nsize_kib = {size}")?;
    // Some systems do not say; eight is common.
    writeln!(
        out,
        "ways = {}\nline = {line}",
        if ways == 0 { 8 } else { ways }
    )?;
    writeln!(out, "shared_by = \"{shared_by}\"")?;
    let path = format!("cache.l{level}.latency");
    let figure = c.figures.get(&path).cloned().unwrap_or_else(|| Figure {
        path,
        value: crate::sample::Spread {
            v: 0.0,
            lo: 0.0,
            hi: 0.0,
        },
        unit: "ns",
        conf: crate::figure::Conf::Estimate,
        note: "not known".into(),
    });
    writeln!(out, "latency = {}", inline(&figure))
}

fn write_end(out: &mut String, c: &Calibration, base: &str) -> std::fmt::Result {
    if c.system.idle.is_empty() {
        let why = "v = \"no cpuidle driver\", unit = \"text\", conf = \"estimate\"";
        writeln!(out, "\n[idle_note]\nbasis = {{ {why}, src = \"{HERE}\" }}")?;
    }
    writeln!(out, "\n[sources]")?;
    let how = format!(
        "fairground calibrate {} on {}, HZ={}: lower quartile of short batches",
        env!("CARGO_PKG_VERSION"),
        kernel_release(),
        c.hz
    );
    writeln!(out, "{HERE} = {}", quoted(&how))?;
    writeln!(
        out,
        "base = {}",
        quoted(&format!("figures of the machine {base}, not measured here"))
    )
}

fn inline(f: &Figure) -> String {
    use crate::figure::Conf;
    let mut text = format!("{{ v = {}", number(f.value.v));
    if f.value.lo < f.value.v || f.value.hi > f.value.v {
        let (v, lo, hi) = (f.value.v, f.value.lo, f.value.hi);
        let _ = write!(
            text,
            ", lo = {}, hi = {}",
            number(lo.min(v)),
            number(hi.max(v))
        );
    }
    let src = if f.conf == Conf::Estimate {
        "base"
    } else {
        HERE
    };
    let _ = write!(
        text,
        ", unit = \"{}\", conf = \"{}\", src = \"{src}\", note = {} }}",
        f.unit,
        f.conf.as_str(),
        quoted(&f.note)
    );
    text
}

/// Four digits or so: no measurement here is better.
fn number(v: f64) -> String {
    let digits = if v >= 1000.0 {
        0
    } else if v >= 100.0 {
        1
    } else {
        3
    };
    format!("{v:.digits$}")
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Version and patch level of the running kernel (6, 18), if its release begins with them.
#[must_use]
pub fn kernel_version() -> Option<(u32, u32)> {
    version(&rustix::system::uname().release().to_string_lossy())
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn kernel_release() -> String {
    let name = rustix::system::uname();
    format!("Linux {}", name.release().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figures;
    use crate::sample::Spread;

    #[test]
    fn a_release_begins_with_the_version() {
        assert_eq!(version("6.14.0-29-generic"), Some((6, 14)));
        assert_eq!(version("6.18-rc1"), Some((6, 18)));
        assert_eq!(version("mine"), None);
    }

    #[test]
    fn a_doubtful_figure_is_of_here_and_no_measurement() {
        let mut figures = Figures::default();
        let (v, lo, hi) = (61.0, 61.0, 61.0);
        figures.measured("memory.local", Spread { v, lo, hi }, "ns", "loads");
        figures.doubt("memory.local", "not memory alone");
        let text = inline(figures.get("memory.local").unwrap());
        let end = "conf = \"estimate\", src = \"calibrate\", note = \"loads; not memory alone\" }";
        assert!(text.ends_with(end), "{text}");
    }
}
