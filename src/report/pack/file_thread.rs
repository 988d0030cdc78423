//! Writes a file of a pack on another thread while the engine computes more rows.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::report::ReportError;
use crate::report::sink::{Flow, Sink};

/// Maximum number of waiting batches (back-pressure): the engine waits when the queue is full.
const BATCHES_WAITING_MAX: usize = 8;

/// A call to a sink.
pub enum SinkCall {
    Begin(SchemaRef),
    Batch(RecordBatch),
    Finish,
}

/// The engine's end of the channel: a sink that sends everything on.
pub struct ChannelSink(SyncSender<SinkCall>);

/// The thread's end of the channel.
pub struct FileThread<'scope>(ScopedJoinHandle<'scope, Result<(), ReportError>>);

/// Runs `work` on a thread, with the calls that are sent to the sink.
pub fn on_thread<'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce(Receiver<SinkCall>) -> Result<(), ReportError> + Send + 'scope,
) -> (ChannelSink, FileThread<'scope>) {
    let (to, parts) = sync_channel(BATCHES_WAITING_MAX);
    (ChannelSink(to), FileThread(scope.spawn(move || work(parts))))
}

/// Passes all calls on to `sink`. Stops without a `finish` if the sender stops early.
///
/// # Errors
/// Errors of the sink.
pub fn take(parts: Receiver<SinkCall>, sink: &mut dyn Sink) -> Result<(), ReportError> {
    for part in parts {
        match part {
            SinkCall::Begin(schema) => sink.begin(schema)?,
            // Ignore `Enough`: another sink of the same rows can want more.
            SinkCall::Batch(batch) => _ = sink.batch(&batch)?,
            SinkCall::Finish => sink.finish()?,
        }
    }
    Ok(())
}

impl ChannelSink {
    fn send(&self, part: SinkCall) -> Result<(), ReportError> {
        // The thread's own error says more: see [`FileThread::ended`].
        self.0.send(part).map_err(|_| ReportError::Output(io::ErrorKind::BrokenPipe.into()))
    }
}

impl Sink for ChannelSink {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        self.send(SinkCall::Begin(schema))
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        self.send(SinkCall::Batch(batch.clone()))?;
        Ok(Flow::More)
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        self.send(SinkCall::Finish)
    }
}

impl FileThread<'_> {
    /// Waits until everything is written.
    ///
    /// # Errors
    /// Errors of the sink.
    pub fn ended(self) -> Result<(), ReportError> {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;

    use crate::report::{Engine, Format, Limits, Medium, ViewData, sink_for};

    use super::*;

    /// A writer that accepts this many bytes and then fails.
    struct FullWriter(usize);

    impl Write for FullWriter {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(buffer.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(buffer.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(sql: &str, out: &mut (dyn Write + Send)) -> Result<(), ReportError> {
        let engine = Engine::open(ViewData::default(), Limits { memory_mib: 128, threads: 1 })?;
        thread::scope(|scope| {
            let (mut to, end) =
                on_thread(scope, |parts| take(parts, sink_for(Format::Csv, out, Medium::default()).as_mut()));
            let made = engine.query(sql, &mut to);
            drop(to);
            end.ended().and(made)
        })
    }

    #[test]
    fn rows_arrive_in_order_and_errors_of_both_sides_are_reported() {
        let mut out = Vec::new();
        written("SELECT i FROM range(50000) t(i)", &mut out).unwrap();
        let rows: Vec<String> = (0..50_000).map(|i: u32| i.to_string()).collect();
        assert_eq!(String::from_utf8(out).unwrap(), format!("i\n{}\n", rows.join("\n")));
        let full = written("SELECT i FROM range(5000000) t(i)", &mut FullWriter(100_000)).unwrap_err();
        assert!(matches!(&full, ReportError::Output(e) if e.kind() == io::ErrorKind::StorageFull), "{full:?}");
        let wrong = written("SELECT error('no') FROM range(3)", &mut Vec::new()).unwrap_err();
        assert!(wrong.is_wrong_use() && wrong.to_string().contains("no"), "{wrong:?}");
    }
}
