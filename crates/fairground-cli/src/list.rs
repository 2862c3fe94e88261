//! `fairground list`: what can be named, from the same rows in which the other commands look
//! names up.

use fairground::policy::{CATALOGUE, Features, PROFILES, decisions};
use fairground_report::{Better, Catalogue, LIMITED, MetricInfo};
use fairground_sim::machine_file::Machine;
use fairground_sim::workload::{Env, Known, Workload};
use serde_json::{Value, json};

use crate::args::{ListArgs, Listing};
use crate::configs::{self, Shape, Shown};
use crate::failure::Failure;
use crate::glue;
use crate::output::stdout;
use crate::wrap::wrap;

/// Columns that nothing may reach.
const WIDTH: usize = 99;

/// One thing that has a name.
struct Row {
    /// Its cells; the last may have several lines, and is wrapped.
    cells: Vec<String>,
    json: Value,
}

type Pairs = &'static [(&'static str, &'static str)];

/// Prints a listing.
///
/// # Errors
/// Standard output cannot be written.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    let (header, rows): (&[&str], Vec<Row>) = match args.what {
        Listing::Configs => return stdout(&configs_on(args)?),
        _ if args.machine.is_some() => {
            let message = "--machine says for which machine configurations are listed";
            let help = "it goes with `fairground list configs`";
            return Err(Failure::with_help(message, help));
        }
        Listing::Machines => (
            &["machine", "CPUs", "sockets", "nodes", "LLCs", "name"],
            machines()?,
        ),
        Listing::Workloads => (&["workload", "what it does, and its options"], workloads()),
        Listing::Patches => (
            &["patch", "what it does, where it is from, and what it sets"],
            patches(),
        ),
        Listing::Profiles => (
            &[
                "profile",
                "what it is, and what it sets on top of the default",
            ],
            profiles(),
        ),
        Listing::Metrics => (&["metric", "unit", "better", "what it is"], metrics()?),
        Listing::Decisions => (
            &["decision", "default", "what it decides, and its values"],
            all_decisions(),
        ),
    };
    stdout(&if args.json {
        let rows = rows.into_iter().map(|row| row.json).collect();
        format!("{:#}\n", Value::Array(rows))
    } else {
        table(header, &rows)
    })
}

fn configs_on(args: &ListArgs) -> Result<String, Failure> {
    let all = configs::all()?;
    let machine = match (&args.machine, args.cpus) {
        (Some(name), Some(cpus)) => Some(Machine::from_path_or_id(name)?.shrunk(cpus)?),
        (Some(name), None) => Some(Machine::from_path_or_id(name)?),
        (None, _) => None,
    };
    let shown = machine.as_ref().map(|machine| Shown {
        machine: &machine.id,
        shape: Shape::new(&machine.topology),
        whole: args.whole,
    });
    Ok(if args.json {
        format!("{:#}\n", configs::json(&all, shown))
    } else {
        configs::text(&all, shown)
    })
}

fn machines() -> Result<Vec<Row>, Failure> {
    let row = |id| {
        let m = Machine::builtin(id)?;
        let t = &m.topology;
        let counts = [t.nr_cpus(), t.nr_sockets(), t.nr_nodes(), t.nr_llcs()];
        let mut cells = vec![m.id.clone()];
        cells.extend(counts.map(|n| n.to_string()));
        cells.push(m.name.clone());
        Ok(Row {
            cells,
            json: json!({
                "name": m.id, "what": m.name, "uarch": m.uarch, "arch": m.arch,
                "hash": m.hash(), "cpus": t.nr_cpus(), "cores": t.nr_cores(),
                "sockets": t.nr_sockets(), "nodes": t.nr_nodes(), "llcs": t.nr_llcs(),
                "assumed_figures": m.assumed().len(), "figures": m.figures().count(),
            }),
        })
    };
    Machine::builtin_ids().map(row).collect()
}

fn workloads() -> Vec<Row> {
    let row = |k: &Known| Row {
        cells: vec![k.name.into(), format!("{}\n{}", k.what, k.synopsis)],
        json: json!({ "name": k.name, "what": k.what, "options": k.synopsis }),
    };
    Workload::known().iter().map(row).collect()
}

fn patches() -> Vec<Row> {
    let row = |p: &fairground::policy::Patch| {
        let change = |(name, value): &(&str, &str)| {
            let base = p.base.iter().find(|(n, _)| n == name);
            let base = base.map_or(String::new(), |(_, v)| format!(" (base: {v})"));
            format!("{name} = {value}{base}")
        };
        let sets: Vec<String> = p.sets.iter().map(change).collect();
        Row {
            cells: vec![
                p.name.into(),
                format!("{}\n{}\n{}", p.what, p.origin, sets.join(", ")),
            ],
            json: json!({
                "name": p.name, "what": p.what, "origin": p.origin, "seed": p.seed,
                "sets": pairs(p.sets), "base": pairs(p.base),
            }),
        }
    };
    CATALOGUE.iter().map(row).collect()
}

