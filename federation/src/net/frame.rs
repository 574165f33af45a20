//! One frame on a stream: a length of four bytes, big-endian, then that many bytes.
//!
//! A frame is opaque here; the protocol decodes it. This file bounds the cost of a bad one: a
//! length beyond the limit ends the stream before anything is allocated, memory grows only with the
//! bytes received, and a peer that transfers less than the minimum rate is cut off. The time a peer
//! takes before the first byte of its answer does not count as slowness; the request timeout limits
//! it.

use libp2p::StreamProtocol;
use libp2p::futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::request_response::Codec;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Period over which a stream's transfer rate is measured.
const WINDOW: Duration = Duration::from_secs(2);

/// Memory allocated ahead of the bytes received.
const CHUNK_BYTES: usize = 64 * 1024;

/// Reads and writes the frames of one protocol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames {
    /// Maximum frame length in bytes.
    pub(super) bytes_max: usize,
    /// Minimum transfer rate in bytes per second.
    pub(super) progress_min: u64,
}

impl Frames {
    async fn read<T>(self, io: &mut T, first: FirstByteWait) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut length = [0; 4];
        let mut have = 0;
        if matches!(first, FirstByteWait::MayTakeTime) {
            have = some(io.read(&mut length[..1]).await?)?;
        }
        let mut progress = ThroughputGuard::new(self.progress_min);
        while have < length.len() {
            have += some(progress.of(io.read(&mut length[have..])).await?)?;
        }
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > self.bytes_max {
            return Err(too_long(length, self.bytes_max));
        }
        let mut frame = Vec::new();
        let mut have = 0;
        while have < length {
            frame.resize(length.min(have + CHUNK_BYTES), 0);
            have += some(progress.of(io.read(&mut frame[have..])).await?)?;
        }
        Ok(frame)
    }

    async fn write<T>(self, io: &mut T, frame: &[u8]) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        let length = u32::try_from(frame.len()).ok().filter(|_| frame.len() <= self.bytes_max);
        let length = length.ok_or_else(|| too_long(frame.len(), self.bytes_max))?.to_be_bytes();
        let mut progress = ThroughputGuard::new(self.progress_min);
        for part in [length.as_slice(), frame] {
            let mut done = 0;
            while done < part.len() {
                done += some(progress.of(io.write(&part[done..])).await?)?;
            }
        }
        let flush = async { io.flush().await.map(|()| 0) };
        progress.of(flush).await.map(drop)
    }
}

/// Whether the other side may take time before its first byte.
enum FirstByteWait {
    MayTakeTime,
    IsDue,
}

/// Measures a stream's transfer rate and fails if it is too low.
struct ThroughputGuard {
    window_bytes_min: u64,
    moved: u64,
    deadline: Instant,
}

impl ThroughputGuard {
    fn new(bytes_per_second_min: u64) -> Self {
        let window_bytes_min = bytes_per_second_min.saturating_mul(WINDOW.as_secs());
        Self { window_bytes_min, moved: 0, deadline: Instant::now() + WINDOW }
    }

    /// Waits for one step. A window with enough bytes is followed by the next window.
    async fn of(&mut self, step: impl Future<Output = io::Result<usize>>) -> io::Result<usize> {
        let slow =
            |_| io::Error::new(io::ErrorKind::TimedOut, "the peer transfers data too slowly");
        let bytes = timeout_at(self.deadline, step).await.map_err(slow)??;
        self.moved = self.moved.saturating_add(bytes as u64);
        if self.moved >= self.window_bytes_min {
            self.moved = 0;
            self.deadline = Instant::now() + WINDOW;
        }
        Ok(bytes)
    }
}

/// A step that transferred nothing means the end of the stream.
fn some(bytes: usize) -> io::Result<usize> {
    match bytes {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        bytes => Ok(bytes),
    }
}

