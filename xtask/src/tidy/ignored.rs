//! What the `.gitignore` at the root names is not of the repository, and is not checked.
//!
//! Read are patterns as they are there: a name, or a path from the root, with at most one `*`; a
//! `/` at the end is for directories only.

/// The patterns.
pub(super) struct Ignored(Vec<String>);

impl Ignored {
    /// From the text of the file.
    pub(super) fn read(text: &str) -> Self {
        let lines = text.lines().map(str::trim);
        let patterns = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(patterns.map(String::from).collect())
    }

    /// Whether the file or directory at `path`, from the root, is named.
    pub(super) fn has(&self, path: &str, is_dir: bool) -> bool {
        self.0.iter().any(|pattern| names(pattern, path, is_dir))
    }
}

fn names(pattern: &str, path: &str, is_dir: bool) -> bool {
    let (pattern, fits) = match pattern.strip_suffix('/') {
        Some(pattern) => (pattern, is_dir),
        None => (pattern, true),
    };
    // Without a slash it is a name, wherever it lies.
    let known = match pattern.contains('/') {
        true => path,
        false => path.rsplit('/').next().unwrap_or(path),
    };
    let pattern = pattern.trim_start_matches('/');
    fits && match pattern.split_once('*') {
        None => known == pattern,
        Some((head, tail)) => {
            let part = known.strip_prefix(head).and_then(|k| k.strip_suffix(tail));
            part.is_some_and(|part| !part.contains('/'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_what_git_ignores() {
        let ignored = Ignored::read("target/\n*.raw\n\n# a comment\n/tools/x\n/*.html\n");
        for (path, is_dir, named) in [
            ("target", true, true),
            ("fuzz/target", true, true),
            ("target", false, false),
            ("a/b.raw", false, true),
            ("tools/x", false, true),
            ("a/tools/x", false, false),
            ("page.html", false, true),
            ("docs/page.html", false, false),
            ("README.md", false, false),
        ] {
            assert_eq!(ignored.has(path, is_dir), named, "{path}");
        }
    }
}
