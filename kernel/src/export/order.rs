//! The order in which a tree is told: the active branch, then one branch after the other, each after
//! the one it left. No entry is told twice, and nothing here calls itself: a session may be as deep as
//! it is long.

use std::collections::HashSet;

use crate::tree::{EntryId, Nodes};

/// Entries that follow one another until the leaf, or an entry that nothing follows.
#[derive(Debug)]
pub(super) struct Branch {
    /// The node it leaves; `None` when it begins at a root.
    pub(super) from: Option<usize>,
    /// Numbers of its nodes, of which there is at least one.
    pub(super) nodes: Vec<usize>,
}

/// A line of the tree's picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) node: usize,
    /// How many branchings lie between it and the active branch.
    pub(super) depth: usize,
    /// It is the first of a branch.
    pub(super) branches: bool,
}

/// The tree, seen from the leaf.
#[derive(Debug)]
pub(super) struct Order<'a> {
    nodes: &'a Nodes,
    /// By number.
    active: Vec<bool>,
    leaf: Option<usize>,
}

impl<'a> Order<'a> {
    /// `path` leads from a root to the leaf.
    pub(super) fn new(nodes: &'a Nodes, path: &[EntryId]) -> Self {
        let on_path: HashSet<&EntryId> = path.iter().collect();
        let ids = nodes.all.iter().map(|node| node.entry.id());
        let active = ids.clone().map(|id| on_path.contains(id)).collect();
        let leaf = path
            .last()
            .and_then(|leaf| ids.clone().position(|id| id == leaf));
        Self {
            nodes,
            active,
            leaf,
        }
    }

    pub(super) fn is_active(&self, node: usize) -> bool {
        self.active[node]
    }

    pub(super) fn is_leaf(&self, node: usize) -> bool {
        self.leaf == Some(node)
    }

    /// All branches; the first one is the active one, if there is a leaf.
    pub(super) fn branches(&self) -> Vec<Branch> {
        let mut branches = Vec::new();
        let mut open: Vec<(Option<usize>, usize)> = Vec::new();
        let roots = &self.nodes.roots;
        let first = self.goes_on(None, roots);
        let others = roots.iter().rev().filter(|root| Some(**root) != first);
        open.extend(others.map(|root| (None, *root)));
        open.extend(first.map(|root| (None, root)));
        while let Some((from, start)) = open.pop() {
            let mut nodes = Vec::new();
            let mut next = Some(start);
            while let Some(node) = next {
                nodes.push(node);
                let children = &self.nodes.all[node].children;
                next = self.goes_on(Some(node), children);
                let others = children.iter().rev().filter(|child| Some(**child) != next);
                open.extend(others.map(|child| (Some(node), *child)));
            }
            branches.push(Branch { from, nodes });
        }
        branches
    }

    /// The nodes that other branches begin with at this one.
    pub(super) fn others(&self, node: usize) -> impl Iterator<Item = usize> {
        let children = &self.nodes.all[node].children;
        let next = self.goes_on(Some(node), children);
        children
            .iter()
            .copied()
            .filter(move |child| Some(*child) != next)
    }

    /// The rows of the picture: what branched off stands before what goes on, so that only branches
    /// cost width.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::with_capacity(self.nodes.all.len());
        let mut open = Vec::new();
        self.push(&mut open, None, &self.nodes.roots, 0);
        while let Some(row) = open.pop() {
            rows.push(row);
            self.push(
                &mut open,
                Some(row.node),
                &self.nodes.all[row.node].children,
                row.depth,
            );
        }
        rows
    }

    /// Puts what follows a node on the stack, what goes on below.
    fn push(&self, open: &mut Vec<Row>, node: Option<usize>, children: &[usize], depth: usize) {
        let next = self.goes_on(node, children);
        open.extend(next.map(|node| Row {
            node,
            depth,
            branches: false,
        }));
        let others = children.iter().rev().filter(|child| Some(**child) != next);
        open.extend(others.map(|node| Row {
            node: *node,
            depth: depth + 1,
            branches: true,
        }));
    }

    /// Which child goes on: the active one, else the latest. Behind the leaf none does.
    fn goes_on(&self, node: Option<usize>, children: &[usize]) -> Option<usize> {
        if node.is_some() && node == self.leaf {
            return None;
        }
        let active = children.iter().find(|child| self.active[**child]);
        active.or(children.last()).copied()
    }
}
