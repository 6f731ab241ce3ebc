//! What an expression may say, decided before it can run: nothing that leaves the process, nothing that depends on the
//! clock, no functions of its own (they could call themselves for ever), and no name that nobody defines.

use std::collections::BTreeMap;
use std::str::FromStr;

use dsntk_feel::bif::Bif;
use dsntk_feel_parser::AstNode;

use super::names::{self, Names};
use super::tree;

/// Most variables of one `for`. The library steps through all combinations even when one list is empty.
const FOR_VARIABLES_MAX: usize = 2;

/// How an expression names a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mention {
    /// In how many places.
    pub(super) places: u64,
    /// Whether one of them is evaluated again and again.
    pub(super) repeated: bool,
}

/// The variables that `node` names and how, or everything that is wrong with its meaning. The tree must not be deep: this walks it
/// on the stack.
pub(super) fn variables(
    node: &AstNode,
    names: &Names,
) -> Result<BTreeMap<String, Mention>, Vec<String>> {
    let mut checker = Checker {
        names,
        bound: Vec::new(),
        filters: 0,
        repeats: 0,
        free: BTreeMap::new(),
        found: Vec::new(),
    };
    checker.visit(node);
    checker.found.dedup();
    if checker.found.is_empty() { Ok(checker.free) } else { Err(checker.found) }
}

struct Checker<'a> {
    names: &'a Names,
    /// Names bound by the expression around the place that is looked at.
    bound: Vec<String>,
    /// Filters around it: inside one, the properties of an item are names, and nobody knows them yet.
    filters: usize,
    /// Repeated parts around it.
    repeats: usize,
    /// Variables that were named so far.
    free: BTreeMap<String, Mention>,
    found: Vec<String>,
}

impl Checker<'_> {
    fn visit(&mut self, node: &AstNode) {
        match node {
            AstNode::Name(name) => self.name(name.as_str()),
            AstNode::Path(object, property) => self.path(object, property),
            AstNode::FunctionDefinition(_, body) => self.function(body),
            AstNode::FunctionInvocation(callee, arguments) => self.call(callee, arguments),
            AstNode::For(contexts, body) => self.iterate(contexts, body),
            AstNode::Some(contexts, body) | AstNode::Every(contexts, body) => {
                self.quantify(contexts, body);
            }
            AstNode::Filter(list, predicate) => {
                self.visit(list);
                self.filters += 1;
                self.within(&["item"], |checker| checker.visit(predicate));
                self.filters -= 1;
            }
            AstNode::Context(entries) => self.context(entries),
            AstNode::QualifiedName(_) => {
                self.found.push("a type of this name does not exist".to_owned());
            }
            _ => tree::children(node).into_iter().for_each(|child| self.visit(child)),
        }
    }

    /// Looks at something that is evaluated again and again with `names` bound as well.
    fn within(&mut self, names: &[&str], look: impl FnOnce(&mut Self)) {
        let outer = self.bound.len();
        self.bound.extend(names.iter().map(|name| (*name).to_owned()));
        self.repeats += 1;
        look(self);
        self.repeats -= 1;
        self.bound.truncate(outer);
    }

    fn name(&mut self, name: &str) {
        if self.is_bound(name) {
            return;
        }
        if self.names.allow(name) {
            let mention = self.free.entry(name.to_owned()).or_default();
            mention.places += 1;
            mention.repeated |= self.repeats > 0;
        } else if Bif::from_str(name).is_ok() {
            self.found.push(format!("`{name}` is a function and must be called"));
        } else if self.filters == 0 || !names::is_single(name) {
            self.found.push(format!("unknown name `{name}`"));
        }
    }

    fn is_bound(&self, name: &str) -> bool {
        self.bound.iter().any(|bound| bound == name)
    }

    fn path(&mut self, object: &AstNode, property: &AstNode) {
        self.visit(object);
        if let AstNode::Name(name) = property
            && name.as_str().contains(['.', '/', '-', '\'', '+', '*'])
        {
            self.found.push(format!(
                "`{name}` is read as one name; put what is before the operator in parentheses"
            ));
        }
    }

    fn function(&mut self, body: &AstNode) {
        self.found.push(if matches!(body, AstNode::FunctionBody(_, true)) {
            "external functions are not allowed".to_owned()
        } else {
            "a function can be defined only as the second argument of `sort`".to_owned()
        });
    }

    fn call(&mut self, callee: &AstNode, arguments: &AstNode) {
        let function = match callee {
            AstNode::Name(name) => name.as_str(),
            other => {
                self.found.push("only built-in functions can be called".to_owned());
                return self.visit(other);
            }
        };
        let shadowed = self.names.known.contains(function) || self.is_bound(function);
        match Bif::from_str(function) {
            Ok(_) if shadowed => self.found.push(format!("`{function}` is no function here")),
            Ok(Bif::Now | Bif::Today) => self.found.push(format!(
                "`{function}()` is not allowed, because a run must not depend on when it is executed; give the time as \
                 an input"
            )),
            Ok(_) => {}
            Err(_) => self.found.push(format!("unknown function `{function}`")),
        }
        for argument in tree::children(arguments) {
            let value = match argument {
                AstNode::NamedParameter(_, value) => value,
                value => value,
            };
            match value {
                AstNode::FunctionDefinition(parameters, body) if function == "sort" => {
                    self.order(parameters, body);
                }
                value => self.visit(value),
            }
        }
    }

    /// The function that `sort` compares with.
    fn order(&mut self, parameters: &AstNode, body: &AstNode) {
        let AstNode::FunctionBody(body, false) = body else { return self.function(body) };
        let mut names = Vec::new();
        for parameter in tree::children(parameters) {
            if let AstNode::FormalParameter(name, _) = parameter
                && let AstNode::ParameterName(name) = &**name
            {
                names.push(name.as_str());
            }
        }
        self.within(&names, |checker| checker.visit(body));
    }

    fn iterate(&mut self, contexts: &AstNode, body: &AstNode) {
        let contexts = tree::children(contexts);
        if contexts.len() > FOR_VARIABLES_MAX {
            self.found.push(format!(
                "a `for` takes at most {FOR_VARIABLES_MAX} variables; nest a second one"
            ));
        }
        let mut names = vec!["partial"];
        for context in contexts {
            let parts = tree::children(context);
            let [AstNode::Name(name), sources @ ..] = parts.as_slice() else { continue };
            for source in sources {
                // A later list sees an earlier variable only as the list itself.
                let reuses = matches!(source, AstNode::Name(source) if names[1..].contains(&source.as_str()));
                if !reuses {
                    self.visit(source);
                }
            }
            names.push(name.as_str());
        }
        self.within(&names, |checker| checker.visit(body));
    }

    fn quantify(&mut self, contexts: &AstNode, body: &AstNode) {
        let (outer, repeats) = (self.bound.len(), self.repeats);
        for context in tree::children(contexts) {
            if let AstNode::QuantifiedContext(name, source) = context
                && let AstNode::Name(name) = &**name
            {
                self.visit(source);
                self.bound.push(name.to_string());
                // All that follows is inside.
                self.repeats += 1;
            }
        }
        self.visit(body);
        self.bound.truncate(outer);
        self.repeats = repeats;
    }

    fn context(&mut self, entries: &[AstNode]) {
        let outer = self.bound.len();
        for entry in entries {
            if let AstNode::ContextEntry(key, value) = entry {
                self.visit(value);
                if let AstNode::ContextEntryKey(key) = &**key {
                    self.bound.push(key.to_string());
                }
            }
        }
        self.bound.truncate(outer);
    }
}