fn profiles() -> Vec<Row> {
    let row = |p: &fairground::policy::Profile| {
        let sets: Vec<String> = p.sets.iter().map(|(n, v)| format!("{n}={v}")).collect();
        Row {
            cells: vec![p.name.into(), format!("{}\n{}", p.what, sets.join(" "))],
            json: json!({ "name": p.name, "what": p.what, "sets": pairs(p.sets) }),
        }
    };
    PROFILES.iter().map(row).collect()
}

fn metrics() -> Result<Vec<Row>, Failure> {
    let own = own_metrics()?;
    let twice = |name: &str| own.iter().filter(|o| o.info.name == name).count() > 1;
    let row = |m: &MetricInfo, workloads: Option<&[String]>| {
        let better = match m.better {
            Some(Better::Lower) => "lower",
            Some(Better::Higher) => "higher",
            None => "-",
        };
        let what = match workloads {
            Some(lines) if twice(&m.name) => format!("In {}: {}", lines.join(", "), m.description),
            _ => m.description.clone(),
        };
        Row {
            json: json!({
                "name": m.name, "unit": m.unit, "better": m.better, "what": what,
                "workloads": workloads,
            }),
            cells: vec![m.name.clone(), m.unit.clone(), better.into(), what],
        }
    };
    let of_workloads = own.iter().map(|o| row(&o.info, Some(&o.workloads)));
    let others = Catalogue::new(LIMITED.iter().map(|&m| m.into()));
    let others = others.rows().iter().map(|m| row(m, None));
    Ok(of_workloads.chain(others).collect())
}

/// What benchmarks measure by themselves, with the command lines that do. A name that stands for
/// another direction or unit in some of them is there more than once.
struct Own {
    info: MetricInfo,
    workloads: Vec<String>,
}

fn own_metrics() -> Result<Vec<Own>, Failure> {
    let mut own: Vec<Own> = Vec::new();
    for line in Workload::known().iter().flat_map(Known::forms) {
        let argv: Vec<&str> = line.split(' ').collect();
        // What is measured does not depend on the machine, so the smallest does.
        let workload = Workload::from_argv(&argv, &Env { cpus: 1 }).map_err(Failure::new)?;
        for info in glue::metric_info(&workload, &[]) {
            let key = |m: &MetricInfo| (m.name.clone(), m.unit.clone(), m.better);
            match own.iter_mut().find(|o| key(&o.info) == key(&info)) {
                Some(known) => known.workloads.push(line.clone()),
                None => {
                    let namesake = own.iter().rposition(|o| o.info.name == info.name);
                    let workloads = vec![line.clone()];
                    let at = namesake.map_or(own.len(), |at| at + 1);
                    own.insert(at, Own { info, workloads });
                }
            }
        }
    }
    Ok(own)
}

fn all_decisions() -> Vec<Row> {
    let default = Features::default();
    let row = |d: &fairground::policy::Decision| {
        let value = (d.get)(&default);
        Row {
            json: json!({
                "name": d.name, "what": d.what, "values": d.values, "default": value,
            }),
            cells: vec![d.name.into(), value, format!("{}\n{}", d.what, d.values)],
        }
    };
    decisions().iter().map(row).collect()
}

fn pairs(pairs: Pairs) -> Value {
    pairs.iter().map(|(n, v)| (*n, json!(v))).collect()
}

/// Columns two spaces apart; the last one wrapped.
fn table(header: &[&str], rows: &[Row]) -> String {
    let head: Vec<String> = header.iter().map(|h| (*h).into()).collect();
    let last = header.len() - 1;
    let width = |column: usize| {
        let cells = rows.iter().map(|row| &row.cells[column]);
        cells
            .chain([&head[column]])
            .map(String::len)
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..last).map(width).collect();
    let indent = widths.iter().map(|w| w + 2).sum::<usize>();
    let mut text = String::new();
    for cells in std::iter::once(&head).chain(rows.iter().map(|row| &row.cells)) {
        for (cell, width) in cells.iter().zip(&widths) {
            text += &format!("{cell:<width$}  ");
        }
        let lines = cells[last]
            .lines()
            .flat_map(|line| wrap(line, WIDTH - indent));
        for (number, line) in lines.enumerate() {
            if number > 0 {
                text += &" ".repeat(indent);
            }
            text += &line;
            text += "\n";
        }
    }
    text
}