fn too_long(bytes: usize, bytes_max: usize) -> io::Error {
    let what = format!("a frame of {bytes} bytes exceeds the limit of {bytes_max}");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Codec for Frames {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        self.read(io, FirstByteWait::IsDue).await
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        self.read(io, FirstByteWait::MayTakeTime).await
    }

    async fn write_request<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        frame: Vec<u8>,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        self.write(io, &frame).await
    }

    async fn write_response<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        frame: Vec<u8>,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        self.write(io, &frame).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libp2p::futures::io::Cursor;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::time::{Interval, interval};

    const FRAMES: Frames = Frames { bytes_max: 1 << 20, progress_min: 1024 };

    /// A peer that reads and writes a few bytes per tick and never finishes.
    struct Trickle {
        bytes: usize,
        tick: Interval,
        /// The bytes it sends first; zeros follow.
        opening: Vec<u8>,
    }

    impl Trickle {
        fn new(bytes: usize, every: Duration, opening: &[u8]) -> Self {
            Self { bytes, tick: interval(every), opening: opening.to_vec() }
        }
    }

    impl AsyncRead for Trickle {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            std::task::ready!(self.tick.poll_tick(cx));
            let bytes = self.bytes.min(buffer.len());
            buffer[..bytes].fill(0);
            let opening = bytes.min(self.opening.len());
            buffer[..opening].copy_from_slice(&self.opening[..opening]);
            self.opening.drain(..opening);
            Poll::Ready(Ok(bytes))
        }
    }

    impl AsyncWrite for Trickle {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            std::task::ready!(self.tick.poll_tick(cx));
            Poll::Ready(Ok(self.bytes.min(bytes.len())))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn frames_of_any_length_round_trip() {
        for length in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, FRAMES.bytes_max] {
            let frame: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let mut io = Cursor::new(Vec::new());
            FRAMES.write(&mut io, &frame).await.unwrap();
            io.set_position(0);
            assert_eq!(FRAMES.read(&mut io, FirstByteWait::IsDue).await.unwrap(), frame);
        }
    }

    #[tokio::test]
    async fn a_length_beyond_the_limit_ends_the_stream_at_once() {
        for length in [FRAMES.bytes_max as u32 + 1, u32::MAX] {
            let mut io = Cursor::new(length.to_be_bytes().to_vec());
            let error = FRAMES.read(&mut io, FirstByteWait::IsDue).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
        let long = vec![0; FRAMES.bytes_max + 1];
        let error = FRAMES.write(&mut Cursor::new(Vec::new()), &long).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[tokio::test]
    async fn a_stream_that_ends_early_is_an_error() {
        for bytes in [&[][..], &[0, 0], &[0, 0, 0, 9], &[0, 0, 0, 9, 1, 2]] {
            let error =
                FRAMES.read(&mut Cursor::new(bytes), FirstByteWait::IsDue).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_writes_too_slowly_is_cut_off() {
        let length = (1u32 << 20).to_be_bytes();
        let mut slow = Trickle::new(4, Duration::from_millis(100), &length);
        let begun = Instant::now();
        let error = FRAMES.read(&mut slow, FirstByteWait::IsDue).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() <= 2 * WINDOW);
        let mut steady = Trickle::new(2048, Duration::from_secs(1), &100_000_u32.to_be_bytes());
        assert_eq!(FRAMES.read(&mut steady, FirstByteWait::IsDue).await.unwrap().len(), 100_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_too_slowly_is_cut_off() {
        let mut slow = Trickle::new(4, Duration::from_millis(100), &[]);
        let error = FRAMES.write(&mut slow, &[0; 100_000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut steady = Trickle::new(2048, Duration::from_secs(1), &[]);
        FRAMES.write(&mut steady, &[0; 100_000]).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_may_take_time_before_its_first_byte() {
        let mut late = Trickle::new(2048, 5 * WINDOW, &[0, 0, 0, 1, 9]);
        late.tick.reset();
        assert_eq!(
            FRAMES.read(&mut late, FirstByteWait::MayTakeTime).await.unwrap_err().kind(),
            io::ErrorKind::TimedOut
        );
        let mut late = Trickle::new(2048, Duration::from_millis(900), &[0, 0, 0, 1, 9]);
        late.tick.reset_after(5 * WINDOW);
        assert_eq!(FRAMES.read(&mut late, FirstByteWait::MayTakeTime).await.unwrap(), [9]);
        let mut late = Trickle::new(2048, Duration::from_millis(900), &[0, 0, 0, 1, 9]);
        late.tick.reset_after(5 * WINDOW);
        let error = FRAMES.read(&mut late, FirstByteWait::IsDue).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
