//! The kernel's side of the waist: hosts, calls and streams as the ABI's objects.
//!
//! Every value that came from a plugin is copied into kernel memory here, and every method is
//! guarded: a panic that crossed the border would end the process.

use std::sync::{Arc, OnceLock, Weak};

use pliant_abi::abi_stable::std_types::{RErr, RNone, ROk, RResult, RSlice, RSome, RStr, RVec};
use pliant_abi::abi_stable::type_level::downcasting::TD_Opaque;
use pliant_abi::async_ffi::{FfiContext, FfiFuture, FfiPoll};
use pliant_abi::{
    ByteStream_TO, ByteStreamObject, CallCtx, CallCtx_TO, CallCtxObject, EMIT_CONTINUE, EMIT_SLOW,
    EMIT_STOP, Host, Host_TO, HostObject, InstanceObject, Reply, StreamItem,
};
use pliant_sdk::export::{reply, unreply};
use pliant_sdk::host::{ByteStream, Services};
use pliant_sdk::plugin::{Caller, Flow};
use pliant_sdk::{Error, catch};

/// Where a plugin's blocking tasks find their instance; filled after creation.
pub(super) type InstanceSlot = Arc<OnceLock<Weak<InstanceObject>>>;

/// Services as the ABI's host.
#[derive(Clone)]
pub(super) struct AbiHost {
    services: Arc<dyn Services>,
    instance: InstanceSlot,
}

impl AbiHost {
    pub(super) fn object(services: Arc<dyn Services>, instance: InstanceSlot) -> HostObject {
        Host_TO::from_value(Self { services, instance }, TD_Opaque)
    }

    /// Blocking work runs on the pool of the runtime that polls the plugin.
    async fn run_task(instance: InstanceSlot, payload: Vec<u8>) -> Result<Vec<u8>, Error> {
        let instance = instance
            .get()
            .and_then(Weak::upgrade)
            .ok_or_else(Error::cancelled)?;
        let task = tokio::task::spawn_blocking(move || {
            unreply(instance.control(RStr::from_str("task.run"), RSlice::from_slice(&payload)))
        });
        task.await
            .map_err(|error| Error::failed(format!("the background task was lost: {error}")))?
    }
}

impl Host for AbiHost {
    fn call(&self, service: RStr<'_>, payload: RVec<u8>) -> FfiFuture<Reply> {
        let payload = payload.into_vec();
        if service.as_str() == "task.spawn" {
            let instance = Arc::clone(&self.instance);
            return FfiFuture::new(async move { reply(Self::run_task(instance, payload).await) });
        }
        match catch(|| self.services.call(service.as_str(), payload)) {
            Ok(answer) => FfiFuture::new(async move { reply(answer.await) }),
            Err(error) => FfiFuture::new(std::future::ready(reply(Err(error)))),
        }
    }

    fn open(
        &self,
        service: RStr<'_>,
        payload: RVec<u8>,
    ) -> FfiFuture<RResult<ByteStreamObject, RVec<u8>>> {
        let opening = catch(|| self.services.open(service.as_str(), payload.into_vec()));
        FfiFuture::new(async move {
            let opened = match opening {
                Ok(opening) => opening.await,
                Err(error) => Err(error),
            };
            match opened {
                Ok(stream) => ROk(ByteStream_TO::from_value(AbiStream(stream), TD_Opaque)),
                Err(error) => RErr(RVec::from(error.to_bytes())),
            }
        })
    }

    fn notify(&self, service: RStr<'_>, payload: RSlice<'_, u8>) {
        // A notification has no answer; a fault in it is the host's own and was logged there.
        let _ = catch(|| self.services.notify(service.as_str(), payload.as_slice()));
    }
}

/// A caller as the ABI's call context.
#[derive(Clone)]
pub(super) struct AbiCall {
    caller: Arc<dyn Caller>,
    host: AbiHost,
    id: u64,
}

impl AbiCall {
    pub(super) fn object(
        caller: Arc<dyn Caller>,
        services: Arc<dyn Services>,
        instance: InstanceSlot,
        id: u64,
    ) -> CallCtxObject {
        CallCtx_TO::from_value(
            Self {
                caller,
                host: AbiHost { services, instance },
                id,
            },
            TD_Opaque,
        )
    }
}

impl CallCtx for AbiCall {
    fn cancelled(&self) -> bool {
        catch(|| self.caller.cancelled()).unwrap_or(true)
    }

    fn emit(&self, payload: RSlice<'_, u8>) -> u32 {
        match catch(|| self.caller.emit(payload.as_slice())) {
            Ok(Flow::Continue) => EMIT_CONTINUE,
            Ok(Flow::Slow) => EMIT_SLOW,
            Ok(Flow::Stop) | Err(_) => EMIT_STOP,
        }
    }

    fn host(&self) -> HostObject {
        Host_TO::from_value(self.host.clone(), TD_Opaque)
    }

    fn call_id(&self) -> u64 {
        self.id
    }
}

struct AbiStream(ByteStream);

impl pliant_abi::ByteStream for AbiStream {
    fn poll_next(&mut self, ctx: &mut FfiContext<'_>) -> FfiPoll<StreamItem> {
        let polled = ctx.with_context(|cx| catch(|| self.0.poll_next(cx)));
        let poll = match polled {
            Ok(poll) => poll,
            Err(error) => std::task::Poll::Ready(Some(Err(error))),
        };
        FfiPoll::from_poll(poll.map(|item| match item {
            Some(item) => RSome(reply(item)),
            None => RNone,
        }))
    }
}
