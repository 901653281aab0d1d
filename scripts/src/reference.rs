//! x
#[cfg(test)]
mod tests {
    use crate::engine::Profile;
    #[test]
    fn list() {
        let mut all = Profile::Extension.engine().collect_fn_metadata(
            None,
            |info| {
                Some(format!(
                    "{} {}",
                    info.metadata.name, info.metadata.num_params
                ))
            },
            false,
        );
        all.sort();
        all.dedup();
        println!("{}", all.join("\n"));
    }
}
/// x
#[must_use]
pub fn reference(_w: Option<&str>) -> String {
    String::new()
}
