use super::*;

#[test]
fn ids_have_one_form() {
    for good in ["a", "local", "0", "ann.b-c_d", &"a".repeat(64)] {
        assert!(check_id(good).is_ok(), "{good}");
    }
    for bad in ["", "A", ".", "..", "../x", "a/b", "a\\b", "-a", "_a", "a b", "研究员", "a\0", "%2e", &"a".repeat(65)]
    {
        assert!(matches!(check_id(bad), Err(UserError::BadId(_))), "{bad}");
    }
}
