//! For tests: a store that changes some operations of another store, and passes the others on.

/// Passes these operations of a [`Store`](crate::store::Store) on to the store `self.inner`.
macro_rules! pass_on {
    (create) => { $crate::store::pass_on!(create() -> Box<dyn $crate::store::FileWriter>); };
    (read) => { $crate::store::pass_on!(read(path: &str) -> $crate::store::Blob); };
    (list) => { $crate::store::pass_on!(list(directory: &str) -> Vec<$crate::store::Listed>); };
    (remove) => { $crate::store::pass_on!(remove(paths: &[&str]) -> ()); };
    (append) => { $crate::store::pass_on!(append(path: &str, tail: $crate::store::Tail, bytes: &[u8]) -> ()); };
    (create_new) => { $crate::store::pass_on!(create_new(path: &str, bytes: &[u8]) -> ()); };
    (lock) => { $crate::store::pass_on!(lock(name: &str) -> Box<dyn $crate::store::Guard>); };
    (now) => { $crate::store::pass_on!(now() -> $crate::model::Instant); };
    ($operation:ident($($name:ident: $type:ty),*) -> $answer:ty) => {
        fn $operation(&self, $($name: $type),*) -> Result<$answer, $crate::store::StoreError> {
            self.inner.$operation($($name),*)
        }
    };
    ($($operation:ident)*) => { $($crate::store::pass_on!($operation);)* };
}

pub(crate) use pass_on;
