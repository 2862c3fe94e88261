//! What a program takes and gives back (mutexes, requests) is followed through its steps, so that a
//! give without a take is an error with its line.
use super::error::Error;
use super::names::find;
use super::node::{Fields, Node};
use super::steps::Lower;
use crate::workload::program::Op;

/// What a program has taken and not yet given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// A mutex.
    Mutex(u32),
    /// A request of a service, which waits for its reply.
    Served(u32),
    /// A measured request.
    Begun(u32),
}

impl Lower<'_> {
    pub(super) fn lower_lock(&mut self, verb: &str, value: &Node) -> Result<(), Error> {
        let k = find(self.source, value, "mutex", &self.names.mutexes)?;
        if verb == "lock" {
            self.take(Held::Mutex(k), value, "this task holds the mutex already")?;
            self.ops.push(Op::Lock(k));
        } else {
            self.give(Held::Mutex(k), value, "unlock without lock")?;
            self.ops.push(Op::Unlock(k));
        }
        Ok(())
    }

    pub(super) fn lower_cond_wait(
        &mut self,
        fields: &Fields<'_>,
        value: &Node,
    ) -> Result<(), Error> {
        let cond = find(self.source, value, "condition variable", &self.names.conds)?;
        let node = fields.need("mutex", "a cond_wait")?;
        let mutex = find(self.source, node, "mutex", &self.names.mutexes)?;
        if !self.held.contains(&Held::Mutex(mutex)) {
            let message =
                "cond_wait with a mutex that this task does not hold; expected a lock first";
            return Err(self.source.error(node.span.clone(), message));
        }
        self.ops.push(Op::CondWait { cond, mutex });
        Ok(())
    }

    pub(super) fn lower_request(
        &mut self,
        verb: &str,
        f: &Fields<'_>,
        value: &Node,
    ) -> Result<(), Error> {
        let bytes = |default| self.bytes(f, default);
        match verb {
            "begin" | "end" => {
                let name = value.str(self.source, "the name of a request")?;
                if self.names.services.contains_key(name) {
                    let message = format!(
                        "'{name}' is a service, whose requests are measured under that name; \
                         expected another one"
                    );
                    return Err(self.source.error(value.span.clone(), message));
                }
                let k = self.kind_of_request(value, name)?;
                if verb == "end" {
                    self.give(
                        Held::Begun(k),
                        value,
                        "the end of a request that was not begun",
                    )?;
                    self.ops.push(Op::ReqEnd(k));
                    return Ok(());
                }
                let from = f
                    .get("from")
                    .map_or(Ok("now"), |n| n.str(self.source, "a text"))?;
                let op = match from {
                    "now" => Op::ReqStart(k),
                    "due" => Op::ReqStartDue(k),
                    _ => {
                        let message = format!("'{from}'; expected \"now\" or \"due\"");
                        return Err(self.source.error(value.span.clone(), message));
                    }
                };
                self.take(Held::Begun(k), value, "the request was begun already")?;
                self.ops.push(op);
            }
            "request" => {
                let bytes = bytes(100)?;
                let service = find(self.source, value, "service", &self.names.services)?;
                let name = self.w.services[service as usize].clone();
                let k = self.kind_of_request(value, &name)?;
                self.ops
                    .extend([Op::ReqStart(k), Op::Call { service, bytes }, Op::ReqEnd(k)]);
            }
            "serve" => {
                let service = find(self.source, value, "service", &self.names.services)?;
                self.take(
                    Held::Served(service),
                    value,
                    "the request before is not answered",
                )?;
                self.ops.push(Op::Accept(service));
            }
            _ => {
                let bytes = bytes(100)?;
                let service = find(self.source, value, "service", &self.names.services)?;
                self.give(Held::Served(service), value, "a reply without a request")?;
                self.ops.push(Op::Reply { service, bytes });
            }
        }
        Ok(())
    }

    fn take(&mut self, held: Held, node: &Node, message: &str) -> Result<(), Error> {
        let taken = self.held.insert(held);
        if taken {
            Ok(())
        } else {
            Err(self.source.error(node.span.clone(), message))
        }
    }

    fn give(&mut self, held: Held, node: &Node, message: &str) -> Result<(), Error> {
        let given = self.held.remove(&held);
        if given {
            Ok(())
        } else {
            Err(self.source.error(node.span.clone(), message))
        }
    }
}
