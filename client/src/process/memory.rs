//! The memory of an agent and of the processes that it has started (Linux).

use super::sweep::Mark;

/// An agent and the processes that it has started: its descendants, and the processes with its mark.
#[derive(Debug, Clone)]
pub struct ProcessTree {
    leader: Option<u32>,
    mark: Option<Mark>,
}

impl ProcessTree {
    pub(super) fn new(leader: Option<u32>, mark: Option<Mark>) -> Self {
        Self { leader, mark }
    }
}

/// Returns the resident memory of each tree in bytes. A page that processes share counts in each of them.
/// Blocks, because it reads two files of every process of the system. On systems other than Linux it is 0.
pub fn resident_bytes(trees: &[ProcessTree]) -> Vec<u64> {
    #[cfg(target_os = "linux")]
    {
        linux::resident_bytes(trees)
    }
    #[cfg(not(target_os = "linux"))]
    {
        vec![0; trees.len()]
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::fs;

    use super::super::sweep::linux::{Process, all, contains, marks_of};
    use super::ProcessTree;

    pub(super) fn resident_bytes(trees: &[ProcessTree]) -> Vec<u64> {
        // The trees by the ids of their processes.
        let mut members: HashMap<i32, usize> = HashMap::new();
        let mut others = Vec::new();
        for process in all() {
            match tree_of(&process, trees) {
                Some(tree) => drop(members.insert(process.id, tree)),
                None => others.push(process),
            }
        }
        // Descendants without a mark, or of another user, whose environment is not readable.
        loop {
            let before = others.len();
            others.retain(|process| match members.get(&process.parent) {
                Some(&tree) => {
                    members.insert(process.id, tree);
                    false
                }
                None => true,
            });
            if others.len() == before {
                break;
            }
        }
        let mut bytes = vec![0_u64; trees.len()];
        for (id, tree) in members {
            if let Some(sum) = bytes.get_mut(tree) {
                *sum = sum.saturating_add(resident(id).unwrap_or_default());
            }
        }
        bytes
    }

    /// Returns the tree whose agent this process is, or whose mark it has.
    fn tree_of(process: &Process, trees: &[ProcessTree]) -> Option<usize> {
        let id = u32::try_from(process.id).ok();
        let led = trees.iter().position(|tree| tree.leader == id);
        led.or_else(|| {
            let marks = marks_of(process.id)?;
            let carries = |tree: &ProcessTree| {
                let mark = tree.mark.as_ref();
                mark.is_some_and(|mark| contains(&marks, mark))
            };
            trees.iter().position(carries)
        })
    }

    fn resident(id: i32) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1 << 10)
    }
}
