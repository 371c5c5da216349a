//! Lines: where they end, how long they may be.

use super::*;

async fn all(input: &[u8], limit: usize) -> Vec<Next> {
    let mut lines = Lines::new(input, limit);
    let mut found = Vec::new();
    loop {
        let next = lines.next().await.expect("a slice reads");
        let last = !matches!(next, Next::Line(_));
        found.push(next);
        if last {
            return found;
        }
    }
}

fn line(text: &'static [u8]) -> Next {
    Next::Line(Bytes::from_static(text))
}

#[tokio::test]
async fn lines_end_at_line_breaks_only() {
    assert_eq!(all(b"a\r\n\nbc\nrest", 9).await, [line(b"a\r"), line(b""), line(b"bc"), Next::End]);
}

/// case-C17: a line may be as long as the limit, not longer.
#[tokio::test]
async fn a_line_over_the_limit_is_not_read() {
    assert_eq!(all(b"abc\nabcd\n", 3).await, [line(b"abc"), Next::TooLong]);
    assert_eq!(all(b"abcd", 3).await, [Next::TooLong]);
}

#[tokio::test]
async fn long_lines_arrive_whole() {
    let long = vec![b'x'; 300_000];
    let input = [&long[..], b"\n", &long[..], b"\n"].concat();
    let expected = || Next::Line(Bytes::copy_from_slice(&long));
    assert_eq!(all(&input, 400_000).await, [expected(), expected(), Next::End]);
}

/// case-C17: what is held is bounded by the limit, however much comes.
#[tokio::test]
async fn the_buffer_is_bounded() {
    let mut lines = Lines::new(tokio::io::repeat(b'a'), 1 << 20);
    assert_eq!(lines.next().await.expect("it reads"), Next::TooLong);
    assert_eq!(lines.buffer.capacity(), 0);
}
