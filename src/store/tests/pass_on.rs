//! For tests: a store that changes some operations of another store, and passes the others on.

/// Passes these operations of a [`Store`](crate::store::Store) on to the store `self.inner`.
macro_rules! pass_on {
    ($($operation:ident)*) => { $($crate::store::pass_on!(@$operation);)* };
    (@create) => {
        fn create(&self) -> Result<Box<dyn $crate::store::FileWriter>, $crate::store::StoreError> {
            self.inner.create()
        }
    };
    (@read) => {
        fn read(&self, path: &str) -> Result<$crate::store::Blob, $crate::store::StoreError> {
            self.inner.read(path)
        }
    };
    (@list) => {
        fn list(&self, directory: &str) -> Result<Vec<$crate::store::Listed>, $crate::store::StoreError> {
            self.inner.list(directory)
        }
    };
    (@remove_all) => {
        fn remove_all(&self, paths: &[&str]) -> Result<(), $crate::store::StoreError> {
            self.inner.remove_all(paths)
        }
    };
    (@append) => {
        fn append(&self, path: &str, tail: $crate::store::Tail, bytes: &[u8]) -> Result<(), $crate::store::StoreError> {
            self.inner.append(path, tail, bytes)
        }
    };
    (@create_new) => {
        fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), $crate::store::StoreError> {
            self.inner.create_new(path, bytes)
        }
    };
    (@lock) => {
        fn lock(&self, name: &str) -> Result<Box<dyn $crate::store::Guard>, $crate::store::StoreError> {
            self.inner.lock(name)
        }
    };
    (@now) => {
        fn now(&self) -> Result<$crate::model::Instant, $crate::store::StoreError> {
            self.inner.now()
        }
    };
}

pub(crate) use pass_on;
