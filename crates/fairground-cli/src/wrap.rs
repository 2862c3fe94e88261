//! Words in lines of a width, for terminals and for pages.

/// The words of `text` in lines of at most `width` bytes, but for a word that is longer.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("begins with one line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= width {
            *line += " ";
            *line += word;
        } else {
            lines.push(word.into());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn a_line_ends_before_the_word_that_does_not_fit() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(
            wrap("a-long-word is whole", 4),
            ["a-long-word", "is", "whole"]
        );
        assert_eq!(wrap(" \n", 4), [""]);
    }
}
