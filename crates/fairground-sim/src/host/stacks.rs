//! Time by stack of functions, for flame graphs and folded stacks; kept only if asked for.

use crate::cache::Ps;

/// One way to a place, through the functions that were entered and not left.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    place: usize,
    outer: u32,
    self_ps: Ps,
    calls: u64,
    inner: Vec<u32>,
}

/// A tree of functions; node 0 is the root, which is no function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stacks {
    nodes: Vec<Node>,
    now: u32,
}

/// Time in one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Functions, outermost first.
    pub functions: Vec<&'static str>,
    /// Time in the innermost one itself, ns.
    pub self_ns: u64,
    /// How often it was entered this way.
    pub calls: u64,
}

impl Default for Stacks {
    fn default() -> Self {
        let root = Node {
            place: usize::MAX,
            outer: 0,
            self_ps: 0,
            calls: 0,
            inner: Vec::new(),
        };
        Self {
            nodes: vec![root],
            now: 0,
        }
    }
}

impl Stacks {
    /// The innermost function has used `ps`.
    pub fn charge(&mut self, ps: Ps) {
        self.nodes[self.now as usize].self_ps += ps;
    }

    /// `place`, which is none of the functions, has used `ps` in `calls` calls, within the
    /// innermost one if there is any.
    pub fn charge_other(&mut self, place: usize, ps: Ps, calls: u64) {
        if ps + calls > 0 {
            let node = self.inner(self.now, place);
            self.nodes[node as usize].self_ps += ps;
            self.nodes[node as usize].calls += calls;
        }
    }

    /// `place` is entered.
    pub fn enter(&mut self, place: usize) {
        self.now = self.inner(self.now, place);
        self.nodes[self.now as usize].calls += 1;
    }

    /// The innermost function has been entered before.
    pub fn reentered(&mut self) {
        self.nodes[self.now as usize].calls -= 1;
    }

    /// The innermost function is left.
    pub fn leave(&mut self) {
        self.now = self.nodes[self.now as usize].outer;
    }

    fn inner(&mut self, outer: u32, place: usize) -> u32 {
        let inner = &self.nodes[outer as usize].inner;
        let known = inner
            .iter()
            .find(|n| self.nodes[**n as usize].place == place);
        if let Some(known) = known {
            return *known;
        }
        let new = self.nodes.len() as u32;
        self.nodes.push(Node {
            place,
            outer,
            self_ps: 0,
            calls: 0,
            inner: Vec::new(),
        });
        self.nodes[outer as usize].inner.push(new);
        new
    }

    /// All stacks in which time was spent or that were entered, outer ones before inner ones.
    pub fn rows(&self, ns: Ps) -> Vec<Stack> {
        let names: Vec<&'static str> = super::function_names().collect();
        let mut rows: Vec<Stack> = Vec::new();
        let mut todo: Vec<(u32, Vec<&'static str>)> = vec![(0, Vec::new())];
        while let Some((at, functions)) = todo.pop() {
            let node = &self.nodes[at as usize];
            if at != 0 && node.self_ps + node.calls > 0 {
                rows.push(Stack {
                    functions: functions.clone(),
                    self_ns: node.self_ps / ns,
                    calls: node.calls,
                });
            }
            for inner in node.inner.iter().rev() {
                let mut path = functions.clone();
                path.push(names[self.nodes[*inner as usize].place]);
                todo.push((*inner, path));
            }
        }
        rows.sort_by(|a, b| a.functions.cmp(&b.functions));
        rows
    }
}
