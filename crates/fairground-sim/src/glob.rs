//! Patterns of names, as in a shell, but for `/`, which is a character like others.

/// Whether `text` fits `pattern`, in which `*` stands for any text and `?` for any character.
///
/// Takes the product of both lengths at most: of two stars only the last one has to be moved.
#[must_use]
pub fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // The last star, and up to where it reaches.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, reach)) = &mut star else {
                    return false;
                };
                *reach += 1;
                (p, t) = (*at + 1, *reach);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, text) in [
            ("a*", "a1-hogs"),
            ("*", ""),
            ("e?-*", "e1-quota"),
            ("*spr*", "udp_rr-spr-75"),
            ("udp_rr-*-75", "udp_rr-spr-75"),
            ("a**b", "ab"),
            ("*ab", "aab"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("a*", "b1"),
            ("a?", "a"),
            ("udp", "udp_rr"),
            ("udp_rr-*-75", "udp_rr-spr-100"),
            ("", "a"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_are_no_matter() {
        let pattern = "*".repeat(40) + "a*a*a*a*b";
        assert!(!fits(&pattern, &"a".repeat(2000)));
    }
}
