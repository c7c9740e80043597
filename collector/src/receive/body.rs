//! Reads and inflates a request's body. Size and time are limited.

use std::io::Read as _;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::refusal::Refusal;
use super::{BODY_MAX_BYTES, INFLATED_MAX_BYTES};

/// Maximum time for receiving a body. A sender on the same computer needs milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes before a gRPC message: a flag and a length of four bytes.
const PREFIX_BYTES: usize = 5;

/// Reads the whole body.
///
/// # Errors
/// [`Refusal::TooLarge`], [`Refusal::Slow`], or [`Refusal::Malformed`] if the connection breaks.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|length| length.parse::<u64>().ok());
    let max = BODY_MAX_BYTES + PREFIX_BYTES;
    if announced.is_some_and(|length| length > max as u64) {
        return Err(Refusal::TooLarge);
    }
    let read = tokio::time::timeout(TIMEOUT, Limited::new(body, max).collect()).await;
    match read.map_err(|_| Refusal::Slow)? {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge),
        Err(_) => Err(Refusal::Malformed),
    }
}

/// The single message of a gRPC request, and whether the message is compressed.
///
/// # Errors
/// [`Refusal::Malformed`] unless there is exactly one whole message.
pub(super) fn unframe(body: &Bytes) -> Result<(bool, Bytes), Refusal> {
    let (prefix, message) = body.split_at_checked(PREFIX_BYTES).ok_or(Refusal::Malformed)?;
    let (flag, length) = prefix.split_first().ok_or(Refusal::Malformed)?;
    let length: [u8; 4] = length.try_into().map_err(|_| Refusal::Malformed)?;
    if u32::from_be_bytes(length) as usize != message.len() || *flag > 1 {
        return Err(Refusal::Malformed);
    }
    Ok((*flag == 1, body.slice(PREFIX_BYTES..)))
}

/// Inflates gzip.
///
/// # Errors
/// [`Refusal::TooLarge`] beyond the limit, [`Refusal::Malformed`] if the body is not gzip.
pub(super) fn inflate(packed: &[u8]) -> Result<Bytes, Refusal> {
    let mut plain = Vec::new();
    let mut reader = MultiGzDecoder::new(packed).take(INFLATED_MAX_BYTES as u64 + 1);
    reader.read_to_end(&mut plain).map_err(|_| Refusal::Malformed)?;
    within(plain.into())
}

/// Accepts a body that is not compressed.
///
/// # Errors
/// [`Refusal::TooLarge`] beyond the limit.
pub(super) fn within(plain: Bytes) -> Result<Bytes, Refusal> {
    if plain.len() > INFLATED_MAX_BYTES { Err(Refusal::TooLarge) } else { Ok(plain) }
}
