//! Parses a page of ours, and refuses foreign elements.

/// The elements of our pages.
const ELEMENTS: &str = "html head meta title style body a header main footer section h1 h2 h3 p br dl dt dd ul li div \
    table caption thead tbody tfoot tr th td span strong code pre details summary figure figcaption \
    svg rect circle line path text g em ol abbr time col colgroup small sup sub";
/// The attributes of our pages.
const ATTRIBUTES: &str = "lang charset http-equiv content name class href id scope colspan role title aria-label tabindex \
    viewBox x y x1 y1 x2 y2 cx cy r rx width height d text-anchor fill stroke open dir value";

fn has(list: &str, name: &str) -> bool {
    list.split(' ').any(|held| held == name)
}

/// The texts of a page with its attributes. Panics at an element or an attribute that we do not write.
pub fn parse_html(html: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = html.strip_prefix("<!doctype html>").expect("a doctype");
    while let Some(at) = rest.find('<') {
        texts.push(resolved(&rest[..at]));
        let mut quoted = false;
        let end = rest[at..].char_indices().find(|(_, c)| {
            quoted ^= *c == '"';
            *c == '>' && !quoted
        });
        let tag = &rest[at + 1..at + end.expect("a tag is closed").0];
        rest = &rest[at + tag.len() + 2..];
        let (name, mut attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let name = name.trim_matches('/');
        assert!(has(ELEMENTS, name), "element {name:?}");
        attributes = attributes.trim().trim_end_matches('/');
        while let Some((key, value)) = attributes.split_once("=\"") {
            assert!(has(ATTRIBUTES, key.trim()), "attribute {key:?} of {name}");
            let (value, after) = value.split_once('"').expect("a value is closed");
            texts.push(resolved(value));
            attributes = after.trim_start();
        }
        assert!(attributes.is_empty(), "{attributes:?} of {name}");
        if name == "style" && !tag.starts_with('/') {
            rest = &rest[rest.find("</style>").unwrap()..];
        }
    }
    texts
}

fn resolved(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, entity)) = rest.split_once('&') {
        out.push_str(before);
        let (entity, after) = entity.split_once(';').unwrap_or_else(|| panic!("a bare & in {text:?}"));
        let number = entity.strip_prefix('#').and_then(|number| number.parse().ok()).and_then(char::from_u32);
        out.push(number.unwrap_or_else(|| match entity {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            other => panic!("entity {other:?}"),
        }));
        rest = after;
    }
    out + rest
}
