//! What stands in for the figures that were not measured, and how figures are kept.

use crate::pairs::Class;
use crate::sample::{Spread, percentile, quiet, spread};
use crate::steps::Run;

impl Run<'_> {
    /// Takes over what no program without root can measure, and what this machine did not allow.
    pub(crate) fn rest(&mut self) {
        let why = "needs the kernel's help";
        for key in [
            "switch_to_hw",
            "ipi_to_handler",
            "irq_entry_exit",
            "tick_handler",
        ] {
            self.stand_in(&[&format!("kernel_ops.{key}")], "ns", why);
        }
        if self.out.system.guest {
            for key in ["timer_irq", "timer_program", "idle_loop_exit"] {
                self.stand_in(&[&format!("kernel_ops.{key}")], "ns", why);
            }
        }
        let shape = &self.out.shape;
        let (sockets, cores) = (shape.sockets, shape.cores());
        let why = "no such pair of CPUs is allowed";
        if cores > sockets && self.value("transfer.same_socket").is_none() {
            let near = ["transfer.same_socket", "transfer.same_die"];
            match self.value("transfer.same_die") {
                // Every core of a package is under one cache, as far as was allowed.
                Some(v) => self
                    .out
                    .figures
                    .derived(near[0], v, "ns", "that of same_die"),
                None => self.stand_in(&near, "ns", why),
            }
        }
        if sockets > 1 && self.value("transfer.cross_socket").is_none() {
            self.stand_in(
                &["transfer.cross_socket", "transfer.same_socket"],
                "ns",
                why,
            );
        }
        for level in 1..=3 {
            if self.value(&format!("cache.l{level}.latency")).is_none() {
                let why = "the system does not describe this cache";
                self.stand_in(&[&format!("cache.l{level}.latency")], "ns", why);
            }
        }
    }

    /// The first measured pair of each class.
    pub(crate) fn representatives(&self) -> Vec<(Class, (u32, u32))> {
        let of = |class: Class| self.every.iter().rev().find(|p| p.class == class);
        let found = Class::ALL.into_iter().filter_map(of);
        found.map(|p| (p.class, (p.b, p.a))).collect()
    }

    /// Value and range of one operation.
    pub(crate) fn of(&self, batches: &[f64]) -> Spread {
        let v = quiet(batches).unwrap_or(0.0);
        let all = spread(batches).map_or(v, |s| s.lo);
        Spread {
            v,
            lo: all.min(v),
            hi: percentile(batches, 0.75).max(v),
        }
    }

    pub(crate) fn value(&self, path: &str) -> Option<f64> {
        self.out.figures.get(path).map(|f| f.value.v)
    }

    pub(crate) fn put(&mut self, path: &str, value: Spread, unit: &'static str, note: &str) {
        self.out.figures.measured(path, value, unit, note);
    }

    pub(crate) fn cannot(&mut self, path: &str, why: &str) {
        self.out.not_measured.push((path.into(), why.into()));
    }

    pub(crate) fn stand_in(&mut self, paths: &[&str], unit: &'static str, why: &str) {
        let taken = self.out.figures.from_base(self.base, paths, unit, why);
        let from = if taken {
            format!("{why}; taken from {}", self.base.id)
        } else {
            format!(
                "{why}; {} has no figure, so the file has none",
                self.base.id
            )
        };
        self.cannot(paths.first().unwrap_or(&""), &from);
    }
}
