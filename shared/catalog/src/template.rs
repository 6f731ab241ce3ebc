//! Texts with gaps: `{{name}}` stands for a value. What is put in is never read as a template again.

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Gap(String),
}

/// A text with gaps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    parts: Vec<Part>,
}

/// Why a text is no template; completes "`field` …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Braces are opened and not closed.
    #[error("opens `{{{{` and does not close it")]
    Open,
    /// What stands between braces is no name.
    #[error(
        "has something between `{{{{` and `}}}}` that is not a letter followed by at most 63 letters, digits and `_`"
    )]
    Name,
}

impl Template {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or(TemplateError::Open)?;
            let name = name.trim();
            if !is_name(name) {
                return Err(TemplateError::Name);
            }
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Gap(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The names of its gaps, in order; a name may come twice.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Gap(name) => Some(name.as_str()),
        })
    }

    /// The text with its gaps filled; a gap without a value stays empty.
    pub fn fill(&self, value: impl Fn(&str) -> Option<String>) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Gap(name) => value(name).unwrap_or_default(),
        };
        self.parts.iter().map(part).collect()
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, TemplateError> {
        Template::parse(text)
            .map(|template| template.fill(|name| (name == "a").then(|| "{{b}}".to_owned())))
    }

    #[test]
    fn gaps_are_filled_once_and_unknown_ones_stay_empty() {
        assert_eq!(filled("x {{ a }}-{{b}} } {"), Ok("x {{b}}- } {".to_owned()));
        assert_eq!(filled(""), Ok(String::new()));
        assert_eq!(filled("{{a"), Err(TemplateError::Open));
        assert_eq!(filled("{{a b}}"), Err(TemplateError::Name));
        assert_eq!(filled("{{}}"), Err(TemplateError::Name));
    }
}
