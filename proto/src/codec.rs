//! The protobuf codec that the generated code uses.

use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::{Reason, Refusal};

/// Protobuf over gRPC, like tonic's own codec but for two things: bytes that don't decode are the caller's mistake
/// (`INVALID_ARGUMENT`, `MALFORMED_REQUEST`; tonic says `INTERNAL`), and buffers start at the size of our replies.
#[derive(Debug, Clone)]
pub struct ProstCodec<T, U>(PhantomData<(T, U)>);

/// Most replies fit in 512 bytes, where tonic starts with 8 KiB for each; larger ones grow to what they need.
fn buffers() -> BufferSettings {
    BufferSettings::new(512, 32 * 1024)
}

impl<T, U> Default for ProstCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for ProstCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder(PhantomData)
    }
}

/// The sending half of [`ProstCodec`].
#[derive(Debug, Clone)]
pub struct ProstEncoder<T>(PhantomData<T>);

impl<T: Message> Encoder for ProstEncoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, buf: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(buf).map_err(|error| Status::internal(format!("can't encode the message: {error}")))
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffers()
    }
}

/// The receiving half of [`ProstCodec`].
#[derive(Debug, Clone)]
pub struct ProstDecoder<U>(PhantomData<U>);

impl<U: Message + Default> Decoder for ProstDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(buf)
            .map(Some)
            .map_err(|error| Refusal::new(Reason::MalformedRequest, error.to_string()).into())
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffers()
    }
}
