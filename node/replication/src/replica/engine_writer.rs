//! Access of a replica to the node around it: the writer thread in the program, an engine that the test
//! steps in simulations.

use klnode_engine::{Command, OpenDocuments, Receipt, Rejection};
use klnode_store::Store;

/// Access to the single writer.
pub trait EngineWriter {
    /// Submits commands and waits for the result of each.
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>>;
    /// The store, for reading.
    fn store(&self) -> &Store;
    /// The documents in memory.
    fn documents(&self) -> &OpenDocuments;
}

impl EngineWriter for klnode_engine::Handle {
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>> {
        let count = commands.len();
        self.submit_all_blocking(commands).unwrap_or_else(|rejection| vec![Err(rejection); count])
    }

    fn store(&self) -> &Store {
        klnode_engine::Handle::store(self)
    }

    fn documents(&self) -> &OpenDocuments {
        klnode_engine::Handle::documents(self)
    }
}
