//! Patterns: what they match, and what they leave.

use super::*;

#[test]
fn a_star_stands_for_any_text_of_one_name_but_not_for_its_dot() {
    for (star, name, expected) in [
        ("*.yaml", "a.yaml", true),
        ("*.yaml", ".yaml", false),
        ("*.yaml", "a.yml", false),
        ("*", "..data", false),
        (".*", "..data", true),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-c", false),
        ("a*a", "a", false),
        ("a.yaml", "a.yaml", true),
        ("a.yaml", "a.yaml.bak", false),
    ] {
        assert_eq!(fits(star, name), expected, "{star} and {name}");
    }
}

#[test]
fn a_pattern_matches_files_of_folders_sorted_and_knows_them_again() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["b/x.yaml", "a/y.yaml", "a/x.yaml", "a/x.yml", "..data/x.yaml", "x.yaml"] {
        let file = dir.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
    }
    std::fs::create_dir(dir.path().join("a/folder.yaml")).unwrap();
    let pattern = Pattern::new(dir.path().join("*/*.yaml"));
    let found = pattern.list();
    let expected = ["a/x.yaml", "a/y.yaml", "b/x.yaml"].map(|file| dir.path().join(file));
    assert_eq!(found.files, expected);
    assert!(expected.iter().all(|file| pattern.fits(file)));
    assert!(!pattern.fits(&dir.path().join("..data/x.yaml")) && !pattern.fits(&dir.path().join("x.yaml")));
    assert!(found.folders.contains(dir.path()) && found.folders.contains(&dir.path().join("a")));
    assert_eq!(Pattern::new(dir.path().join("none/*.yaml")).list().files, Vec::<PathBuf>::new());
}
